"""Readings of a known model at very many places, and the prediction that knows the model.

Three processes on a fine grid of the unit square, drawn exactly (circulant embedding: a fast
Fourier transform of the covariance on a torus twice as wide), heard by D outputs through known
weights. A fifth of the readings are missing.
"""

from dataclasses import dataclass

import numpy as np
from scipy import fft
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from emgpr.observations import Observations
from emgpr.prediction import condition_on_neighbours

Array = np.ndarray

KERNELS = (Matern(0.02, nu=1.5), Matern(0.1, nu=1.5), RBF(0.3))
MISSING = 0.2
NEIGHBOURS = 16


@dataclass(frozen=True)
class Known:
    """Learn from (X, Y), NaN where not measured; at X_new all is known, the signals too."""

    X: Array  # (N, 2)
    Y: Array  # (N, D)
    X_new: Array  # (M, 2)
    signals: Array  # (M, D)
    readings: Array  # (M, D)
    W: Array  # (Q, D)
    noise: Array  # (D,)

    def predicted(self) -> tuple[Array, Array]:
        """Means and standard deviations of readings at X_new, from neighbours, by the truth."""
        seen = Observations.from_table(self.X, self.Y)
        given = KERNELS, self.W[None, :, :, None], np.diag(self.noise), NEIGHBOURS
        belief = condition_on_neighbours(seen, self.X_new, *given)
        variance = np.einsum("mdd->md", belief.cov[0]) + self.noise
        return belief.mean[0], np.sqrt(variance)


def draw(N: int, D: int, M: int, *, seed: int = 0) -> Known:
    """N places to learn from and M to predict, all different.

    >>> drawn = draw(50, 2, 10)
    >>> drawn.Y.shape, drawn.signals.shape
    ((50, 2), (10, 2))
    """
    rng = np.random.default_rng([seed, N, D])
    side = 64
    while side**2 < 3 * (N + M):
        side *= 2
    at = rng.choice(side**2, N + M, replace=False)
    X = np.column_stack(np.divmod(at, side)) / side
    latents = np.column_stack([_field(kernel, side, rng).ravel()[at] for kernel in KERNELS])
    W = rng.normal(size=(len(KERNELS), D))
    W /= np.linalg.norm(W, axis=0)
    noise = np.linspace(0.05, 0.2, D)
    signals = latents @ W
    readings = signals + np.sqrt(noise) * rng.normal(size=signals.shape)
    Y = np.where(rng.uniform(size=(N, D)) < MISSING, np.nan, readings[:N])
    return Known(X[:N], Y, X[N:], signals[N:], readings[N:], W, noise)


def _field(kernel: Kernel, side: int, rng: np.random.Generator) -> Array:
    """A draw of the process on a grid of the unit square."""
    n = 2 * side
    lag = np.minimum(np.arange(n), n - np.arange(n)) / side
    lags = np.linspace(0.0, 1.5, 30_001)
    along = kernel(np.zeros((1, 1)), lags[:, None])[0]
    spectrum = fft.rfft2(np.interp(np.hypot(lag[:, None], lag), lags, along)).real
    white = fft.rfft2(rng.normal(size=(n, n)))
    # What is below zero is rounding, and how little a smooth covariance has at the far end.
    return fft.irfft2(white * np.sqrt(np.maximum(spectrum, 0.0)), s=(n, n))[:side, :side]
