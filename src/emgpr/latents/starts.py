"""Starting points of step 1, found by optimisation on a subsample of the sites.

A likelihood often has two optima: a short range with little noise, and a long range with much
noise. The likelihood at a starting point says little about the optimum reached from that point.
Therefore each starting value of the kernel parameters is combined with its most likely noise
variance and optimised for a few iterations on a subsample. The search on all sites starts from the
distinct optima found in this way, and also uses the curvature at these optima.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import eigh
from emgpr.kernels import Pairs, evaluate_kernel
from emgpr.latents.objective import negative_log_likelihood, with_noise_prior
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

    def select(self, points: range) -> "StartingPoints":
        """Return the selected starting points."""
        return StartingPoints(self.x[points], self.outputs[points], self.memory.select(points))


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
    D = table.n_outputs
    subsample = table.at(table.subsample(SUBSAMPLE_SITES))
    starts = _with_best_noise(subsample, kernel, search, weak_prior)
    outputs = np.repeat(np.arange(D), starts.shape[1])
    objective = with_noise_prior(
        negative_log_likelihood(subsample, kernel, outputs, device),
        output_variances(subsample)[outputs],
        weak_prior,
    )
    result = minimize(
        objective,
        starts.reshape(-1, starts.shape[-1]),
        bounds=search.bounds,
        max_iter=min(SUBSAMPLE_ITERATIONS, max_iter),
        gtol=GRADIENT_TOLERANCE,
        expected_gain=EXPECTED_GAIN_SUBSAMPLE,
    )
    kept: list[int] = []
    for d in range(D):
        ends = np.flatnonzero(outputs == d)
        best, *others = ends[np.argsort(result.value[ends], kind="stable")].tolist()
        distinct = [best]
        for i in others:
            equal = any(np.abs(result.x[i] - result.x[j]).max() <= MIN_DISTANCE for j in distinct)
            if not equal and result.value[i] < result.value[best] + MAX_DEFICIT:
                distinct.append(i)
        kept += distinct[:MAX_STARTS]
    growth = table.n_sites / max(1, subsample.n_sites)
    return StartingPoints(result.x[kept], outputs[kept], result.memory.select(kept, growth))


def _with_best_noise(
    table: Observations, kernel: Kernel, search: SearchSpace, weak_prior: bool
) -> Float[Array, "D S p"]:
    """Combine each starting kernel with its most likely noise variance, for each output.

    One eigendecomposition of K provides the likelihood of every output for every noise variance.
    """
    n_noises = len(search.starts) // search.n_kernels
    thetas, initial = search.starts[::n_noises, :-1], search.starts[:n_noises, -1]
    noises = np.unique(np.clip([*NOISE_GRID, *initial], *search.bounds[-1]))
    eigenvalues, U = eigh(evaluate_kernel(kernel, thetas, Pairs(table.x))[0])
    variances = np.maximum(eigenvalues, 0.0)[:, None, :] + np.exp(noises)[:, None]
    levels = np.exp(noises)[:, None, None]
    starts = []
    for y, variance in zip(table.y, output_variances(table), strict=True):
        z = (y @ U)[:, None, :]
        values = -0.5 * (z**2 / variances + np.log(variances)).sum(axis=-1)
        values = values + noise_prior(variance[None], weak_prior)(levels)[0]
        starts.append(np.column_stack([thetas, noises[values.argmax(axis=1)]]))
    return np.array(starts)
