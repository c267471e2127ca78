"""Starting points of step 1, found by optimisation on a subsample of the sites.

A likelihood often has two optima: a short range with little noise, and a long range with much
noise. The likelihood at a starting point says little about the optimum reached from that point.
Therefore each starting value of the kernel parameters is combined with its most likely noise
variance and optimised for a few iterations on a subsample. If the kernel has a single parameter,
the likelihoods of neighbouring starting values show where the optima are, so that only the values
with the highest likelihoods are optimised. The search on all sites starts from the distinct optima
found in this way. If its objective has no curvature, it also uses the curvature at these optima.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.kernels import Pairs, evaluate_kernel
from emgpr.latents.noise_profile import log_likelihoods
from emgpr.latents.objective import (
    as_memory,
    average_information,
    negative_log_likelihood,
    with_noise_prior,
)
from emgpr.latents.search_space import SearchSpace
from emgpr.noise import noise_prior, output_variances
from emgpr.observations import Observations
from emgpr.optimize import LBFGSMemory, minimize

Array = np.ndarray

SUBSAMPLE_SITES = 128
SUBSAMPLE_ITERATIONS = 10
# Two optima are distinct if any log parameter differs by more than MIN_DISTANCE. An optimum is
# dropped if its log-likelihood is below the highest one by MAX_DEFICIT or more.
MIN_DISTANCE, MAX_DEFICIT = 0.3, 10.0
# With more parameters, the information at a starting point says little about the optima.
MAX_INFORMED_PARAMETERS = 4
MIN_INFORMATIVE_SITES = 20  # with fewer, likelihoods are flat, and every start is optimised
MAX_STARTS = 2  # maximum number of starting points for each output
NOISE_GRID = np.log(np.geomspace(1e-4, 2.0, 16))  # candidate log noise variances
GRADIENT_TOLERANCE = 1e-2  # of the log-likelihood, with respect to log parameters
# Stop when the next step is expected to increase the log-likelihood by less than this: on the
# subsample, and on all sites.
EXPECTED_GAIN_SUBSAMPLE, EXPECTED_GAIN = 0.1, 1e-4


@dataclass(frozen=True)
class StartingPoints:
    """Parameter vectors close to optima, with the output and the curvature for each of them."""

    x: Float[Array, "m p"]
    outputs: Int[Array, " m"]
    memory: LBFGSMemory
    to_exceed: Float[Array, " m"]  # a search ends early if it will not exceed this log-likelihood

    def select(self, points: range) -> "StartingPoints":
        """Return the selected starting points."""
        memory = self.memory.select(points)
        return StartingPoints(self.x[points], self.outputs[points], memory, self.to_exceed[points])


@dataclass(frozen=True)
class WarmStart:
    """A starting point taken from the fit of another kernel.

    The search can end early if it is expected to stay below the log-likelihood `to_exceed`.
    """

    kernel: Kernel
    noise: float
    to_exceed: float = -np.inf

    @property
    def parameters(self) -> Float[Array, " p"]:
        """Log hyper-parameters and log noise variance."""
        return np.append(self.kernel.theta, np.log(self.noise))


def find_starting_points(
    table: Observations,
    kernel: Kernel,
    search: SearchSpace,
    max_iter: int,
    *,
    weak_prior: bool,
    device: str,
) -> StartingPoints:
    """Return up to `MAX_STARTS` optima for each output; no reading of the table may be missing."""
    subsample = table.at(table.subsample(SUBSAMPLE_SITES))
    starts, outputs = _with_best_noise(subsample, kernel, search, weak_prior)
    objective = with_noise_prior(
        negative_log_likelihood(subsample, kernel, outputs, device),
        output_variances(subsample)[outputs],
        weak_prior,
    )
    memory = None
    informed = subsample.n_sites >= MIN_INFORMATIVE_SITES
    if informed and starts.shape[1] <= MAX_INFORMED_PARAMETERS:
        information = average_information(subsample, kernel, starts, outputs, weak_prior)
        memory = as_memory(information)
    result = minimize(
        objective,
        starts,
        bounds=search.bounds,
        max_iter=min(SUBSAMPLE_ITERATIONS, max_iter),
        gtol=GRADIENT_TOLERANCE,
        expected_gain=EXPECTED_GAIN_SUBSAMPLE,
        memory=memory,
    )
    kept: list[int] = []
    for d in range(table.n_outputs):
        ends = np.flatnonzero(outputs == d)
        best, *others = ends[np.argsort(result.value[ends], kind="stable")].tolist()
        distinct = [best]
        for i in others:
            equal = any(np.abs(result.x[i] - result.x[j]).max() <= MIN_DISTANCE for j in distinct)
            if not equal and result.value[i] < result.value[best] + MAX_DEFICIT:
                distinct.append(i)
        kept += distinct[:MAX_STARTS]
    growth = table.n_sites / max(1, subsample.n_sites)
    memory = result.memory.select(kept, growth)
    return StartingPoints(result.x[kept], outputs[kept], memory, np.full(len(kept), -np.inf))


def given_starting_points(
    table: Observations,
    kernel: Kernel,
    search: SearchSpace,
    starts: Sequence[WarmStart],
    *,
    weak_prior: bool,
) -> StartingPoints:
    """Return the given start of each output, with the average information of a subsample."""
    x = np.clip([start.parameters for start in starts], *search.bounds.T)
    outputs, to_exceed = np.arange(len(x)), np.array([start.to_exceed for start in starts])
    subsample = table.at(table.subsample(SUBSAMPLE_SITES))
    information = average_information(subsample, kernel, x, outputs, weak_prior)
    growth = table.n_sites / max(1, subsample.n_sites)
    memory = as_memory(growth * information)
    return StartingPoints(x, outputs, memory, to_exceed)


def _with_best_noise(
    table: Observations, kernel: Kernel, search: SearchSpace, weak_prior: bool
) -> tuple[Float[Array, "m p"], Int[Array, " m"]]:
    """Combine starting kernels with their most likely noise variances.

    Return all starting points and the output of each of them. A kernel with one parameter starts
    from the local maxima of the likelihood among its starting values and the values between them.
    """
    n_noises = len(search.starts) // search.n_kernels
    thetas, initial = search.starts[::n_noises, :-1], search.starts[:n_noises, -1]
    noises = np.unique(np.clip([*NOISE_GRID, *initial], *search.bounds[-1]))
    one_parameter = thetas.shape[1] == 1 and table.n_sites >= MIN_INFORMATIVE_SITES
    if one_parameter:
        thetas = np.unique(thetas, axis=0)
        between = 0.5 * (thetas[1:] + thetas[:-1])
        thetas = np.sort(np.concatenate([thetas, between]), axis=0)
    levels, variances = np.exp(noises), output_variances(table)
    log_prior = noise_prior(np.tile(variances[:, None], (len(levels), 1, 1)), weak_prior)
    pairs = Pairs(table.x)
    Ks = (evaluate_kernel(kernel, theta, pairs)[0] for theta in thetas)
    values = np.array([log_likelihoods(K, table.y, levels) for K in Ks])
    values += log_prior(np.tile(levels[:, None, None, None], (1, len(variances), 1, 1)))[0]
    best_noise, profile = noises[values.argmax(axis=1)], values.max(axis=1)
    starts, outputs = [], []
    for d in range(table.n_outputs):
        chosen = np.arange(len(thetas))
        if one_parameter:
            padded = np.pad(profile[:, d], 1, constant_values=-np.inf)
            chosen = np.flatnonzero((padded[1:-1] >= padded[:-2]) & (padded[1:-1] >= padded[2:]))
        starts.append(np.column_stack([thetas[chosen], best_noise[chosen, d]]))
        outputs += [d] * len(chosen)
    return np.concatenate(starts), np.array(outputs, int)
