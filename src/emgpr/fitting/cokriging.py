"""The fit of a variogram model, from a training table to the posterior of ordinary co-kriging."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Kernel

from emgpr.cokriging import VariogramModel, fit_variograms
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
)
from emgpr.transforms import OutputScaler
from emgpr.user_warnings import warn

Array = np.ndarray

NO_NUGGET = 1e-5  # relative to the variance of an output


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
    scaler, observations = standardise(table, settings, in_columns, execution)
    fitted = fit_variograms(observations, kernels, n_lags, max_lag)
    if fitted.message:
        warn(f"Variograms: {fitted.message}.", ConvergenceWarning)
    _warn_without_nugget(fitted.model, observations)
    variances = mean_variance * output_variances(observations)
    summary = CoKrigingSummary(fitted.misfit, not fitted.message, fitted.n_iter, variances)
    posterior = cokriging_posterior(
        observations, fitted.model, variances, "all", automatic=is_auto(settings.conditioning)
    )
    if posterior.automatic:
        conditioning = affordable_conditioning(observations, posterior.model)
    else:
        conditioning = bounded_conditioning(settings.conditioning, observations)
    posterior = replace(posterior, conditioning=conditioning)
    return FittedCoKriging(scaler, fitted.model, posterior, summary)


def _warn_without_nugget(model: VariogramModel, observations: Observations) -> None:
    """Warn if no output has a nugget, so that predictions from other outputs are too certain."""
    varies = ~observations.constant & (observations.observed.sum(axis=1) > 1)
    share = np.diagonal(model.nugget)[varies] / output_variances(observations)[varies]
    if len(share) > 1 and (share < NO_NUGGET).all():
        warn(
            "The nuggets of all outputs are zero, so that readings are treated as exact. If they "
            "are not, intervals are far too narrow where other outputs are known. Compare the "
            'coverage in cross_validate(by="output"), and use EMGPR if it is low. Variograms of '
            "outputs that were measured at different sites often lead to nuggets of zero."
        )


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
