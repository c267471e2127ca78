"""The fit of a Gaussian process regression network, from a training table to a posterior."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from emgpr.arrays import JitterWarning
from emgpr.fitting.defaults import FitSettings
from emgpr.fitting.fit import independent_model
from emgpr.fitting.output_order import OutputOrder
from emgpr.fitting.standardise import standardise
from emgpr.inputs import TrainingTable
from emgpr.kernels import NAMED_KERNELS
from emgpr.latents import Latent, choose_learner, fit_latents, learner_by_name
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.parameter_checks import check_single_kernel
from emgpr.regression_network import (
    MAX_SITES,
    Moments,
    NetworkKernels,
    NetworkPosterior,
    NetworkProblem,
    NetworkSearch,
    fit_network,
)
from emgpr.transforms import OutputScaler
from emgpr.user_warnings import warn


@dataclass(frozen=True)
class NetworkSummary:
    """The bound, results of all searches, and whether the search that was kept converged."""

    bound: float
    converged: bool
    n_iter: int
    searches: Sequence[NetworkSearch]


@dataclass(frozen=True)
class FittedGPRN:
    """A fitted Gaussian process regression network."""

    scaler: OutputScaler
    posterior: NetworkPosterior
    summary: NetworkSummary


def fit_gprn(
    table: TrainingTable,
    settings: FitSettings,
    kernels: NetworkKernels,
    *,
    constant_weights: bool,
    equal_noise: bool,
    rng: np.random.Generator,
    execution: Execution,
) -> FittedGPRN:
    """Fit output transforms, then nodes, weights and noise of all outputs together."""
    check_number_of_sites(table)
    order = OutputOrder.of_readings(table.Y, settings)
    scaler, observations = standardise(table, settings, order, execution)
    latents = _fit_alone(observations, kernels, settings, rng, execution)
    fitted = fit_network(
        NetworkProblem(observations, kernels, equal_noise),
        int(settings.n_latents or 1),
        constant_weights=constant_weights,
        n_restarts=settings.n_restarts,
        max_iter=settings.max_iter,
        rng=rng,
        execution=execution,
    )
    best = fitted.best
    if not best.converged:
        warn(
            f"Regression network: the search did not converge within max_iter={settings.max_iter} "
            "iterations; increase max_iter.",
            ConvergenceWarning,
        )
    at, given = order.positions, fitted.state.given
    # As in a model file: another memory layout would change the rounding of predictions.
    given = Moments(np.ascontiguousarray(given.mean), np.ascontiguousarray(given.cov))
    reordered = observations.select_outputs(at)
    posterior = NetworkPosterior(
        reordered,
        kernels,
        fitted.state.parameters.select_outputs(at),
        given,
        independent_model([latents[d] for d in at], reordered),
    )
    summary = NetworkSummary(best.bound, best.converged, best.n_iter, fitted.searches)
    return FittedGPRN(order.restored_scaler(scaler), posterior, summary)


def check_number_of_sites(table: TrainingTable) -> None:
    """Raise ValueError if a table has more sites than a network can be fitted to."""
    if len(table.x) > MAX_SITES:
        raise ValueError(
            f"The table has {len(table.x)} sites; GPRN takes at most {MAX_SITES}, because it needs "
            "the covariance of all latent processes at all sites. Fit it to a part of the table, "
            "or use EMGPR, which has no such limit."
        )


def check_network_kernel(name: str, kernel: Any) -> RBF:
    """Return a kernel of the network; raise ValueError unless it is an isotropic RBF or Matérn.

    >>> check_network_kernel("kernel", "matern32")
    Matern(length_scale=1, nu=1.5)
    """
    if isinstance(kernel, Kernel) and type(kernel) not in (RBF, Matern):
        raise ValueError(
            f"{name}={kernel!r}; GPRN takes only RBF and Matérn kernels, in which the length-scale "
            "is the only parameter. Use LMC or EMGPR for other kernels."
        )
    check_single_kernel(name, kernel, tuple(NAMED_KERNELS))
    found = RBF() if kernel is None else kernel
    found = NAMED_KERNELS[found] if isinstance(found, str) else found
    if np.ndim(found.length_scale) > 0:
        raise ValueError(
            f"{name}={kernel!r} has a length-scale for each column of X; kernels of GPRN have the "
            "same length-scale in all directions, so pass one length-scale. Columns in different "
            "units can be rescaled first."
        )
    return found


def _fit_alone(
    observations: Observations,
    kernels: NetworkKernels,
    settings: FitSettings,
    rng: np.random.Generator,
    execution: Execution,
) -> list[Latent]:
    """Fit a kernel and a noise variance to each output alone, for predictions without transfer."""
    learner = learner_by_name(choose_learner("auto", observations))
    with warnings.catch_warnings():
        # These models are used only for comparison.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", JitterWarning)
        return fit_latents(
            observations, [kernels.nodes] * observations.n_outputs, learner,
            n_restarts=settings.n_restarts, max_iter=settings.max_iter, rng=rng,
            weak_prior=False, execution=execution,
        )  # fmt: skip
