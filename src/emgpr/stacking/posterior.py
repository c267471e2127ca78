"""The posterior in which every output is predicted by a mixture of candidate models."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
from jaxtyping import Float, Int

from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION, Execution
from emgpr.prediction import GaussianMixture, LMCPosterior
from emgpr.regression import Regression, RegressionRows
from emgpr.stacking.fit import Stack, regression_rows
from emgpr.stacking.gaps import pattern_folds
from emgpr.stacking.locations import location_unit, scaled_locations
from emgpr.stacking.mixtures import diagonal, inflated_draws, mixture
from emgpr.stacking.patterns import (
    KnownOutputs,
    Pattern,
    TablePattern,
    patterns_in_sample,
    patterns_left_out,
)
from emgpr.stacking.scores import LeftOutScores, tested_sites
from emgpr.stacking.weights import CANDIDATES, CandidateWeights

Array = np.ndarray
RowsOfPatterns = dict[Pattern, Int[Array, " _"]]  # the rows with each pattern

OWN, JOINT, REGRESSION = range(len(CANDIDATES))
MAX_LEFT_OUT_NEIGHBOURS = 32  # among which the nearest reading in another set is searched


@dataclass(frozen=True)
class StackedPosterior(LMCPosterior):
    """A posterior whose predictive distributions are mixtures of three candidates.

    Weights differ between outputs and locations. The weights for a new set of known outputs are
    fitted and added to the stack when a prediction first needs them. Rare sets are reduced
    (`KnownOutputs`). The candidate of an output is selected independently of those of other
    outputs.
    """

    stack: Stack = field(default_factory=lambda: Stack(0, ()))

    @classmethod
    def extending(cls, posterior: LMCPosterior, stack: Stack) -> "StackedPosterior":
        """Add the weights of the candidates to the posterior of the joint model."""
        parts = {f.name: getattr(posterior, f.name) for f in fields(LMCPosterior)}
        return cls(**parts, stack=stack)

    @property
    def n_components(self) -> int:
        """Number of candidates."""
        return len(CANDIDATES)

    @property
    def links_samples(self) -> bool:
        """True, because predictions depend on which outputs of a sample were measured."""
        return True

    def with_transfer(self) -> LMCPosterior:
        """Return the posterior of the joint model or, without such a model, this posterior."""
        return self.joint() if self.stack.couples_outputs else self

    def joint(self) -> LMCPosterior:
        """Return the posterior of the joint model."""
        return LMCPosterior(**{f.name: getattr(self, f.name) for f in fields(LMCPosterior)})

    def condition_on(
        self, x: Float[Array, "M P"], observed: Float[Array, "M D"] | None, *, include_noise: bool
    ) -> tuple[LMCPosterior, Float[Array, "M D"] | None]:
        """Return the posterior given additional readings at x, and the known readings of samples.

        The readings of a sample are known whether or not noise is predicted. (In earlier versions,
        those at training sites were not known if signals were predicted.)
        """
        known = include_noise or not self.stack.switches
        return super().condition_on(x, observed, include_noise=known)

    def predict_given(
        self,
        x: Float[Array, "M P"],
        sample: Float[Array, "M D"] | None,
        include_noise: bool,
        with_cov: bool,
        execution: Execution,
    ) -> GaussianMixture:
        """Predict the outputs of one sample at each location."""
        patterns = {} if sample is None else self._reduced(patterns_in_sample(sample))
        self._fit_weights(patterns, execution)
        weights, factors, far = self._weights(x, patterns)
        parts = []
        for candidate, posterior in ((OWN, self.without_transfer()), (JOINT, self.joint())):
            part = None
            if weights[candidate].any():
                part = posterior.predict_given(x, sample, include_noise, True, execution)
            parts.append(part)
        parts.append(self._regressions(x, sample, patterns, far, include_noise))
        return mixture(parts, weights, factors)

    def sample_given(
        self,
        x: Float[Array, "M P"],
        sample: Float[Array, "M D"] | None,
        n: int,
        rng: np.random.Generator,
        include_noise: bool,
        execution: Execution,
    ) -> Float[Array, "n M D"]:
        """Draw joint samples; one number for each draw and output selects the candidate."""
        patterns = {} if sample is None else self._reduced(patterns_in_sample(sample))
        self._fit_weights(patterns, execution)
        weights, factors, far = self._weights(x, patterns)
        ends = np.cumsum(weights, axis=0)
        draws = {}
        for candidate, posterior in ((JOINT, self.joint()), (OWN, self.without_transfer())):
            # Models of earlier versions must draw the same numbers as then.
            if weights[candidate].any() or self.stack.switches:
                given = posterior, x, sample, n, rng, include_noise, execution
                draws[candidate] = inflated_draws(*given, np.sqrt(factors[candidate]))
        uniform = rng.uniform(size=(n, 1, self.n_outputs))
        drawn = np.full((n, len(x), self.n_outputs), np.nan)
        for candidate, values in draws.items():
            chosen = (uniform >= ends[candidate] - weights[candidate]) & (uniform < ends[candidate])
            drawn = np.where(chosen, values, drawn)
        for pattern, rows in patterns.items():
            d = pattern[0]
            chosen = uniform[:, :, d] >= ends[JOINT, rows, d]
            regression = self._regression(pattern)
            if regression is None or not chosen.any():
                continue
            assert sample is not None
            new = self._new_rows(pattern, x[rows], sample[rows])
            values = regression.sample(new, far[rows, d], n, rng, include_noise=include_noise)
            drawn[:, rows, d] = np.where(chosen, values, drawn[:, rows, d])
        return drawn

    def leave_out(
        self,
        sets: Int[Array, "D N"],
        sites: Int[Array, " M"] | None = None,
        *,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> GaussianMixture:
        """Predict every reading from readings outside its set.

        Parameters and weights are those fitted to all readings.
        """
        at = np.arange(self.n_sites) if sites is None else sites
        table = self.observations
        patterns = self._reduced(patterns_left_out(table.observed[:, at], sets[:, at]))
        self._fit_weights(patterns, execution)
        weights, factors, far = self._weights(table.x[at], patterns, (sets, at))
        parts: list[GaussianMixture | None] = [
            posterior.leave_out(sets, sites, execution=execution)
            if weights[candidate].any()
            else None
            for candidate, posterior in enumerate((self.without_transfer(), self.joint()))
        ]
        mean, variance = np.zeros((2, len(at), self.n_outputs))
        for (d, known), rows in patterns.items():
            regression = self._regression((d, known))
            if regression is not None:
                read = np.flatnonzero(table.observed[d])
                targets = np.searchsorted(read, at[rows])
                mean[rows, d], variance[rows, d] = regression.leave_out(
                    sets[d, read], targets, far[rows, d]
                )
        return mixture([*parts, diagonal(mean, variance)], weights, factors)

    def _reduced(self, patterns: RowsOfPatterns) -> RowsOfPatterns:
        """Replace rare sets of known outputs by smaller ones; omit rows without a regression."""
        if self.stack.switches:
            return patterns
        usable, reduced = self._known_outputs(), dict[Pattern, list[Int[Array, " m"]]]()
        for pattern, rows in patterns.items():
            if self._fixed(pattern[0]) is None and pattern not in self.stack.known:
                pattern = usable.reduce(pattern)
            if pattern[1]:
                reduced.setdefault(pattern, []).append(rows)
        return {pattern: np.sort(np.concatenate(rows)) for pattern, rows in reduced.items()}

    def _known_outputs(self) -> KnownOutputs:
        table = self._training_table()
        return self.observations.cached(
            "known outputs",
            lambda: KnownOutputs.in_table(table, tested_sites(table, self.model.n_members)),
        )

    def _training_table(self) -> Observations:
        """Return the readings without those at new locations."""
        n, given = self.stack.n_sites, self.observations
        if n == given.n_sites:
            return given
        return Observations(given.x[:n], given.y[:, :n], given.observed[:, :n])

    def _fit_weights(self, patterns: RowsOfPatterns, execution: Execution) -> None:
        """Fit the weights for patterns that were not needed before."""
        stack = self.stack
        new = [q for q in patterns if q not in stack.known and self._fixed(q[0]) is None]
        if not new:
            return
        batches = _first(self.batches, stack.n_sites)
        training = replace(self.joint(), observations=self._training_table(), batches=batches)
        scores = LeftOutScores(
            training, stack.couples_outputs, stack.n_parameters, execution.quiet()
        )
        folds = np.zeros((self.n_outputs, stack.n_sites), int)
        for d, known in {pattern[0]: pattern[1] for pattern in new}.items():
            folds[d] = pattern_folds(training, TablePattern((d, known)))
        own_far = scores.own_far(folds)
        for pattern in new:
            stack.add(scores, pattern, folds[pattern[0]], own_far)

    def _fixed(self, d: int) -> CandidateWeights | None:
        fixed = self.stack.fixed
        return fixed[d] if fixed else None

    def _weights(
        self,
        x: Float[Array, "M P"],
        patterns: RowsOfPatterns,
        left_out: tuple[Int[Array, "D N"], Int[Array, " M"]] | None = None,
    ) -> tuple[Float[Array, "3 M D"], Float[Array, "3 M D"], Float[Array, "M D"]]:
        """Return weights, factors of variances, and the share of the weights for gaps."""
        M, D = len(x), self.n_outputs
        weights = np.empty((len(CANDIDATES), M, D))
        weights[...] = np.stack([w.near for w in self.stack.unknown], axis=-1)[:, None]
        factors, far = np.ones_like(weights), np.zeros((M, D))
        no_pattern = np.ones((D, M), bool)
        for (d, _), rows in patterns.items():
            no_pattern[d, rows] = False
        for d, found in enumerate(self.stack.unknown):
            if found.has_gaps:
                rows, others = np.flatnonzero(no_pattern[d]), np.delete(np.arange(D), d)
                own = found.far_share(self._distances(d, [d], x[rows], left_out, rows))
                # Far from the readings of all outputs, there is no gap.
                other = found.far_share(self._distances(d, others, x[rows], left_out, rows))
                far[rows, d] = own * (1 - other)
                weights[:, rows, d], factors[:, rows, d] = found.at(far[rows, d])
        for (d, known), rows in patterns.items():
            found = self._fixed(d) or self.stack.known[d, known]
            if found.has_gaps:
                far[rows, d] = found.far_share(self._distances(d, [d], x[rows], left_out, rows))
            weights[:, rows, d], factors[:, rows, d] = found.at(far[rows, d])
        return weights, factors, far

    def _distances(
        self,
        d: int,
        outputs: Sequence[int] | Int[Array, " E"],
        x: Float[Array, "m P"],
        left_out: tuple[Int[Array, "D N"], Int[Array, " M"]] | None,
        rows: Int[Array, " m"],
    ) -> Float[Array, " m"]:
        """Return the distance from each location to the nearest reading of these outputs.

        It is in units of output d. If readings of d are left out, it is the nearest one in another
        set.
        """
        unit = location_unit(self, d, self.stack.n_sites)
        observed = self.observations.observed[outputs]
        measured = np.any(observed, axis=0)
        read, tree = np.flatnonzero(measured), self.observations.tree(unit, measured)
        if left_out is None:
            return np.asarray(tree.query(x / unit)[0])
        sets, at = left_out
        k = range(1, min(MAX_LEFT_OUT_NEIGHBOURS, len(read)) + 1)
        distance, nearest = tree.query(x / unit, k=k)
        other = sets[outputs][:, read[nearest]] != sets[d, at[rows]][:, None]
        other = (other & observed[:, read[nearest]]).any(axis=0)
        first = np.where(other.any(axis=1), other.argmax(axis=1), -1)
        return np.take_along_axis(distance, first[:, None], axis=1)[:, 0]

    def _regression(self, pattern: Pattern) -> Regression | None:
        """Return the regression for a pattern, given all readings of its output."""
        fitted = self.stack.regressions.get(pattern)
        if fitted is None:
            return None

        def build() -> Regression:
            read = np.flatnonzero(self.observations.observed[pattern[0]])
            x = scaled_locations(self, pattern[0], self.stack.n_sites)
            rows = regression_rows(self, pattern, x, read)
            return Regression(
                self.stack.kernel, fitted, rows, self.observations.y[pattern[0], read]
            )

        return self.observations.cached(("regression", pattern), build)

    def _new_rows(
        self, pattern: Pattern, x: Float[Array, "m P"], sample: Float[Array, "m D"]
    ) -> RegressionRows:
        """Return the rows of a regression at new locations where its known outputs are given."""
        d, known = pattern
        return RegressionRows.build(
            x / location_unit(self, d, self.stack.n_sites), sample[:, known]
        )

    def _regressions(
        self,
        x: Float[Array, "M P"],
        sample: Float[Array, "M D"] | None,
        patterns: RowsOfPatterns,
        far: Float[Array, "M D"],
        include_noise: bool,
    ) -> GaussianMixture:
        """Predict by regressions where there is one; 0 elsewhere."""
        mean, variance = np.zeros((2, len(x), self.n_outputs))
        for pattern, rows in patterns.items():
            regression, d = self._regression(pattern), pattern[0]
            if regression is not None:
                assert sample is not None
                new = self._new_rows(pattern, x[rows], sample[rows])
                mean[rows, d], variance[rows, d] = regression.predict(
                    new, far[rows, d], include_noise=include_noise
                )
        return diagonal(mean, variance)


def _first(batches: tuple[Int[Array, " _"], ...], n: int) -> tuple[Int[Array, " _"], ...]:
    """Return batches without the sites of readings at new locations."""
    return tuple(batch[batch < n] for batch in batches)
