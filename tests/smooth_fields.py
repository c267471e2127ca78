"""Smooth fields, which few Fourier features represent well, and models that fit them fast."""

import numpy as np

from emgpr import OnePassGP


def table(rng, N=400, D=2, missing=0.2):
    """Return two inputs, and correlated smooth outputs with noise of 0.2."""
    X = rng.uniform(size=(N, 2))
    f = np.sin(5 * X[:, 0]) + np.cos(4 * X[:, 1])
    Y = np.column_stack([f, 1 - 2 * f + X[:, 0], f**2][:D])
    Y = Y + 0.2 * rng.normal(size=Y.shape)
    return X, np.where(rng.uniform(size=Y.shape) < missing, np.nan, Y)


def quick(**settings):
    settings = {"n_start": 80, "n_functions": 61, "n_restarts": 2, "tolerance": 0.05} | settings
    return OnePassGP(**settings, random_state=0)
