"""The fit of convolved multiple-output processes, from a training table to a posterior."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from emgpr.convolution import MAX_READINGS, FittedConvolution, SearchResult, fit_convolution
from emgpr.fitting.defaults import FitSettings
from emgpr.fitting.fit import independent_model
from emgpr.fitting.output_order import OutputOrder
from emgpr.fitting.standardise import standardise
from emgpr.inputs import TrainingTable
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.parameter_checks import check_single_kernel
from emgpr.prediction import DensePosterior
from emgpr.transforms import OutputScaler
from emgpr.user_warnings import warn


@dataclass(frozen=True)
class SearchSummary:
    """Results of the searches from all starting points, and whether the best one converged."""

    log_likelihood: float
    converged: bool
    n_iter: int
    searches: Sequence[SearchResult]


@dataclass(frozen=True)
class FittedCMOGP:
    """A fitted convolved multiple-output process."""

    scaler: OutputScaler
    posterior: DensePosterior
    summary: SearchSummary


def fit_cmogp(
    table: TrainingTable,
    settings: FitSettings,
    kernel: RBF,
    own_processes: bool,
    rng: np.random.Generator,
    execution: Execution,
) -> FittedCMOGP:
    """Fit output transforms, then the covariance and the noise of all outputs together."""
    check_number_of_readings(table)
    order = OutputOrder.of_readings(table.Y, settings)
    scaler, observations = standardise(table, settings, order, execution)
    fitted = fit_convolution(
        observations,
        int(settings.n_latents or 1),
        own_processes=own_processes,
        kernel=kernel,
        weak_prior=settings.prior == "weak",
        n_restarts=settings.n_restarts,
        max_iter=settings.max_iter,
        rng=rng,
        names=scaler.names,
        execution=execution,
    )
    if fitted.message:
        warn(f"Convolved processes: {fitted.message}.", ConvergenceWarning)
    summary = SearchSummary(
        fitted.best.log_likelihood, not fitted.message, fitted.best.n_iter, fitted.searches
    )
    posterior = _posterior(fitted, observations, order, fixed=kernel.n_dims == 0)
    return FittedCMOGP(order.restored_scaler(scaler), posterior, summary)


def check_number_of_readings(table: TrainingTable) -> None:
    """Raise ValueError if a table has more readings than convolved processes can be fitted to."""
    n = int((~np.isnan(table.Y)).sum())
    if n > MAX_READINGS:
        raise ValueError(
            f"The table has {n} readings; CMOGP takes at most {MAX_READINGS}, because its "
            "likelihood needs the covariance of all of them. Fit it to a part of the table, or use "
            "EMGPR, which has no such limit."
        )


def check_rbf(kernel: Any) -> RBF:
    """Return the kernel of the latent processes; raise ValueError unless it is an isotropic RBF."""
    if kernel is None or (isinstance(kernel, str) and kernel == "rbf"):
        return RBF()
    if type(kernel) is not RBF:
        raise ValueError(
            f"kernel={kernel!r}; expected 'rbf', an RBF kernel, or None. CMOGP takes only RBF "
            "kernels, because the convolutions of other kernels with Gaussian smoothing kernels "
            "have no closed form. Use LMC or EMGPR for other kernels."
        )
    if np.ndim(kernel.length_scale) > 0:
        raise ValueError(
            f"kernel={kernel!r} has a length-scale for each column of X; the smoothing kernels of "
            "CMOGP have the same width in all directions, so pass one length-scale. Columns in "
            "different units can be rescaled first."
        )
    check_single_kernel("kernel", kernel, ())
    return kernel


def _posterior(
    fitted: FittedConvolution, observations: Observations, order: OutputOrder, *, fixed: bool
) -> DensePosterior:
    """Return the posterior, with the outputs in the order of the columns.

    Widths are made as small as possible, unless the latent length-scales are `fixed`.
    """
    at = order.positions
    parameters = fitted.parameters.select_outputs(at)
    covariance = parameters.covariance
    return DensePosterior(
        observations.select_outputs(at),
        covariance if fixed else covariance.with_least_widths(),
        parameters.noise,
        independent_model([fitted.latents[d] for d in at], observations.select_outputs(at)),
    )
