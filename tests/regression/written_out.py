"""The Gaussian process of a setting, written out with a dense covariance."""

import numpy as np
from scipy.spatial.distance import cdist

from emgpr.regression import RegressionRows, Setting
from emgpr.regression.drift import NUGGET, SMOOTH_SCALE
from emgpr.regression.settings import (
    CONSTANT_VARIANCE,
    IMPUTED_NOISE,
    MIN_NOISE,
    VARYING_SCALE,
)

CORRELATIONS = {
    "matern12": lambda r: np.exp(-r),
    "matern32": lambda r: (1 + np.sqrt(3) * r) * np.exp(-np.sqrt(3) * r),
    "matern52": lambda r: (1 + np.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-np.sqrt(5) * r),
    "rbf": lambda r: np.exp(-0.5 * r**2),
}


def simulated_rows(rng, n=14, k=3, P=2, imputed=False) -> RegressionRows:
    """Random locations and known outputs; with `imputed`, every second row has imputed values."""
    variances = rng.uniform(0.1, 0.9, size=(n, k)) * (np.arange(n) % 2)[:, None] * imputed
    return RegressionRows.build(rng.uniform(size=(n, P)), rng.normal(size=(n, k)), variances)


def residual_covariance(kernel, residual, a, b):
    """Covariance of the residual processes, without noise."""
    distance = cdist(a.x, b.x)
    total = residual.share * CORRELATIONS[kernel](distance / residual.length_scale)
    changes = residual.varying * CORRELATIONS[kernel](distance / VARYING_SCALE)
    return total + a.z @ b.z.T * changes


def drift_covariance(prior, centres, a, b):
    """Covariance of the drifts of two sets of rows: constant, linear part and smooth part."""

    def rbf(u, v):
        return np.exp(-0.5 * (cdist(u, v) / SMOOTH_SCALE) ** 2)

    between = rbf(centres, centres) + NUGGET * np.eye(len(centres))
    smooth = rbf(a.z, centres) @ np.linalg.solve(between, rbf(centres, b.z))
    return CONSTANT_VARIANCE + prior.linear * (a.z @ b.z.T + prior.smooth * smooth)


def covariance(kernel, setting: Setting, centres, a, b):
    """Covariance of the signals, drift and residual process."""
    residual, prior = setting
    return residual_covariance(kernel, residual, a, b) + drift_covariance(prior, centres, a, b)


def noise(residual, rows):
    """Noise variances: what the residual process leaves, and that of imputed values."""
    return 1 - residual.share + MIN_NOISE + IMPUTED_NOISE * rows.imputed


def predict(kernel, setting, centres, rows, y, new, include_noise=True):
    """Mean and joint covariance at new rows by plain inversion, for a total variance of one."""
    K = covariance(kernel, setting, centres, rows, rows)
    K = K + np.diag(noise(setting.residual, rows))
    cross = covariance(kernel, setting, centres, rows, new)
    cov = covariance(kernel, setting, centres, new, new) - cross.T @ np.linalg.solve(K, cross)
    if include_noise:
        cov = cov + np.diag(noise(setting.residual, new))
    return cross.T @ np.linalg.solve(K, y), cov


def mixture(weights, means, covs):
    """Mean and joint covariance of a mixture of Gaussians with weights (C,)."""
    mean = np.tensordot(weights, means, 1)
    shifts = means - mean
    return mean, np.tensordot(weights, covs + shifts[:, :, None] * shifts[:, None, :], 1)
