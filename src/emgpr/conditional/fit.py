"""The parameters of a regression, fitted from several starts by two criteria.

The first criterion is the likelihood, the second is the density of left-out blocks of readings
(`emgpr.conditional.scores`). Each is maximised with the same weak prior.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float, Int

from emgpr.arrays import CholeskyFactor, cholesky, eigh
from emgpr.conditional.kernel import RegressionKernel, RegressionRows
from emgpr.conditional.scores import (
    BLOCK_WEIGHT,
    left_out_density,
    log_likelihood,
    split_into_blocks,
)
from emgpr.latents import typical_distances
from emgpr.noise import WeakPrior
from emgpr.observations import Observations
from emgpr.optimize import AT_BOUND, Objective, minimize

Array = np.ndarray

Score = Callable[[CholeskyFactor, Array], tuple[float, Array]]

CRITERIA = ("likelihood", "blocks")
# Members of the mixture that predicts: criterion, and whether there is no smooth part.
MEMBERS = tuple((criterion, linear) for linear in (False, True) for criterion in CRITERIA)
# Numbers of readings from which starting points and parameters are estimated. Larger tables are
# replaced by a subsample of random readings and their nearest neighbours.
START_READINGS, FIT_READINGS = 128, 600
START_ITERATIONS, N_STARTS = 15, 2  # iterations from each starting point; how many are continued
RESIDUAL_SCALES = 3  # number of starting values of the length-scale of the residual process
NOISE_STARTS = (0.02, 0.3)
GRADIENT_TOLERANCE, EXPECTED_GAIN = 1e-2, 1e-3
LOG_VARIANCE_BOUNDS = (-12.0, 4.0)
# Median and standard deviation of the log-normal priors, for standardised outputs. The priors of
# length-scales are relative to the known outputs' standard deviation and to the region's extent.
PRIORS = {
    "linear": (0.5, 2.0),
    "smooth": (0.05, 2.0),
    "smooth_scale": (1.5, 0.7),
    "residual": (0.3, 2.0),
    "varying": (0.05, 2.0),
    "varying_scale": (0.5, 1.0),
}
DIFFERENCE = 1e-3  # of log parameters, for second derivatives
MAX_DEVIATION = 1.0  # largest standard deviation of a combination of log parameters


@dataclass(frozen=True)
class FittedRegression:
    """Parameters of a regression, with their uncertainty.

    The rows of `directions` are the principal axes of the parameters' approximate posterior
    distribution (Laplace's approximation), multiplied by the standard deviations along them.
    `left_out` is the mean log density of a reading when its block of neighbours is left out.
    """

    theta: Float[Array, " p"]
    directions: Float[Array, "r p"]
    converged: bool = True
    left_out: float = 0.0


@dataclass(frozen=True)
class RegressionSearchSpace:
    """Starting values, bounds and prior of the parameters, derived from all readings."""

    starts: Float[Array, "S p"]
    bounds: Float[Array, "p 2"]
    prior_mean: Float[Array, " p"]
    prior_precision: Float[Array, " p"]


def fit_regression(
    kernel: RegressionKernel,
    rows: RegressionRows,
    y: Float[Array, " n"],
    max_iter: int,
    criterion: str = "likelihood",
    linear: bool = False,
) -> FittedRegression:
    """Fit the parameters to standardised readings y, and approximate their uncertainty.

    `criterion` is one of `CRITERIA`. If `linear` is True, there is no smooth part: its variance is
    fixed at the lower bound, which is negligible. The prior has the weight of a few readings. The
    search starts from several combinations of the residual process's length-scale and the noise on
    a subsample, and continues from the best ends.
    """
    space = search_space(kernel, rows, linear)
    few, many = (_subsample(rows, y, n) for n in (START_READINGS, FIT_READINGS))
    objective = negative_log_posterior(kernel, rows.at(few), y[few], space, criterion)
    start = minimize(
        objective, space.starts, bounds=space.bounds, max_iter=min(START_ITERATIONS, max_iter),
        gtol=GRADIENT_TOLERANCE, expected_gain=EXPECTED_GAIN,
    )  # fmt: skip
    best = np.argsort(start.value, kind="stable")[:N_STARTS]
    objective = negative_log_posterior(kernel, rows.at(many), y[many], space, criterion)
    end = minimize(
        objective, start.x[best], bounds=space.bounds, max_iter=max_iter, gtol=GRADIENT_TOLERANCE,
        expected_gain=EXPECTED_GAIN, memory=start.memory.select(best, len(many) / len(few)),
    )  # fmt: skip
    i = int(np.argmin(end.value))
    directions = _directions(objective, end.x[i], space.bounds) * np.sqrt(len(many) / len(y))
    left_out = mean_left_out_density(kernel, end.x[i], rows.at(many), y[many])
    return FittedRegression(end.x[i], directions, bool(end.converged[i]), left_out)


def mean_left_out_density(
    kernel: RegressionKernel,
    theta: Float[Array, " p"],
    rows: RegressionRows,
    y: Float[Array, " n"],
) -> float:
    """Return the mean log density of readings y, each given the readings in other blocks."""
    K, _ = kernel.evaluate(theta, rows)
    factor = cholesky(K).checked("covariance of a regression on known outputs")
    total, _ = left_out_density(split_into_blocks(rows.x), factor, y)
    return total / (BLOCK_WEIGHT * len(y))


def negative_log_posterior(
    kernel: RegressionKernel,
    rows: RegressionRows,
    y: Float[Array, " n"],
    space: RegressionSearchSpace,
    criterion: str = "likelihood",
) -> Objective:
    """Return minus the criterion for readings y, minus the log prior, with its gradient."""
    score = log_likelihood
    if criterion == "blocks":
        score = partial(left_out_density, split_into_blocks(rows.x))
    prior = WeakPrior(np.array([float(np.mean(y**2)) or 1.0]))
    at = partial(_negative_log_posterior, kernel, rows, y, space, score, prior)

    def objective(params: Array, which: Array) -> tuple[Array, Array]:
        values, gradients = zip(*map(at, params), strict=True)
        return np.array(values), np.array(gradients)

    return objective


def _negative_log_posterior(
    kernel: RegressionKernel,
    rows: RegressionRows,
    y: Float[Array, " n"],
    space: RegressionSearchSpace,
    score: Score,
    noise_prior: WeakPrior,
    theta: Float[Array, " p"],
) -> tuple[float, Float[Array, " p"]]:
    K, pullback = kernel.evaluate(theta, rows)
    factor = cholesky(K)
    if np.isnan(factor.jitter):
        return np.inf, np.zeros_like(theta)
    value, of_K = score(factor, y)
    noise = kernel.names.index("noise")
    variance = np.exp(theta[noise])
    log_prior, of_noise = noise_prior(np.array([[variance]]))
    difference = theta - space.prior_mean
    deviation = space.prior_precision * difference
    gradient = deviation - pullback(of_K)
    gradient[noise] -= of_noise[0, 0] * variance
    return 0.5 * float(deviation @ difference) - value - float(log_prior), gradient


def search_space(
    kernel: RegressionKernel, rows: RegressionRows, linear: bool = False
) -> RegressionSearchSpace:
    """Return starting values, bounds and priors of the parameters for readings at these rows.

    If `linear` is True, the parameters of the smooth part are fixed, and its variance is small.
    """
    spacing, extent = typical_distances(rows.x)
    bounds = {
        "smooth_scale": np.log([0.2, 20.0]),
        "residual_scale": np.log([0.3 * spacing, 3 * extent]),
        "noise": np.log([1e-8, 7.0]),
        "varying_scale": np.log([0.05 * extent, 10 * extent]),
    }
    if linear:
        bounds["smooth"] = np.full(2, LOG_VARIANCE_BOUNDS[0])
        bounds["smooth_scale"] = np.log(np.full(2, PRIORS["smooth_scale"][0]))
    prior = {name: (np.log(median), deviation) for name, (median, deviation) in PRIORS.items()}
    prior["varying_scale"] = (
        prior["varying_scale"][0] + np.log(extent),
        PRIORS["varying_scale"][1],
    )
    scales = np.linspace(np.log(2 * spacing), np.log(0.4 * extent), RESIDUAL_SCALES)
    start = {name: median for name, (median, _) in prior.items()}
    starts = [
        start | {"residual_scale": scale, "noise": np.log(noise)}
        for scale in scales
        for noise in NOISE_STARTS
    ]
    limits = np.array([bounds.get(name, LOG_VARIANCE_BOUNDS) for name in kernel.names])
    return RegressionSearchSpace(
        np.clip([[s[name] for name in kernel.names] for s in starts], *limits.T),
        limits,
        np.array([prior.get(name, (0.0, 1.0))[0] for name in kernel.names]),
        np.array([prior[name][1] ** -2 if name in prior else 0.0 for name in kernel.names]),
    )


def _subsample(rows: RegressionRows, y: Float[Array, " n"], n: int) -> Int[Array, " m"]:
    return Observations.of_one_output(rows.x, y).subsample(n)


def _directions(
    objective: Objective, theta: Float[Array, " p"], bounds: Float[Array, "p 2"]
) -> Float[Array, "r p"]:
    """Return the principal axes of the posterior of the parameters that are not at a bound."""
    free = np.flatnonzero((theta - bounds[:, 0] > AT_BOUND) & (bounds[:, 1] - theta > AT_BOUND))
    if not len(free):
        return np.zeros((0, len(theta)))
    steps = DIFFERENCE * np.eye(len(theta))[free]
    points = np.concatenate([theta + steps, theta - steps])
    _, gradients, *_ = objective(points, np.zeros(len(points), int))
    hessian = (gradients[: len(free)] - gradients[len(free) :])[:, free] / (2 * DIFFERENCE)
    values, vectors = eigh(0.5 * (hessian + hessian.T))
    deviations = np.maximum(values, MAX_DEVIATION**-2) ** -0.5
    directions = np.zeros((len(free), len(theta)))
    directions[:, free] = (vectors * deviations).T
    return directions
