"""The fit of a variogram model, from a training table to the posterior of ordinary co-kriging."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from emgpr.cokriging import (
    MIN_COMMON_SITES,
    VariogramModel,
    averages,
    centred,
    fit_variograms,
)
from emgpr.fitting.defaults import FitSettings
from emgpr.fitting.output_order import OutputOrder
from emgpr.fitting.standardise import standardise
from emgpr.inputs import TrainingTable
from emgpr.noise import output_variances
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.parameter_checks import is_auto
from emgpr.prediction import (
    Conditioning,
    LMCPosterior,
    affordable_conditioning,
    bounded_conditioning,
    leave_out,
)
from emgpr.transforms import OutputScaler
from emgpr.user_warnings import warn

Array = np.ndarray

NO_NUGGET = 1e-5  # relative to the variance of an output
NORMAL_95 = 1.96
LOW_COVERAGE = 0.8  # of 95% intervals, as with standard deviations that are too small by a third
FEW_COMMON = 0.5  # share of the sites with one of two outputs at which both were measured
MIN_CHECKED, MAX_CHECKED = 20, 1500  # readings of an output, and of all, to estimate the coverage


@dataclass(frozen=True)
class CoKrigingSummary:
    """Weighted sum of squares of the fitted variograms, and whether the search converged.

    `mean_variances` are the prior variances of the outputs' means.
    """

    misfit: float
    converged: bool
    n_iter: int
    mean_variances: Float[Array, " D"]


@dataclass(frozen=True)
class FittedCoKriging:
    """A fitted variogram model, and the posterior given all readings."""

    scaler: OutputScaler
    model: VariogramModel
    posterior: LMCPosterior
    summary: CoKrigingSummary


def fit_cokriging(
    table: TrainingTable,
    settings: FitSettings,
    kernels: list[Kernel],
    n_lags: int,
    max_lag: float | None,
    mean_variance: float,
    execution: Execution,
) -> FittedCoKriging:
    """Fit output transforms, then ranges and sills to the variograms of all outputs.

    `mean_variance` is the prior variance of each mean, relative to the variance of the readings.
    """
    in_columns = OutputOrder(np.arange(table.Y.shape[1]))  # no step depends on the order
    scaler, observations = _centred_scaler(*standardise(table, settings, in_columns, execution))
    fitted = fit_variograms(observations, kernels, n_lags, max_lag)
    if fitted.message:
        warn(f"Variograms: {fitted.message}.", ConvergenceWarning)
    variances = mean_variance * output_variances(observations)
    summary = CoKrigingSummary(fitted.misfit, not fitted.message, fitted.n_iter, variances)
    posterior = cokriging_posterior(
        observations, fitted.model, variances, "all", automatic=is_auto(settings.conditioning)
    )
    _warn_of_narrow_intervals(posterior, table.output_names)
    if posterior.automatic:
        conditioning = affordable_conditioning(observations, posterior.model)
    else:
        conditioning = bounded_conditioning(settings.conditioning, observations)
    posterior = replace(posterior, conditioning=conditioning)
    return FittedCoKriging(scaler, fitted.model, posterior, summary)


def _centred_scaler(
    scaler: OutputScaler, observations: Observations
) -> tuple[OutputScaler, Observations]:
    """Subtract the averages of the readings, so that a constant added to an output has no effect.

    With `normalize_y=True`, they are zero already.
    """
    shift = scaler.shift + averages(observations) * scaler.scale
    return replace(scaler, shift=shift), centred(observations)


def _warn_of_narrow_intervals(posterior: LMCPosterior, names: Sequence[str]) -> None:
    """Warn if intervals are far too narrow, or if it is unknown where other outputs are known.

    Each reading is predicted from all others. If no sites have readings of several outputs, this
    does not show how uncertain predictions from other outputs are; nuggets of zero are then a sign
    that they are not uncertain enough.
    """
    table = posterior.observations
    varies = ~table.constant & (table.observed.sum(axis=1) > 1)
    nugget = np.diagonal(posterior.model.noise)[varies] / output_variances(table)[varies]
    if table.n_outputs > 1 and (table.observed.sum(axis=0) > 1).sum() < MIN_COMMON_SITES:
        if len(nugget) > 1 and (nugget < NO_NUGGET).all():
            warn(
                "The nuggets of all outputs are zero, so that readings are treated as exact, and "
                f"fewer than {MIN_COMMON_SITES} sites have readings of several outputs, so that "
                "intervals where other outputs are known cannot be checked. They can be far too "
                "narrow; EMGPR is preferable."
            )
        return
    coverage = left_out_coverage(posterior)
    low = [
        f"{share:.0%} for {name}"
        for share, name in zip(coverage, names, strict=True)
        if share < LOW_COVERAGE
    ]
    if low:
        warn(
            f"Intervals are far too narrow{' where other outputs are known' * (len(names) > 1)}. "
            "If each training reading is predicted from all others, the share of readings inside "
            f"their 95% intervals is {', '.join(low)}. {_advice(table)}"
        )


def _advice(table: Observations) -> str:
    """Return what to do if intervals are too narrow, and the reason if common sites are few."""
    observed = table.observed.astype(int)
    common, missing = observed @ observed.T, (1 - observed) @ (1 - observed).T
    if (common < FEW_COMMON * (table.n_sites - missing)).any():
        return (
            "Variograms of outputs that have few sites in common often lead to such models; EMGPR "
            "is preferable."
        )
    return (
        "The fitted nugget is probably too small; compare variograms with the model at short lags "
        "(emgpr.plots.variograms) and try other structures, or use EMGPR."
    )


def left_out_coverage(posterior: LMCPosterior) -> Float[Array, " D"]:
    """Return the share of readings inside their 95% intervals, predicted from all others.

    Large tables are represented by some of their sites. The share is NaN for an output with few
    readings.
    """
    table = posterior.observations
    table = table.at(table.subsample(max(MIN_CHECKED, MAX_CHECKED // table.n_outputs)))
    sets = np.arange(table.y.size).reshape(table.y.shape)
    left_out = leave_out(table, sets, posterior.model)
    variance = np.einsum("ndd->dn", left_out.cov[0])
    inside = (table.y - left_out.mean[0].T) ** 2 <= NORMAL_95**2 * variance
    n = table.observed.sum(axis=1)
    share = (inside & table.observed).sum(axis=1) / np.maximum(n, 1)
    return np.where(n >= MIN_CHECKED, share, np.nan)


def cokriging_posterior(
    observations: Observations,
    model: VariogramModel,
    mean_variances: Float[Array, " D"],
    conditioning: Conditioning,
    *,
    automatic: bool,
) -> LMCPosterior:
    """Return the posterior given the readings, with unknown means of the outputs."""
    joint, alone = (m.with_unknown_means(mean_variances) for m in (model, model.direct()))
    sites = (np.arange(observations.n_sites),)
    return LMCPosterior(
        observations, joint, sites, conditioning, automatic=automatic, independent=alone
    )
