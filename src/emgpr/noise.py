"""The noise covariance Σ of the outputs as a vector of parameters, and a weak prior on it.

Σ = LLᵀ, where row i of L is exp(a_i/2) times the unit vector in the direction of
(c_i1, …, c_i,i−1, 1). Σ is positive definite for any values of a and c, and a_i is the logarithm of
the noise variance of output i, so that bounds on this variance are bounds on a_i. For independent
noise, the values c are zero and not part of the vector.

The weak prior favours noise, unless the readings show a signal:

    p(Σ) ∝ |Σ + ε|ᵃ exp(−a tr Σ)     for outputs of unit variance

With few readings, the likelihood is often highest without any noise, or with almost perfectly
correlated noise. Predictions would then reproduce the readings exactly. The prior has the weight of
a few readings. It is highest if all variance is noise, and decreases towards a singular Σ like a
Wishart density. The decrease is limited by ε, so that readings without noise remain possible.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from emgpr.arrays import cholesky, inv
from emgpr.observations import Observations

Array = np.ndarray
Prior = Callable[[Float[Array, "*b D D"]], tuple[Float[Array, "*b"], Float[Array, "*b D D"]]]

MIN_VARIANCE = 1e-12  # replaces a noise variance of zero, which has no logarithm
MAX_TILT = 10.0  # bound on |c|; for two outputs, it limits the noise correlation to 0.995
STRENGTH = 3.0  # a in the prior
EPSILON = 1e-3  # ε in the prior


@dataclass(frozen=True)
class NoiseParameters:
    """The noise covariance of D outputs as a vector: log variances, then the values c.

    >>> noise = NoiseParameters(2, correlated=True)
    >>> noise.matrix(noise.vector(np.array([[1.0, 0.5], [0.5, 1.0]]))).round(12)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    D: int
    correlated: bool

    @property
    def size(self) -> int:
        """Length of the vector."""
        return self.D + (self.D * (self.D - 1) // 2 if self.correlated else 0)

    def vector(self, noise: Float[Array, "D D"]) -> Float[Array, " p"]:
        """Return the vector that represents a covariance."""
        tiny = np.diagonal(noise) < MIN_VARIANCE
        noise = noise + np.diag(np.where(tiny, MIN_VARIANCE, 0.0))
        vector = np.log(np.diagonal(noise))
        if self.correlated:
            L = np.tril(cholesky(noise).checked("covariance of the noise").lower)
            tilts = L / np.diagonal(L)[:, None]
            vector = np.concatenate([vector, tilts[np.tril_indices(self.D, -1)]])
        return vector

    def bounds(self, variance_bounds: Float[Array, "D 2"]) -> Float[Array, "p 2"]:
        """Return bounds on the vector, given bounds on the variances."""
        tilts = np.tile([-MAX_TILT, MAX_TILT], (self.size - self.D, 1))
        return np.concatenate([np.log(variance_bounds), tilts])

    def matrix(self, vector: Float[Array, " p"]) -> Float[Array, "D D"]:
        """Return the covariance that a vector represents."""
        L = self._root(vector)
        return L @ L.T

    def pullback(
        self, vector: Float[Array, " p"], of_noise: Float[Array, "D D"]
    ) -> Float[Array, " p"]:
        """Convert a derivative with respect to Σ to the gradient with respect to the vector."""
        L = self._root(vector)
        of_root = 2 * of_noise @ L
        along = (of_root * L).sum(axis=1)
        if not self.correlated:
            return 0.5 * along
        scale = np.exp(0.5 * vector[: self.D, None])
        across = (of_root - along[:, None] * L / scale**2) * np.diagonal(L)[:, None]
        return np.concatenate([0.5 * along, across[np.tril_indices(self.D, -1)]])

    def derivatives(self, vector: Float[Array, " p"]) -> Float[Array, "p D D"]:
        """Return the derivative of Σ with respect to each element of the vector.

        >>> NoiseParameters(2, correlated=False).derivatives(np.log([0.5, 2.0]))[1]
        array([[0., 0.],
               [0., 2.]])
        """
        L = self._root(vector)
        of_root = np.zeros((self.size, self.D, self.D))
        outputs = np.arange(self.D)
        of_root[outputs, outputs] = 0.5 * L
        if self.correlated:
            row, column = np.tril_indices(self.D, -1)
            variance = np.exp(vector[row, None])
            across = np.eye(self.D)[column] - L[row, column, None] * L[row] / variance
            number = self.D + np.arange(len(row))
            of_root[number, row] = across * np.diagonal(L)[row, None]
        half = of_root @ L.T
        return half + np.swapaxes(half, -1, -2)

    def _root(self, vector: Float[Array, " p"]) -> Float[Array, "D D"]:
        L = np.eye(self.D)
        if self.correlated:
            L[np.tril_indices(self.D, -1)] = vector[self.D :]
            L /= np.linalg.norm(L, axis=1, keepdims=True)
        return np.exp(0.5 * vector[: self.D, None]) * L


def output_variances(observations: Observations) -> Float[Array, " D"]:
    """Return the mean square of each output's readings, or 1 if it is zero."""
    n_readings = np.maximum(observations.observed.sum(axis=1), 1)
    variances = (observations.y**2).sum(axis=1) / n_readings
    return np.where(variances > 0, variances, 1.0)


def noise_prior(variances: Float[Array, "*b D"], weak: bool) -> Prior:
    """Return the weak prior for outputs with these variances; if `weak` is False, a flat prior."""
    if weak:
        return WeakPrior(variances)
    return lambda noise: (np.zeros(noise.shape[:-2]), np.zeros_like(noise))


@dataclass(frozen=True)
class WeakPrior:
    """Log density of the weak prior for outputs with these variances.

    >>> prior = WeakPrior(np.ones(1))
    >>> [float(prior(np.array([[noise]]))[0].round(2)) for noise in (0.01, 0.1, 1.0, 4.0)]
    [-13.56, -7.18, -3.0, -7.84]
    """

    variances: Float[Array, "*b D"]

    def __call__(
        self, noise: Float[Array, "*b D D"]
    ) -> tuple[Float[Array, "*b"], Float[Array, "*b D D"]]:
        """Return log p(Σ), up to a constant, and its derivative with respect to Σ."""
        identity = np.eye(self.variances.shape[-1])
        shifted = noise + EPSILON * self.variances[..., None] * identity
        trace = np.einsum("...dd,...d->...", noise, 1 / self.variances)
        log_scale = np.log(self.variances).sum(axis=-1)
        value = STRENGTH * (np.linalg.slogdet(shifted)[1] - log_scale - trace)
        gradient = STRENGTH * (inv(shifted) - identity / self.variances[..., None])
        return np.asarray(value), gradient

    def log_curvature(self, noise: Float[Array, "b 1"]) -> Float[Array, " b"]:
        """Return −d² log p / d(log σ²)² for a single output with noise variance σ²."""
        limit = EPSILON * self.variances
        curvature = noise / self.variances - noise * limit / (noise + limit) ** 2
        return STRENGTH * curvature[:, 0]
