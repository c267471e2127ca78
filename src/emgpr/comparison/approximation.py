"""Comparison of an approximate model with an exact model on a subset of the readings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Int

from emgpr.comparison.approximation_report import ApproximationReport
from emgpr.cross_validation import CrossValidation, score_predictions
from emgpr.ensemble import split_sites
from emgpr.inputs import InputSpec
from emgpr.observations import Observations
from emgpr.parallel import Execution, RandomState, as_generator
from emgpr.prediction import LMCPosterior, Posterior
from emgpr.progress import progress_counter
from emgpr.sampling import clustered_batches
from emgpr.transforms import OutputScaler

Array = np.ndarray

MIN_READINGS = 60  # smallest number of readings for a comparison
LEFT_OUT = 3  # one in this many sites is left out
# An output is compared if it has this many readings to predict from and as many left-out readings.
MIN_READINGS_PER_OUTPUT = 5


class ExactModel(NamedTuple):
    """A model refitted without approximations, and the convergence warnings of that fit."""

    posterior: Posterior
    scaler: OutputScaler
    messages: list[str]


FitExact = Callable[[Int[Array, " n"], list[int]], ExactModel]


@dataclass(frozen=True)
class ApproximateModel:
    """A fitted model that uses approximations, and the parts of it that a comparison needs."""

    posterior: LMCPosterior
    scaler: OutputScaler
    inputs: InputSpec
    partition: str

    @property
    def observations(self) -> Observations:
        """All training readings."""
        return self.posterior.observations

    def restrict(self, sites: Int[Array, " n"], conditioning: Any) -> LMCPosterior:
        """Return the posterior given only the readings at `sites`, with another `conditioning`."""
        posterior, table = self.posterior, self.observations.at(sites)
        L, model = posterior.model.n_members, posterior.model
        batches = [np.arange(table.n_sites)] * L
        if conditioning == "batch":  # fewer batches than in the fit, but of the same size
            size = max(map(len, posterior.batches))
            rng = np.random.default_rng(0)
            batches = split_sites(table.x, size, self.partition, rng, L)
            model = model.members(range(len(batches)))
        return replace(
            posterior, observations=table, model=model, batches=tuple(batches),
            conditioning=conditioning,
        )  # fmt: skip


def compare_with_exact(
    model: ApproximateModel,
    approximations: Sequence[str],
    fit_exact: FitExact,
    n_readings: int,
    random_state: RandomState,
    execution: Execution,
) -> ApproximationReport:
    """Predict left-out readings in three ways; report the losses as an `ApproximationReport`."""
    if not isinstance(n_readings, Integral) or n_readings < MIN_READINGS:
        raise ValueError(
            f"n_readings={n_readings!r}; expected a whole number of at least {MIN_READINGS}."
        )
    observations, names = model.observations, model.scaler.names
    if not approximations:
        return ApproximationReport.build((), observations.n_sites, observations.n_readings, (), {})
    split = _Split.draw(observations, int(n_readings), as_generator(random_state))
    outputs = split.comparable_outputs(observations)
    known = observations.at(split.known)
    quiet = execution.quiet()
    with progress_counter(3, "Approximations: predictions", execution.verbose) as count:
        found: dict[str, CrossValidation] = {}
        for way, conditioning in (("fitted", model.posterior.conditioning), ("from all", "all")):
            posterior = model.restrict(split.known, conditioning)
            found[way] = _score(posterior, model.scaler, model, split.left_out, outputs, quiet)
            count()
        exact = fit_exact(split.known, outputs)
        found["exact"] = _score(
            exact.posterior, exact.scaler, model, split.left_out, outputs, quiet
        )
        count()
    others = [name for d, name in enumerate(names) if d not in outputs]
    return ApproximationReport.build(
        approximations, observations.n_sites, known.n_readings, others, found, exact.messages
    )


class _Split(NamedTuple):
    """Sites to predict from, and sites that are left out and predicted."""

    known: Int[Array, " n"]
    left_out: Int[Array, " m"]

    @classmethod
    def draw(
        cls, observations: Observations, n_readings: int, rng: np.random.Generator
    ) -> "_Split":
        """Draw clusters of sites with about `n_readings` readings; leave out one site in three."""
        n_batches = max(1, round(observations.n_readings / n_readings))
        sites = np.arange(observations.n_sites)
        if n_batches > 1:
            (sites,) = clustered_batches(observations.x, n_batches, rng, wanted=1)
        # Rows with the same location are left out together, because their readings are similar.
        location = np.unique(observations.x[sites], axis=0, return_inverse=True)[1].ravel()
        is_out = rng.permutation(int(location.max()) + 1)[location] % LEFT_OUT == 0
        return cls(sites[~is_out], sites[is_out])

    def comparable_outputs(self, observations: Observations) -> list[int]:
        """Return the outputs with enough readings both at known and at left-out sites."""
        observed = observations.observed
        counts = np.stack([observed[:, sites].sum(axis=1) for sites in self])
        varies = ~observations.at(self.known).constant
        is_sufficient = (counts >= MIN_READINGS_PER_OUTPUT).all(axis=0)
        outputs = np.flatnonzero(is_sufficient & varies).tolist()
        if observations.constant.all():
            raise ValueError(
                "All readings of each output are equal, so that every model predicts them without "
                "error, and there is nothing to compare."
            )
        if not outputs:
            n = len(self.known) + len(self.left_out)
            remedy = (
                "pass a larger n_readings" if n < observed.shape[1]
                else "the table is too small for a comparison"
            )  # fmt: skip
            m = MIN_READINGS_PER_OUTPUT
            lacking = f"has {m} readings to fit to and as many others to leave out"
            lacking = "varies" if is_sufficient.any() else lacking
            raise ValueError(f"In a sample of {n} sites, no output {lacking}; {remedy}.")
        return outputs


def _score(
    posterior: Posterior,
    scaler: OutputScaler,
    model: ApproximateModel,
    sites: Int[Array, " m"],
    outputs: list[int],
    execution: Execution,
) -> CrossValidation:
    """Predict and score the readings at `sites`. `scaler` is for all outputs or for `outputs`."""
    table = model.observations.at(sites)
    predicted = posterior.predict(table.x, execution=execution)
    truth = model.scaler.to_original(table.y.T)  # missing readings are valid numbers, too
    is_subset = scaler.n_outputs < model.scaler.n_outputs
    truth = truth[:, outputs] if is_subset else truth
    observed = (table.observed[outputs] if is_subset else table.observed).T
    values: Mapping[str, Array] = {"truth": truth, **score_predictions(scaler, predicted, truth)}
    index = model.inputs.index[model.inputs.rows[sites]]
    frames = {
        name: pd.DataFrame(np.where(observed, part, np.nan), index=index, columns=scaler.names)
        for name, part in values.items()
    }
    names = [model.scaler.names[d] for d in outputs]
    return CrossValidation("site", **{name: frame[names] for name, frame in frames.items()})
