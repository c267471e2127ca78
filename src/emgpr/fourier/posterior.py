"""The posterior of a model with Fourier features, given sums over the data.

As functions of the location, the means of the signals are sums of Fourier features. So are their
covariances, with frequencies up to twice as high. The cost of a prediction is therefore
linear, not quadratic, in the number of features.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex, Float, Int

from emgpr.fourier.grid import FourierSums
from emgpr.fourier.likelihood import CoefficientPosterior, FourierLikelihood, pair_index
from emgpr.fourier.model import FourierModel
from emgpr.parallel import DEFAULT_EXECUTION, Execution
from emgpr.prediction import (
    GaussianMixture,
    Posterior,
    condition_on_sample,
    noise_given_sample,
    sample_each_location,
)

Array = np.ndarray


class Solution(NamedTuple):
    """Log-likelihood, and Fourier coefficients of the signals' means and covariances."""

    log_likelihood: float
    mean: Complex[Array, "D *m"]
    cov: Complex[Array, "pairs *n"]


@dataclass(frozen=True)
class FourierPosterior:
    """Posterior that keeps sums over the readings, but not the readings themselves."""

    model: FourierModel
    sums: FourierSums | None  # None in a worker process, which needs only the solution
    n_sites: int
    reference_values: Float[Array, "2 D"]  # lowest and highest readings
    longitude_latitude: bool = False
    solved: Solution | None = None

    @property
    def n_outputs(self) -> int:
        """Number of outputs, D."""
        return len(self.model.parameters.noise)

    @property
    def n_components(self) -> int:
        """Number of components of the predictive distribution: one, since it is Gaussian."""
        return 1

    @property
    def extent(self) -> Float[Array, "2 P"]:
        """The lowest and highest values of the inputs, which determine the extent of a map."""
        if self.longitude_latitude:
            raise ValueError(
                "OnePassGP does not keep its sites, so the extent of a map is unknown; pass "
                "bounds=(west, south, east, north)."
            )
        return self.model.box

    @cached_property
    def solution(self) -> Solution:
        """The solution, computed when it is first needed, so that adding chunks is fast."""
        if self.solved is not None:
            return self.solved
        coefficients = self._coefficients()
        return Solution(coefficients.log_likelihood, *coefficients.on_grid())

    def for_worker(self) -> "FourierPosterior":
        """Return a copy for worker processes that contains the solution instead of the sums."""
        return replace(self, solved=self.solution, sums=None)

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
        self.model.check_region(x)
        D, grid = self.n_outputs, self.model.features.grid
        noise = self.model.parameters.noise
        mean = grid.evaluate(x, self.solution.mean)
        cov = np.zeros((len(x), D, D))
        if with_cov or observed is not None:
            cov += grid.doubled.evaluate(x, self.solution.cov)[:, pair_index(D)]
            cov += self.model.truncated_covariance
        signals = GaussianMixture(mean[None], cov[None])
        if observed is not None:
            signals = condition_on_sample(signals, noise, observed)
        if not include_noise:
            return signals
        given, _, remaining = noise_given_sample(signals, signals.cov, noise, observed)
        return GaussianMixture(given.mean, given.cov + remaining)

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
        """Draw samples from the joint distribution of all outputs at all locations."""
        if observed is not None:
            raise ValueError(
                "sample_y of OnePassGP does not accept observed, because readings at one location "
                "change the samples at all others. Add the readings to a copy of the model with "
                "partial_fit(X, observed, learn=False), and sample from the copy."
            )
        self.model.check_region(x)
        signals = self._coefficients().sample(n, rng) @ self.model.features.evaluate(x).T
        spread = self.model.truncated_covariance + self.model.parameters.noise * include_noise
        at_each = np.broadcast_to(spread, (len(x), *spread.shape))
        return np.swapaxes(signals, 1, 2) + sample_each_location(at_each, n, rng)

    def leave_out(
        self,
        sets: Int[Array, "D N"],
        sites: Int[Array, " M"] | None = None,
        *,
        execution: Execution = DEFAULT_EXECUTION,
    ) -> GaussianMixture:
        """Raise ValueError, since the readings are not kept."""
        raise ValueError(
            "OnePassGP keeps sums over the readings, not the readings, so it cannot leave any "
            "out. Use emgpr.compare, which refits the model."
        )

    def without_transfer(self) -> Posterior:
        """Raise ValueError, since outputs are not fitted independently."""
        raise ValueError(
            "OnePassGP fits outputs only jointly, so it has no model without transfer. Compare it "
            "with IndependentGP."
        )

    def _coefficients(self) -> CoefficientPosterior:
        if self.sums is None:
            raise ValueError("The sums over the data are not in this process.")
        model = self.model
        likelihood = FourierLikelihood(self.sums, model.features, self.n_outputs)
        noise = model.parameters.noise + model.truncated_covariance
        variances = model.features.variances(model.parameters.kernels)
        return likelihood.posterior(model.parameters.W, noise, variances)
