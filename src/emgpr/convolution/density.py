"""The log posterior density of the parameters of convolved processes: likelihood and weak prior."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Float

from emgpr.convolution.likelihood import Likelihood, ReadingPairs
from emgpr.convolution.parameters import ConvolutionParameters, ConvolutionVector
from emgpr.noise import EPSILON, STRENGTH, noise_prior, output_variances
from emgpr.weights import SillPrior

Array = np.ndarray
Evaluation = tuple[ConvolutionParameters, Likelihood]


@dataclass(frozen=True)
class PosteriorDensity:
    """The log posterior density as a function of the vector of all parameters.

    The weak prior is that of linear models of coregionalisation: it favours noise and holds the
    total variance of each output close to that of its readings. Without it, the density is the
    likelihood.
    """

    pairs: ReadingPairs
    vector: ConvolutionVector
    weak_prior: bool

    def __call__(self, x: Float[Array, " p"]) -> tuple[float, Float[Array, " p"]]:
        """Return the log posterior density and its gradient."""
        parameters, likelihood = self._evaluate(x.tobytes())
        covariance, noise = parameters.covariance, parameters.noise
        dA, dT = self.vector.derivatives(covariance)
        gradient = np.tensordot(dA, likelihood.of_A, 3) + np.tensordot(dT, likelihood.of_T, 3)
        value, of_noise = likelihood.value, likelihood.of_noise
        if self.weak_prior:
            log_prior, of_prior = noise_prior(self._variances, True)(np.diag(noise))
            W, unit = covariance.all_weights[..., None], np.ones((len(covariance.all_weights), 1))
            sill = self._sill_prior(W, np.diag(noise), unit)
            value += float(log_prior) + float(sill.value)
            of_noise = of_noise + np.diagonal(of_prior) + np.diagonal(sill.of_noise)
            gradient[self._weights] += sill.of_weights.ravel()
        gradient[self.vector.parts[3]] += of_noise * noise
        return value, gradient

    def log_likelihood(self, x: Float[Array, " p"]) -> float:
        """Return the log-likelihood."""
        return self._evaluate(x.tobytes())[1].value

    def information(self, x: Float[Array, " p"], iteration: int = 0) -> Float[Array, "p p"]:
        """Return the information matrix of the likelihood plus the curvature of the prior."""
        parameters, likelihood = self._evaluate(x.tobytes())
        covariance, noise = parameters.covariance, parameters.noise
        dnoise = np.zeros((len(x), len(noise)))
        dnoise[self.vector.parts[3]] = np.diag(noise)
        derivatives = self.vector.derivatives(covariance)
        F = self.pairs.information(covariance, likelihood, *derivatives, dnoise)
        if self.weak_prior:
            scaled = dnoise / (noise + EPSILON * self._variances)
            F += STRENGTH * scaled @ scaled.T
            W = covariance.all_weights
            dsill = dnoise.copy()
            dsill[self._weights] += (2 * W[:, :, None] * np.eye(len(noise))).reshape(-1, len(noise))
            log_sill = dsill / ((W**2).sum(axis=0) + noise) * ~self.pairs.table.constant
            F += self._sill_prior.precision * log_sill @ log_sill.T
        return F

    @cached_property
    def _evaluate(self) -> Callable[[bytes], Evaluation]:
        """A function that evaluates the likelihood, and keeps the last evaluation.

        A search needs the information matrix at the point that it evaluated last.
        """

        def evaluate(x: bytes) -> Evaluation:
            parameters = self.vector.unpack(np.frombuffer(x))
            return parameters, self.pairs.evaluate(parameters.covariance, parameters.noise)

        return lru_cache(maxsize=1)(evaluate)

    @cached_property
    def _variances(self) -> Float[Array, " D"]:
        return output_variances(self.pairs.table)

    @property
    def _sill_prior(self) -> SillPrior:
        return SillPrior(self._variances, self.pairs.table.constant)

    @property
    def _weights(self) -> slice:
        """The weights of all processes, which are the last parts of the vector."""
        return slice(self.vector.parts[4].start, None)
