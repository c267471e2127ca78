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

from emgpr.arrays import cholesky, inv, limit_threads
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
# Numbers of readings that the priors of the settings' weights are worth. In gaps, the settings
# without a residual process have this share of the prior: their predictions, those of a regression
# for the whole region, are right in many gaps, which the few left-out blocks need not show.
NEAR_PRIOR, FAR_PRIOR = 1.0, 4.0
FAR_SHARE_WITHOUT_PROCESS = 0.3
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


@limit_threads(0)  # a regression is fitted to few rows
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
    equal = np.full(mean.shape[1], NEAR_PRIOR / mean.shape[1])
    weights = np.stack(
        [
            stacking_weights(log_density[0][:, scored].T, equal, NEAR_READINGS),
            stacking_weights(log_density[1].T, _prior_in_gaps(varying), FAR_READINGS),
        ]
    )
    kept = _largest(weights)
    weights = weights[:, kept] / weights[:, kept].sum(axis=1, keepdims=True)
    chosen = tuple(all_settings(varying)[c] for c in kept)
    near, far = (mixture_moments(weights[i], mean[i, kept], variance[i, kept]) for i in (0, 1))
    return LeftOutRegression(FittedRegression(chosen, weights, scale[:, kept]), near, far)


def _prior_in_gaps(varying: bool) -> Float[Array, " C"]:
    """Return the number of readings that the prior in gaps is worth for each setting."""
    residuals = [setting.residual for setting in all_settings(varying)]
    simple = np.array([not residual.share and not residual.varying for residual in residuals])
    shares = np.where(simple, FAR_SHARE_WITHOUT_PROCESS, 1.0 - FAR_SHARE_WITHOUT_PROCESS)
    return FAR_PRIOR * shares / np.where(simple, simple.sum(), (~simple).sum())


def _left_out(
    kernel: str,
    rows: RegressionRows,
    y: Float[Array, " n"],
    folds: Int[Array, " n"],
    varying: bool,
) -> tuple[Float[Array, "2 C n"], Float[Array, "2 C n"]]:
    """Return mean and variance of every reading for each setting, near and far."""
    drift = Drift.around(rows)
    H = drift.features(rows)
    deviations = np.stack([prior.deviations(drift) for prior in drift_priors()])
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
    deviations: Float[Array, "c q"],
    folds: Sequence[Int[Array, " _"]],
) -> tuple[Float[Array, "2 c n"], Float[Array, "2 c n"]]:
    """Return left-out means and variances for one residual process and each prior.

    With R the precision matrix of the residuals, the residual process without drift leaves in a set
    b of readings the errors R_b⁻¹ (Ry)_b, with the covariance R_b⁻¹, and in the features
    U = R_b⁻¹ (RH)_b. With β and V the mean and covariance of the coefficients given the other
    readings, the errors of the regression are R_b⁻¹ (Ry)_b − Uβ, with the covariance
    R_b⁻¹ + UVUᵀ.

    A single reading does not need its own V: with P the precision matrix of all readings, its error
    is (Py)_i / P_ii, with the variance 1 / P_ii. With V that of all readings, P = R − RH V HᵀR.
    """
    cov = residual.covariance(kernel, rows, rows)
    cov[np.diag_indices_from(cov)] += residual.noise(rows)
    R = cholesky(cov).checked("covariance of a regression on known outputs").inverse()
    RH, Ry = R @ H, R @ y
    information, gradient = H.T @ RH, H.T @ Ry
    error, variance = np.empty((2, 2, len(deviations), len(y)))
    beta, root = coefficients(information, gradient, deviations)
    variance[0] = 1.0 / (np.diagonal(R) - ((RH @ root) ** 2).sum(axis=-1))
    error[0] = variance[0] * (Ry - beta @ RH.T)
    for b in folds:
        S = inv(R[np.ix_(b, b)])
        U, of_residual = S @ RH[b], S @ Ry[b]
        beta, root = coefficients(
            information - RH[b].T @ U, gradient - RH[b].T @ of_residual, deviations
        )
        variance[1][:, b] = np.diagonal(S) + ((U @ root) ** 2).sum(axis=-1)
        error[1][:, b] = of_residual - beta @ U.T
    return y - error, np.maximum(variance, np.finfo(float).tiny)


def coefficients(
    information: Float[Array, "q q"], gradient: Float[Array, " q"], deviations: Float[Array, "*c q"]
) -> tuple[Float[Array, "*c q"], Float[Array, "*c q q"]]:
    """Return mean and root of the covariance of the coefficients, given HᵀRH and HᵀRy.

    `deviations` are the standard deviations of their prior distributions (0: not used).
    """
    scaled = deviations[..., :, None] * information * deviations[..., None, :]
    identity = np.broadcast_to(np.eye(len(gradient)), scaled.shape)
    root = deviations[..., :, None] * cholesky(scaled + identity).back_solve(identity)
    projected = np.swapaxes(root, -1, -2) @ gradient
    return (root @ projected[..., None])[..., 0], root


def _largest(weights: Float[Array, "2 C"]) -> Int[Array, " c"]:
    """Return the settings with large weights near or far, in ascending order."""
    order = [np.argsort(-w, kind="stable")[:MAX_SETTINGS] for w in weights]
    large = [chosen[w[chosen] >= MIN_WEIGHT] for chosen, w in zip(order, weights, strict=True)]
    return np.unique(np.concatenate([*large, *(chosen[:1] for chosen in order)]))
