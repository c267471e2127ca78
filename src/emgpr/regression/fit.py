"""The weights of the settings of a regression, by how well each predicts left-out readings.

Readings are left out in two ways. "Near": single readings, as where the readings of the output
are scattered among those of other outputs. "Far": folds that consist of blocks of neighbouring
readings, as in a gap. For each way, a setting has a weight in the mixture of all settings, and a
variance that is scaled such that its squared errors agree with its predicted variances.

No parameters are optimised: given a setting, all predictions have a closed form.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from emgpr.arrays import cholesky, inv
from emgpr.mixture_weights import gaussian_log_density, mixture_moments, stacking_weights
from emgpr.regression.drift import Drift
from emgpr.regression.rows import RegressionRows
from emgpr.regression.settings import (
    Residual,
    Setting,
    all_settings,
    drift_priors,
    residual_models,
)

Array = np.ndarray
Moments = tuple[Float[Array, " n"], Float[Array, " n"]]  # mean and variance of each reading

# Numbers of independent readings that left-out readings count as, near and far.
NEAR_READINGS, FAR_READINGS = 100.0, 30.0
MIN_WEIGHT, MAX_SETTINGS = 0.02, 8  # settings with the largest weights are kept


@dataclass(frozen=True)
class FittedRegression:
    """The settings with large weights, and their weights and variances, near and far."""

    kept: tuple[Setting, ...]
    weights: Float[Array, "2 C"]
    variances: Float[Array, "2 C"]  # of residual process and noise


class LeftOutRegression(NamedTuple):
    """A fitted regression, and its predictions of left-out readings, near and far."""

    fitted: FittedRegression
    near: Moments
    far: Moments


def fit_regression(
    kernel: str,
    rows: RegressionRows,
    y: Float[Array, " n"],
    folds: Int[Array, " n"],
    scored: Bool[Array, " n"],
    *,
    varying: bool = False,
) -> LeftOutRegression:
    """Fit a regression to readings y, and predict each of them from the others.

    `kernel` is the name of the residual process's kernel. `folds` numbers the readings that are
    left out together far from others, and `scored` marks those whose neighbours are among the
    rows, for which the pattern "near" is meaningful.
    """
    mean, variance = _left_out(kernel, rows, y, folds, varying)
    scale = np.stack(
        [
            np.mean((y[use] - mean[i][:, use]) ** 2 / variance[i][:, use], axis=1)
            for i, use in enumerate((scored, np.ones_like(scored)))
        ]
    )
    scale = np.maximum(scale, np.finfo(float).tiny)
    variance *= scale[..., None]
    log_density = gaussian_log_density(y, mean, variance)
    equal = np.full(mean.shape[1], 1.0 / mean.shape[1])
    weights = np.stack(
        [
            stacking_weights(log_density[0][:, scored].T, equal, NEAR_READINGS),
            stacking_weights(log_density[1].T, equal, FAR_READINGS),
        ]
    )
    kept = _largest(weights)
    weights = weights[:, kept] / weights[:, kept].sum(axis=1, keepdims=True)
    chosen = tuple(all_settings(varying)[c] for c in kept)
    near, far = (mixture_moments(weights[i], mean[i, kept], variance[i, kept]) for i in (0, 1))
    return LeftOutRegression(FittedRegression(chosen, weights, scale[:, kept]), near, far)


def _left_out(
    kernel: str,
    rows: RegressionRows,
    y: Float[Array, " n"],
    folds: Int[Array, " n"],
    varying: bool,
) -> tuple[Float[Array, "2 C n"], Float[Array, "2 C n"]]:
    """Return mean and variance of every reading for each setting, near and far."""
    drift = Drift.around(rows)
    H, priors = drift.features(rows), drift_priors()
    deviations = [prior.deviations(drift) for prior in priors]
    members = [np.flatnonzero(folds == fold) for fold in np.unique(folds)]
    found = [
        left_out_of_residual(kernel, residual, rows, y, H, deviations, members)
        for residual in residual_models(varying)
    ]
    mean, variance = (np.concatenate(part, axis=1) for part in zip(*found, strict=True))
    return mean, variance


def left_out_of_residual(
    kernel: str,
    residual: Residual,
    rows: RegressionRows,
    y: Float[Array, " n"],
    H: Float[Array, "n q"],
    deviations: Sequence[Float[Array, " q"]],
    folds: Sequence[Int[Array, " _"]],
) -> tuple[Float[Array, "2 c n"], Float[Array, "2 c n"]]:
    """Return left-out means and variances for one residual process and each prior.

    With P the precision matrix of all readings and a = Py, the readings in a set b have the mean
    y_b − P_b⁻¹ a_b and the covariance P_b⁻¹. With R the precision matrix of the residuals and V the
    covariance of the coefficients given the readings, P = R − RH V HᵀR.
    """
    cov = residual.covariance(kernel, rows, rows)
    cov[np.diag_indices_from(cov)] += residual.noise(rows)
    R = cholesky(cov).checked("covariance of a regression on known outputs").inverse()
    RH, Ry = R @ H, R @ y
    information = H.T @ RH
    mean, variance = np.empty((2, 2, len(deviations), len(y)))
    for i, deviation in enumerate(deviations):
        root = coefficient_root(information, deviation)
        half = RH @ root  # P = R − half halfᵀ
        a = Ry - half @ (half.T @ y)
        variance[0, i] = 1.0 / (np.diagonal(R) - (half**2).sum(axis=1))
        mean[0, i] = y - variance[0, i] * a
        for b in folds:
            S = inv(R[np.ix_(b, b)] - half[b] @ half[b].T)
            mean[1, i, b], variance[1, i, b] = y[b] - S @ a[b], np.diagonal(S)
    return mean, np.maximum(variance, np.finfo(float).tiny)


def coefficient_root(
    information: Float[Array, "q q"], deviation: Float[Array, " q"]
) -> Float[Array, "q q"]:
    """Return a root of the covariance of coefficients with these prior deviations (0: not used)."""
    scaled = deviation[:, None] * information * deviation
    factor = cholesky(scaled + np.eye(len(deviation)))
    return deviation[:, None] * factor.back_solve(np.eye(len(deviation)))


def _largest(weights: Float[Array, "2 C"]) -> Int[Array, " c"]:
    """Return the settings with large weights near or far, in ascending order."""
    order = [np.argsort(-w, kind="stable")[:MAX_SETTINGS] for w in weights]
    large = [chosen[w[chosen] >= MIN_WEIGHT] for chosen, w in zip(order, weights, strict=True)]
    return np.unique(np.concatenate([*large, *(chosen[:1] for chosen in order)]))
