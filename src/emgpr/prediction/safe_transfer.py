"""A posterior in which outputs that do not gain from transfer are predicted independently."""

from dataclasses import dataclass, field, fields

import numpy as np
from jaxtyping import Bool, Float, Int

from emgpr.parallel import DEFAULT_EXECUTION, Execution
from emgpr.prediction.lmc_posterior import LMCPosterior
from emgpr.prediction.posterior import GaussianMixture

Array = np.ndarray


@dataclass(frozen=True)
class SafeTransferPosterior(LMCPosterior):
    """A posterior in which some outputs are predicted from their own readings only.

    `without_gain` lists the outputs whose predictions do not gain from readings of other outputs.
    The list under the key "site" is for locations where nothing was measured, the list under
    "output" is for locations where other outputs were measured.
    """

    without_gain: dict[str, Int[Array, " _"]] = field(default_factory=dict)

    @property
    def links_samples(self) -> bool:
        """True, because predictions always depend on which outputs of a sample were measured."""
        return True

    def with_transfer(self) -> LMCPosterior:
        """Return the posterior with transfer to all outputs."""
        return LMCPosterior(**{f.name: getattr(self, f.name) for f in fields(LMCPosterior)})

    def predict_given(
        self,
        x: Float[Array, "M P"],
        sample: Float[Array, "M D"] | None,
        include_noise: bool,
        with_cov: bool,
        execution: Execution,
    ) -> GaussianMixture:
        """Predict outputs jointly, but outputs that do not gain from transfer independently."""
        joint, alone = (
            posterior.predict_given(x, sample, include_noise, with_cov, execution)
            for posterior in (self.with_transfer(), self.without_transfer())
        )
        return _replace_outputs(joint, self._replaced(sample, len(x)), alone)

    def sample_given(
        self,
        x: Float[Array, "M P"],
        sample: Float[Array, "M D"] | None,
        n: int,
        rng: np.random.Generator,
        include_noise: bool,
        execution: Execution,
    ) -> Float[Array, "n M D"]:
        """Draw joint samples; outputs that do not gain from transfer are drawn independently."""
        joint, alone = (
            posterior.sample_given(x, sample, n, rng, include_noise, execution)
            for posterior in (self.with_transfer(), self.without_transfer())
        )
        return np.where(self._replaced(sample, len(x)), alone, joint)

    def leave_out(
        self,
        sets: Int[Array, "D N"],
        sites: Int[Array, " M"] | None = None,
        *,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> GaussianMixture:
        """Predict readings at `sites` (default: all) from readings with other labels in `sets`."""
        joint, alone = (
            posterior.leave_out(sets, sites, execution=execution)
            for posterior in (self.with_transfer(), self.without_transfer())
        )
        rows = slice(None) if sites is None else sites
        labels, observed = sets[:, rows].T, self.observations.observed[:, rows].T
        remaining = (labels[:, :, None] != labels[:, None, :]) & observed[:, None, :]
        return _replace_outputs(joint, self._without_gain(remaining.any(axis=2)), alone)

    def _replaced(self, sample: Float[Array, "M D"] | None, n: int) -> Bool[Array, "M D"]:
        """Mark the outputs at each location that are predicted from their own readings only."""
        measured = np.zeros((n, self.n_outputs), bool) if sample is None else ~np.isnan(sample)
        return self._without_gain(measured.any(axis=1, keepdims=True) & ~measured)

    def _without_gain(self, others_measured: Bool[Array, "M D"]) -> Bool[Array, "M D"]:
        """Mark outputs that do not gain from transfer, depending on where others were measured."""
        outputs = np.arange(self.n_outputs)
        marked = {by: np.isin(outputs, which) for by, which in self.without_gain.items()}
        return np.where(others_measured, marked["output"], marked["site"])


def _replace_outputs(
    joint: GaussianMixture, marked: Bool[Array, "M D"], alone: GaussianMixture
) -> GaussianMixture:
    """Replace marked outputs in `joint` with those in `alone`, uncorrelated with other outputs.

    >>> joint = GaussianMixture(np.zeros((1, 1, 2)), np.full((1, 1, 2, 2), 5.0))
    >>> alone = GaussianMixture(np.ones((1, 1, 2)), np.eye(2)[None, None])
    >>> _replace_outputs(joint, np.array([[True, False]]), alone).cov[0, 0]
    array([[1., 0.],
           [0., 5.]])
    """
    both = marked[:, :, None] & marked[:, None, :]
    neither = ~marked[:, :, None] & ~marked[:, None, :]
    cov = np.where(both, alone.cov, np.where(neither, joint.cov, 0.0))
    return GaussianMixture(np.where(marked, alone.mean, joint.mean), cov)
