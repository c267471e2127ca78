"""Features on small grids, and covariances written in them."""

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from emgpr.fourier.grid import FrequencyGrid
from emgpr.fourier.resolution import FeatureChoice, Resolution

ALL = Resolution(1e-9, 1e-9, 10**6, 10**6)  # every frequency of a grid


def small_grid(P, max_harmonic=3):
    return FrequencyGrid((-0.1,) * P, (2.0,) * P, (max_harmonic,) * P)


def small_features(P, Q, max_harmonic=3, strides=None):
    """All features of a small grid, of which latent 1 uses every second frequency only."""
    choice = FeatureChoice([RBF(0.05)] * Q, np.ones(Q), ALL)
    return choice.on_grid(small_grid(P, max_harmonic), strides or (1, 2, 1)[:Q])


def covariances(features, kernels, x, z=None):
    """Σ_j s_q[j] φ_j(x) φ_j(z) for every latent q."""
    left, right = features.evaluate(x), features.evaluate(x if z is None else z)
    return np.stack([left * np.tile(s, 2) @ right.T for s in features.variances(kernels)])
