"""The fit of a linear model of coregionalisation to empirical variograms."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import Kernel

from emgpr.cokriging.empirical import EmpiricalVariograms, centred
from emgpr.cokriging.model import VariogramModel
from emgpr.cokriging.sills import MAX_SWEEPS, TOLERANCE, fit_sills
from emgpr.cokriging.structures import correlations, range_bounds, with_ranges
from emgpr.latents import typical_distances
from emgpr.noise import output_variances
from emgpr.observations import Observations
from emgpr.prediction.joint_samples import root

Array = np.ndarray

LADDER = {1: 12, 2: 12, 3: 8}  # number of starting ranges, for the number of free ranges
SHORT_LADDER = 6  # for more free ranges
# In the search for ranges, sills need not be accurate: relative decrease of the sum of squares in a
# sweep, and number of sweeps.
SEARCH_TOLERANCE, SEARCH_SWEEPS = 1e-4, 200
RANGE_TOLERANCE = 1e-2  # of the logarithm of a range
EVALUATIONS_PER_RANGE = 100
MIN_RANGE, MAX_RANGE = 0.5, 2.0  # bounds, relative to the shortest and the longest starting range
MIN_NUGGET = 1e-6  # relative to the variance of an output, so that kriging systems can be solved


@dataclass(frozen=True)
class FittedVariograms:
    """A variogram model, its weighted sum of squares, and why the search did not converge.

    `message` is empty if it converged. A range at its bound is no reason: a variogram may still
    rise at the longest lag, where predictions depend on its slope, not on range and sill.
    """

    model: VariogramModel
    misfit: float
    n_iter: int
    message: str = ""


def fit_variograms(
    observations: Observations,
    kernels: list[Kernel],
    n_lags: int = 15,
    max_lag: float | None = None,
) -> FittedVariograms:
    """Fit the ranges of the structures, and all sill matrices.

    For given ranges, the sills that minimise the weighted sum of squares are unique. The ranges
    start from the best of all increasing sequences on a ladder of ranges, from the distance between
    neighbouring sites to the longest lag; the search then continues by the Nelder-Mead method, up
    to twice the longest lag.
    """
    empirical = EmpiricalVariograms.measure(observations, n_lags, max_lag)
    n_free = sum(kernel.n_dims for kernel in kernels)
    log_ranges, n_iter, message = np.empty(0), 0, ""
    if n_free and len(empirical.lag):
        log_ranges, n_iter, message = _search_ranges(observations, empirical, kernels, n_free)
    fitted = with_ranges(kernels, log_ranges) if len(log_ranges) == n_free else kernels
    B, misfit, converged = _fit_sills(empirical, fitted)
    if not converged:
        message = "; ".join([*([message] if message else []), "the sills did not converge"])
    return FittedVariograms(_in_units(observations, empirical, fitted, B), misfit, n_iter, message)


def _search_ranges(
    observations: Observations,
    empirical: EmpiricalVariograms,
    kernels: list[Kernel],
    n_free: int,
) -> tuple[Float[Array, " f"], int, str]:
    """Return the logarithms of the free ranges, the number of iterations, and a message."""
    longest = float(empirical.lag.max())
    shortest = min(typical_distances(observations.x)[0], longest)
    ladder = np.log(np.geomspace(shortest, longest, LADDER.get(n_free, SHORT_LADDER)))

    def misfit(log_ranges: Array) -> float:
        structures = with_ranges(kernels, log_ranges)
        return _fit_sills(empirical, structures, SEARCH_TOLERANCE, SEARCH_SWEEPS)[1]

    bounds = range_bounds(kernels, MIN_RANGE * shortest, MAX_RANGE * longest)
    low, high = bounds.T
    starts = (np.clip(ranges, low, high) for ranges in combinations(ladder, n_free))
    start = min(starts, key=misfit)
    step = np.minimum(max(RANGE_TOLERANCE, 0.5 * (ladder[1] - ladder[0])), 0.5 * (high - low))
    step = np.where(start + step > high, -step, step)
    found = minimize(
        misfit, start, method="Nelder-Mead", bounds=bounds,
        options={
            "xatol": RANGE_TOLERANCE, "fatol": SEARCH_TOLERANCE * misfit(start),
            "maxfev": EVALUATIONS_PER_RANGE * n_free,
            "initial_simplex": start + step * np.eye(n_free + 1, n_free, -1),
        },
    )  # fmt: skip
    message = "" if found.success else "the search for the ranges did not converge"
    return found.x, int(found.nit), message


def _fit_sills(
    empirical: EmpiricalVariograms,
    kernels: list[Kernel],
    tolerance: float = TOLERANCE,
    max_sweeps: int = MAX_SWEEPS,
) -> tuple[Float[Array, "S D D"], float, bool]:
    """Fit the nugget and the sills of all structures."""
    nugget = empirical.basis(np.zeros_like(empirical.lag))
    structures = [empirical.basis(correlations(kernel, empirical.lag)) for kernel in kernels]
    return fit_sills(
        empirical.value, np.stack([nugget, *structures]), empirical.weights,
        tolerance=tolerance, max_sweeps=max_sweeps, by_output=empirical.has_replicates,
    )  # fmt: skip


def _in_units(
    observations: Observations,
    empirical: EmpiricalVariograms,
    kernels: list[Kernel],
    B: Float[Array, "S D D"],
) -> VariogramModel:
    """Return the model for outputs with their own variances.

    An output without any pairs of readings has the variance of its readings as nugget.
    """
    variances = output_variances(centred(observations))
    unknown = ~np.diagonal(empirical.n_pairs, axis1=1, axis2=2).any(axis=0)
    scale = np.sqrt(np.outer(variances, variances))
    nugget = B[0] + np.diag(np.where(unknown, 1.0, MIN_NUGGET))
    return VariogramModel(tuple(kernels), root(B[1:] * scale), nugget * scale)
