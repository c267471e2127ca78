"""The cost of the joint optimisation with Vecchia's likelihood, stage by stage.

The numbers of iterations are typical of the Jura and AMSU-A data and of simulated tables
(`benchmarks/planned.py`).
"""

from collections.abc import Iterator
from math import sqrt

from emgpr.parameter_checks import is_auto
from emgpr.planning.approximations import describe_vecchia
from emgpr.planning.plan import Step
from emgpr.planning.problem_size import BYTES_PER_ENTRY, Workload
from emgpr.weights.posterior_density import curvature_blocks
from emgpr.weights.vecchia_search import (
    COARSE_BLOCKS,
    COARSE_NEIGHBOURS,
    FIRST_SITES,
    GROWTH,
    MAX_FINAL_BLOCKS,
)

# Numbers of evaluations and of information matrices: for each starting point, with few neighbours,
# and for each part of the blocks. On all blocks, the number of evaluations is relative to the
# square root of the number of parameters, and every fifth iteration needs an information matrix.
FIRST_EVALUATIONS, COARSE_EVALUATIONS, PART_EVALUATIONS = 6, 3, 2
EVALUATIONS_PER_ROOT, MIN_EVALUATIONS, MAX_EVALUATIONS_OF_MANY = 2.5, 7, 4
N_STARTS = 3
# Operations for a block with n rows: for the likelihood, relative to n³ and n², and in addition for
# the information of p parameters, relative to n²p + np² and np.
CUBIC, QUADRATIC, LINEAR_PER_PARAMETER = 0.3, 620.0, 870.0
NEIGHBOUR_PASSES = 2700.0  # time per site to find neighbours, relative to computing a kernel value
ARRAYS_PER_BLOCK = 6.0  # arrays of a chunk that are as large as its covariances


def plan_vecchia(load: Workload) -> Iterator[Step]:
    """Plan the joint optimisation and, with n_latents="auto", the removal of latent processes."""
    params, N, D = load.params, load.observations.n_sites, load.observations.n_outputs
    m = params.n_neighbours or 0
    n_noises = D * (D + 1) // 2 if params.correlated else D
    p = params.n_weights * D + n_noises + params.n_latents
    few, rows = min(COARSE_NEIGHBOURS, m) + 1, (m + 1) * D
    n_starts = N_STARTS if D > 1 else 1
    seconds = load.site_passes(NEIGHBOUR_PASSES) if N > COARSE_BLOCKS else 0.0
    seconds += n_starts * FIRST_EVALUATIONS * _iteration(load, min(N, FIRST_SITES), few * D, p)
    seconds += COARSE_EVALUATIONS * _iteration(load, min(N, COARSE_BLOCKS), few * D, p)
    n_blocks = COARSE_BLOCKS
    while 2 * n_blocks < N:
        seconds += PART_EVALUATIONS * _iteration(load, n_blocks, rows, p)
        n_blocks *= GROWTH
    times = max(MIN_EVALUATIONS, round(EVALUATIONS_PER_ROOT * sqrt(p)))
    times = min(times, load.settings.max_iter, MAX_EVALUATIONS_OF_MANY if N > 4000 else times)
    last = times * _evaluation(load, N, rows) + (3 + times / 5) * _information(load, N, rows, p)
    last += _information(load, min(N, MAX_FINAL_BLOCKS), rows, p, sampled=False)
    chunk = ARRAYS_PER_BLOCK * BYTES_PER_ENTRY * max(3e5, rows**2)
    memory = chunk + BYTES_PER_ENTRY * (min(N * (m + 1) ** 2 * 3.0, 3e7) + N * (m + 1) + 3 * p**2)
    readings, method = load.observations.n_readings, f"Vecchia, {m} neighbours"
    text = describe_vecchia(m, N)
    yield Step("joint optimisation", method, readings, N, rows, times, seconds + last, memory, text)
    if is_auto(load.settings.n_latents):
        yield Step(
            "pruning", "removal of latent processes", readings, N, rows, times,
            params.n_latents * last, memory,
        )  # fmt: skip


def first_stage_seconds(load: Workload) -> float:
    """Return the seconds for the first stage from one starting point."""
    params, N, D = load.params, load.observations.n_sites, load.observations.n_outputs
    n_noises = D * (D + 1) // 2 if params.correlated else D
    p = params.n_weights * D + n_noises + params.n_latents
    rows = (min(COARSE_NEIGHBOURS, N - 1) + 1) * D
    return FIRST_EVALUATIONS * _iteration(load, min(N, FIRST_SITES), rows, p)


def _iteration(load: Workload, n_blocks: int, n: int, p: int) -> float:
    """Return the seconds for an evaluation and an information matrix."""
    return _evaluation(load, n_blocks, n) + _information(load, n_blocks, n, p)


def _evaluation(load: Workload, n_blocks: int, n: int) -> float:
    return n_blocks * (CUBIC * n**3 + QUADRATIC * n**2) / load.speed.operations


def _information(load: Workload, n_blocks: int, n: int, p: int, *, sampled: bool = True) -> float:
    """Return the seconds for an information matrix, computed from some blocks if `sampled`."""
    if sampled:
        n_blocks = min(n_blocks, curvature_blocks(max(n, 1), p))
    operations = n**2 * p + n * p**2 + LINEAR_PER_PARAMETER * n * p
    return _evaluation(load, n_blocks, n) + n_blocks * operations / load.speed.operations
