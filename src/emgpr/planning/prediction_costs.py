"""The cost of fitting the weights of stacked candidates, and of predictions at 1000 locations."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from emgpr.arrays import chunk_bytes
from emgpr.parameter_checks import is_auto
from emgpr.planning.approximations import describe_conditioning
from emgpr.planning.plan import Step
from emgpr.planning.problem_size import BYTES_PER_ENTRY, MATRICES_IN_MEMORY, Workload
from emgpr.planning.speed import LIKELIHOOD_PASSES, LIKELIHOOD_TIME, SECONDS_PER_CALL
from emgpr.planning.vecchia_costs import first_stage_seconds
from emgpr.prediction import bounded_conditioning, exact_is_affordable
from emgpr.prediction.lmc_posterior import DEFAULT_NEIGHBOURS
from emgpr.stacking.fit import MAX_READINGS
from emgpr.stacking.gaps import N_FOLDS
from emgpr.stacking.scores import is_exact, test_neighbours, tested_sites

N_LOCATIONS = 1000
INVERSE_TIME = 2.0  # time of an inverse and what is computed from it, relative to a likelihood
SOLVE_TIME = 0.8  # time of the readings at a site given its neighbours, relative to a prediction
# Time of predictions from readings in all directions, relative to those from as many nearest
# readings, if at few locations more readings are worthwhile.
SURROUNDING_TIME = 2.0
TREE_PASSES = 30.0  # building a k-d tree takes as long as this many passes over all sites
SHUFFLES, SHUFFLED_SITES = 20, 5000  # number and size of samples for `_sites_around`
ARRAYS_AT_ONCE = 2.0  # number of covariance matrices of neighbours in memory for each location
# Operations of a regression relative to the cube of its number of readings, and its fixed seconds.
REGRESSION_OPERATIONS, REGRESSION_TIME = 20.0, 0.02
# Copies of the table in memory: when readings are left out, and in predictions with k-d trees.
TRANSFER_COPIES, TREE_COPIES = 12.0, 4.0


def plan_stacking(load: Workload) -> Iterator[Step]:
    """Plan the fit of the weights with which candidates predict left-out readings."""
    observations, D, L = load.observations, load.observations.n_outputs, load.n_members
    if not (load.settings.transfer == "auto" and D > 1):
        return
    method = "weights of own processes, joint model and regressions"
    regressions = sum(
        REGRESSION_OPERATIONS * min(m, MAX_READINGS) ** 3 / load.speed.operations + REGRESSION_TIME
        for m in load.counts
    )
    if not observations.complete and load.params.refine == "joint" and L == 1:
        regressions += N_FOLDS * first_stage_seconds(load)
    given = _conditioning(load)
    if isinstance(given, str) and is_exact(observations, L):
        n, n_values = observations.n_readings, load.params.n_latents * load.member_sites**2
        independent = sum(load.speed.likelihood(float(m), m**2) for m in load.counts)
        joint = L * load.speed.likelihood(n, n_values) if load.settings.couples_outputs else 0.0
        seconds = 2 * INVERSE_TIME * (joint + independent)
        memory = MATRICES_IN_MEMORY * BYTES_PER_ENTRY * n**2
        yield Step("stacking", method, n, L, n, 2, seconds + regressions, memory)
        return
    automatic = is_auto(load.settings.conditioning)
    conditioning = test_neighbours(D) if automatic or isinstance(given, str) else given
    sites = tested_sites(observations, L)
    n_sites, n = len(sites), int(observations.observed[:, sites].sum())
    around, n_systems = _sites_around(load, conditioning)
    n_problems = round(n_sites * (1 + n_systems))  # by site, and by output
    width = around + 1
    side = width * D
    each = SOLVE_TIME * (L * _solve(load, side) + _kernel_values(load, width))
    alone = (
        _solve(load, conditioning + 1)
        + _kernel_values(load, conditioning + 1) / load.params.n_latents
    )
    seconds = 2 * n * alone + 4 * load.site_passes(D * TREE_PASSES) + regressions
    seconds += n_problems * each if load.settings.couples_outputs else 0.0
    memory = _bytes_around(load, width, n_problems, width)
    memory += _bytes_held(load, TRANSFER_COPIES, n_sites)
    some = f"weights from {n} of {observations.n_readings} readings, each "
    approximation = ("" if n == observations.n_readings else some) + "predicted from neighbours"
    yield Step("stacking", method, n, L * n_problems, side, 1, seconds, memory, approximation)


def plan_prediction(load: Workload) -> Step:
    """Plan predictions at 1000 locations."""
    conditioning, D, L = _conditioning(load), load.observations.n_outputs, load.n_members
    n, sizes = load.observations.n_readings, _coupled_readings(load)
    if isinstance(conditioning, str):
        if conditioning == "all":
            method, sides = f"from all {n} readings", sizes
        else:
            method = f"from {load.member_readings} readings of each member"
            sides = [load.member_readings]
        n_values = N_LOCATIONS * D / len(sides)  # values predicted from each group of readings
        operations = L * sum(m**3 / 3 + n_values * m**2 for m in sides)
        seconds = operations / load.speed.operations + L * SECONDS_PER_CALL
        side, n_matrices = round(max(sides)), L
        memory = MATRICES_IN_MEMORY * BYTES_PER_ENTRY * side**2
    else:
        surrounding = is_auto(load.settings.conditioning)
        at_least = "at least " if surrounding else ""
        method = f"from {at_least}{conditioning} neighbours of each output"
        coupled = load.settings.couples_outputs
        width = _sites_around(load, conditioning)[0] if coupled else conditioning
        side, n_groups = (width * D, 1) if coupled else (width, D)
        n_matrices = N_LOCATIONS * L * n_groups
        each = L * _solve(load, side) + _kernel_values(load, width)
        seconds = (SURROUNDING_TIME if surrounding else 1.0) * N_LOCATIONS * n_groups * each
        seconds += load.site_passes(D * TREE_PASSES) + L * SECONDS_PER_CALL
        memory = _bytes_around(load, width, N_LOCATIONS, D * conditioning)
        memory += _bytes_held(load, TREE_COPIES, N_LOCATIONS)
    approximation = describe_conditioning(
        conditioning, load.counts, surrounding=is_auto(load.settings.conditioning)
    )
    return Step("1000 locations", method, n, n_matrices, side, 1, seconds, memory, approximation)


def _conditioning(load: Workload) -> Any:
    """Return the parameter `conditioning`, with "auto" replaced by the value that `fit` uses."""
    conditioning = load.settings.conditioning
    if conditioning == "auto":
        affordable = exact_is_affordable(load.n_members, _coupled_readings(load))
        return "all" if affordable else DEFAULT_NEIGHBOURS
    return bounded_conditioning(conditioning, load.observations)


def _coupled_readings(load: Workload) -> list[float]:
    """Return the number of readings in each group of outputs that are predicted jointly."""
    if load.settings.couples_outputs:
        return [float(load.observations.n_readings)]
    return load.counts.astype(float).tolist()


def _sites_around(load: Workload, n: int) -> tuple[int, float]:
    """Return how many sites contain the n nearest readings of each output, in the worst case.

    Also return the mean number of distinct sets of such sites if single readings of a site are left
    out. The reading that is left out is replaced with the next reading of its output, which is
    often at one of the sites that are used for other outputs. Both numbers are estimated from
    random samples, assuming that readings are missing at random.
    """
    observed, rng, largest, n_systems = load.observations.observed, np.random.default_rng(0), 1, []
    N = observed.shape[1]
    for _ in range(SHUFFLES):
        sample = observed[:, rng.integers(N, size=min(SHUFFLED_SITES, N))]
        rank = np.where(sample, np.cumsum(sample, axis=1), 0)
        largest = max(largest, int(((rank > 0) & (rank <= n)).any(axis=0).sum()))
        used, last = ((rank > 0) & (rank < n)).any(axis=0), (rank == n).any(axis=0)
        n_systems.append((last & used).any() + (last & ~used).sum())
    return largest, float(np.maximum(n_systems, 1).mean())


def _solve(load: Workload, side: int) -> float:
    """Return the seconds for conditioning one member on the readings around a location."""
    return LIKELIHOOD_TIME * load.speed.factorisation(side)


def _kernel_values(load: Workload, width: int) -> float:
    """Return the seconds for the kernel values between the sites around a location."""
    return LIKELIHOOD_PASSES / 2 * load.params.n_latents * width**2 * load.speed.value


def _bytes_around(load: Workload, width: int, n_locations: int, max_width: int) -> float:
    """Return the memory for the neighbours of the locations that are processed together.

    The number of these locations is chosen for at most `max_width` sites around each.
    """
    D, Q = (
        (load.observations.n_outputs, load.params.n_latents)
        if load.settings.couples_outputs
        else (1, 1)
    )
    each = BYTES_PER_ENTRY * max_width**2 * (3 * D**2 + Q)
    at_once = max(1.0, min(n_locations, chunk_bytes(load.device) // each))
    return at_once * (BYTES_PER_ENTRY * width**2 * (ARRAYS_AT_ONCE * D**2 + Q))


def _bytes_held(load: Workload, n_copies: float, n_locations: int) -> float:
    """Return the memory for copies of the table and for the members' predictions."""
    predictions = 2 * load.n_members * n_locations * load.observations.n_outputs**2
    return load.table_bytes(n_copies) + BYTES_PER_ENTRY * predictions
