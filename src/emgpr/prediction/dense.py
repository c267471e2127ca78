"""The posterior of Gaussian processes with any covariance function, given all readings.

A model consists of a covariance function and the noise variance of each output. The covariance
function takes lists of readings, each of which has a location and an output, so that missing
readings need no special treatment. The cost is that of a dense factorisation, so that the number of
readings is limited to a few thousand.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from emgpr.arrays import CholeskyFactor, cholesky, chunk_bytes, limit_threads
from emgpr.observations import Observations, repeats
from emgpr.parallel import DEFAULT_EXECUTION, Execution
from emgpr.prediction.exact import LMCModel
from emgpr.prediction.joint_samples import check_joint_size, sample_gaussian
from emgpr.prediction.left_out_sets import sets_by_size, write_left_out
from emgpr.prediction.lmc_posterior import LMCPosterior
from emgpr.prediction.posterior import GaussianMixture, Posterior

Array = np.ndarray


@dataclass(frozen=True)
class ReadingLocations:
    """The location `x[i]` and the output `output[i]` of each reading i."""

    x: Float[Array, "n P"]
    output: Int[Array, " n"]

    @classmethod
    def measured(cls, table: Observations) -> "ReadingLocations":
        """Return all readings of a table, ordered by output and then by site."""
        output, site = np.nonzero(table.observed)
        return cls(table.x[site], output)

    @classmethod
    def all_outputs(cls, x: Float[Array, "M P"], D: int) -> "ReadingLocations":
        """Return a reading of each output at each location, ordered by output.

        >>> ReadingLocations.all_outputs(np.array([[0.0], [9.0]]), 2).output
        array([0, 0, 1, 1])
        """
        return cls(np.tile(x, (D, 1)), np.repeat(np.arange(D), len(x)))


@runtime_checkable
class CovarianceFunction(Protocol):
    """The covariance of the signals of several outputs."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs, D."""
        ...

    def between(self, a: ReadingLocations, b: ReadingLocations) -> Float[Array, "n m"]:
        """Return the covariances of the signals at two lists of readings."""
        ...

    def at_each(self, x: Float[Array, "M P"]) -> Float[Array, "M D D"]:
        """Return the covariance of the signals of all outputs at each location."""
        ...


@dataclass(frozen=True)
class DensePosterior:
    """The posterior given all readings, for independent noise.

    `independent` is a model of each output alone, which predicts without transfer.
    """

    observations: Observations
    covariance: CovarianceFunction
    noise: Float[Array, " D"]
    independent: LMCModel

    @property
    def n_outputs(self) -> int:
        """Number of outputs, D."""
        return self.covariance.n_outputs

    @property
    def n_components(self) -> int:
        """Number of components of the predictive distribution: one, since it is Gaussian."""
        return 1

    @property
    def n_sites(self) -> int:
        """Number of sites whose readings are used in predictions."""
        return self.observations.n_sites

    @property
    def extent(self) -> Float[Array, "N P"]:
        """Locations of all sites."""
        return self.observations.x

    @property
    def reference_values(self) -> Float[Array, "N D"]:
        """All readings, NaN where missing."""
        return self.observations.table

    @cached_property
    def readings(self) -> ReadingLocations:
        """Locations and outputs of all readings."""
        return ReadingLocations.measured(self.observations)

    @cached_property
    def factor(self) -> CholeskyFactor:
        """Factor of the covariance of the readings."""

        def covariance() -> Array:
            cov = self.covariance.between(self.readings, self.readings)
            cov[np.diag_indices_from(cov)] += self.noise[self.readings.output]
            return cov

        n = len(self.readings.output)
        with limit_threads(n):
            return cholesky(covariance).checked(f"covariance of the {n} readings")

    @cached_property
    def gamma(self) -> Float[Array, "n 1"]:
        """Inverse covariance of the readings, multiplied by the readings."""
        return self.factor.solve(self.observations.y[self.observations.observed][:, None])

    def for_worker(self) -> "DensePosterior":
        """Return a copy without factors, which take less time to compute than to send."""
        return replace(self)

    def without_transfer(self) -> Posterior:
        """Return the posterior in which every output is predicted from its own readings only."""
        sites = np.arange(self.n_sites)
        return LMCPosterior(
            self.observations, self.independent, (sites,), "all", independent=self.independent
        )

    def predict(
        self,
        x: Float[Array, "M P"],
        observed: Float[Array, "M D"] | None = None,
        *,
        include_noise: bool = True,
        with_cov: bool = True,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> GaussianMixture:
        """Return the distribution of the outputs at each location."""
        given, D = self._given(x, observed), self.n_outputs
        mean, cov = np.empty((len(x), D)), np.zeros((len(x), D, D))
        step = max(1, int(chunk_bytes("cpu") // (8 * D * len(given.readings.output))))
        with limit_threads(len(given.readings.output)):
            for start in range(0, len(x), step):
                at = slice(start, start + step)
                new = ReadingLocations.all_outputs(x[at], D)
                cross = self.covariance.between(given.readings, new)
                mean[at] = (cross.T @ given.gamma).reshape(D, -1).T
                if with_cov:
                    half = given.factor.half_solve(cross).reshape(len(cross), D, -1)
                    explained = np.einsum("ndm,nem->mde", half, half)
                    cov[at] = self.covariance.at_each(x[at]) - explained
        if include_noise:
            cov += np.diag(self.noise)
        return GaussianMixture(mean[None], cov[None])

    def sample(
        self,
        x: Float[Array, "M P"],
        n: int,
        rng: np.random.Generator,
        observed: Float[Array, "M D"] | None = None,
        *,
        include_noise: bool = True,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> Float[Array, "n M D"]:
        """Draw joint samples for all locations and outputs."""
        D = self.n_outputs
        check_joint_size(len(x), D)
        given, new = self._given(x, observed), ReadingLocations.all_outputs(x, D)
        with limit_threads(len(given.readings.output)):
            cross = self.covariance.between(given.readings, new)
            half = given.factor.half_solve(cross)
            cov = self.covariance.between(new, new) - half.T @ half
            if include_noise:
                cov[np.diag_indices_from(cov)] += self.noise[new.output]
            drawn = (cross.T @ given.gamma)[:, 0] + sample_gaussian(cov, n, rng)
        return np.swapaxes(drawn.reshape(n, D, len(x)), 1, 2)

    def leave_out(
        self,
        sets: Int[Array, "D N"],
        sites: Int[Array, " M"] | None = None,
        *,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> GaussianMixture:
        """Predict every reading from readings outside its set; return N(0, 1) where none exists."""
        table, (D, N) = self.observations, sets.shape
        result = GaussianMixture(np.zeros((1, N, D)), np.tile(np.eye(D), (1, N, 1, 1)))
        row = np.cumsum(table.observed) - 1  # of P, for each element of the table
        with limit_threads(len(self.readings.output)):
            P = self.factor.inverse()
            for S in sets_by_size(table.observed, sets):
                at = S // N, S % N
                write_left_out(result, 0, table.y, *at, P, self.gamma[:, 0], row[S])
        if sites is None:
            return result
        return GaussianMixture(result.mean[:, sites], result.cov[:, sites])

    def _given(
        self, x: Float[Array, "M P"], observed: Float[Array, "M D"] | None
    ) -> "DensePosterior":
        """Return the posterior given additional readings at x.

        Rows of `observed` that repeat the training readings at a site are not counted twice.
        """
        if observed is None:
            return self
        same = repeats(observed, self.observations.readings_at(x))
        new = Observations.from_table(x, np.where(same[:, None], np.nan, observed))
        return replace(self, observations=self.observations.extended_by(new))
