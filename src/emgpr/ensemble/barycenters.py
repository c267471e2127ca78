"""The Wasserstein barycenter of the members' predictions."""

import numpy as np
from jaxtyping import Float

from emgpr.arrays import eigh, svd
from emgpr.ensemble.base import Combined, Covariances, Means, Prior

Array = np.ndarray

MAX_CHANGE = 1e-9  # change of S^½, relative to its largest entry, below which the iteration ends
MAX_ITER = 200
# Eigenvalues of a covariance and of S^½ that are smaller than this share of the largest eigenvalue
# are treated as zero.
MIN_EIGENVALUE, MIN_ROOT_EIGENVALUE = 1e-14, 1e-8


def barycenter(means: Means, covs: Covariances, prior: Prior) -> Combined:
    """Return the Wasserstein-2 barycenter: the mean of the means, and the S that solves

    S = mean_l (S^½ C_l S^½)^½, where C_l is the covariance of member l.

    The fixed-point iteration of Álvarez-Esteban et al. (2016) is applied to S^½. It starts from the
    mean of the square roots of the C_l, which is the solution if the C_l commute. It ends when the
    relative change of S^½ is below 1e-9, usually after about ten iterations. If the C_l are
    singular in very different directions, many matrices S have almost the same mean squared
    distance from them. The iteration then ends after 200 steps, and this distance exceeds its
    minimum by at most 1e-3 of the variance. The prior is not used.

    >>> covs = np.array([1.0, 9.0]).reshape(2, 1, 1, 1)
    >>> barycenter(np.zeros((2, 1, 1)), covs, np.ones((1, 1, 1)))[1]
    array([[[4.]]])
    """
    c, V = eigh(covs)
    deviations = np.sqrt(np.where(c > MIN_EIGENVALUE * c[..., -1:], np.maximum(c, 0.0), 0.0))
    halves = deviations[..., :, None] * np.swapaxes(V, -1, -2)  # C_l = hᵀ h
    root = (V @ halves).mean(axis=0)
    active = np.arange(len(root))
    for _ in range(MAX_ITER):
        new = _iterate(root[active], halves[:, active])
        change = np.abs(new - root[active]).max(axis=(1, 2))
        change /= np.maximum(np.abs(new).max(axis=(1, 2)), np.finfo(float).tiny)
        root[active] = new
        active = active[change > MAX_CHANGE]
        if not len(active):
            break
    return means.mean(axis=0), root @ root


def _iterate(root: Float[Array, "M D D"], halves: Covariances) -> Float[Array, "M D D"]:
    """Return the next S^½, using singular values because they are more precise than eigenvalues."""
    r, U = eigh(root)
    positive = r > MIN_ROOT_EIGENVALUE * r[:, -1:]
    inverse = (U * (positive / np.where(positive, r, 1.0))[:, None, :]) @ np.swapaxes(U, -1, -2)
    _, s, Vh = svd(halves @ root)
    middle = (np.swapaxes(Vh, -1, -2) @ (s[..., :, None] * Vh)).mean(axis=0)
    U, s, _ = svd(inverse @ middle)
    return np.asarray((U * s[:, None, :]) @ np.swapaxes(U, -1, -2))
