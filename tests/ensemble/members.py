"""Predictions of ensemble members for tests of combination rules."""

import numpy as np
from numpy.testing import assert_allclose

L, M, D = 4, 5, 3


def a_prior(rng, *shape, D=D):
    """Prior covariances that are far from singular."""
    root = rng.normal(size=(*(shape or (M,)), D, D))
    return root @ np.swapaxes(root, -1, -2) + 0.1 * np.eye(D)


def given_readings(rng, prior, n=L):
    """Means and covariances of n members after one noisy reading each, its precision and value."""
    D = prior.shape[-1]
    root = rng.normal(size=(n, *prior.shape))
    J = root @ np.swapaxes(root, -1, -2)
    covs = np.linalg.inv(np.linalg.inv(prior) + J)
    y = rng.normal(size=(n, len(prior), D))
    return np.einsum("lmij,lmjk,lmk->lmi", covs, J, y), covs, J, y


def assert_same(ours, theirs, **tolerance):
    for a, b in zip(ours, theirs, strict=True):
        assert_allclose(a, b, **{"rtol": 1e-7, "atol": 1e-9, **tolerance})
