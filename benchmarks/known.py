"""Simulated readings at very many sites, and predictions with the true parameters.

Three processes are drawn on a fine grid in the unit square by circulant embedding, which uses a
fast Fourier transform of the covariance on a torus twice as wide. The D outputs are weighted sums
of the processes with known weights, plus noise. A fifth of the readings is missing.
"""

from dataclasses import dataclass

import numpy as np
from scipy import fft
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from emgpr.observations import Observations
from emgpr.prediction import LMCModel, condition_on_neighbours

Array = np.ndarray

KERNELS = (Matern(0.02, nu=1.5), Matern(0.1, nu=1.5), RBF(0.3))
MISSING_SHARE = 0.2  # of the readings
N_NEIGHBOURS = 16  # number of readings of each output that a prediction is conditioned on


@dataclass(frozen=True)
class KnownModel:
    """A table (X, Y) with NaN for missing readings, true parameters, and test data at X_new."""

    X: Array  # (N, 2)
    Y: Array  # (N, D)
    X_new: Array  # (M, 2)
    signals: Array  # (M, D)
    readings: Array  # (M, D)
    W: Array  # (Q, D)
    noise: Array  # (D,)

    def predict_with_truth(self) -> tuple[Array, Array]:
        """Return predicted means and standard deviations at X_new, using the true parameters."""
        observations = Observations.from_table(self.X, self.Y)
        model = LMCModel(KERNELS, self.W[None, :, :, None], np.diag(self.noise))
        distribution = condition_on_neighbours(observations, self.X_new, model, N_NEIGHBOURS)
        variance = np.einsum("mdd->md", distribution.cov[0]) + self.noise
        return distribution.mean[0], np.sqrt(variance)


def draw(N: int, D: int, M: int, *, seed: int = 0) -> KnownModel:
    """Simulate a table of N sites and M other locations to predict.

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
    Y = np.where(rng.uniform(size=(N, D)) < MISSING_SHARE, np.nan, readings[:N])
    return KnownModel(X[:N], Y, X[N:], signals[N:], readings[N:], W, noise)


def _field(kernel: Kernel, side: int, rng: np.random.Generator) -> Array:
    """Draw a process on a grid in the unit square."""
    n = 2 * side
    lag = np.minimum(np.arange(n), n - np.arange(n)) / side
    lags = np.linspace(0.0, 1.5, 30_001)
    along = kernel(np.zeros((1, 1)), lags[:, None])[0]
    spectrum = fft.rfft2(np.interp(np.hypot(lag[:, None], lag), lags, along)).real
    white = fft.rfft2(rng.normal(size=(n, n)))
    # Negative values are due to rounding and the truncation of the covariance.
    return fft.irfft2(white * np.sqrt(np.maximum(spectrum, 0.0)), s=(n, n))[:side, :side]
