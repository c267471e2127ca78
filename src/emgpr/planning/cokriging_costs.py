"""The cost of a fit of co-kriging: variograms from pairs of sites, and their fitted model."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from emgpr.arrays import limit_threads
from emgpr.cokriging.empirical import MAX_SITES
from emgpr.fitting.cokriging import MAX_CHECKED
from emgpr.fitting.defaults import FitSettings
from emgpr.inputs import TrainingTable
from emgpr.kernels import NAMED_KERNELS
from emgpr.parallel import Execution
from emgpr.planning.fit_costs import plan_fit
from emgpr.planning.plan import Plan, Step
from emgpr.planning.problem_size import BYTES_PER_ENTRY, MATRICES_IN_MEMORY
from emgpr.planning.speed import SECONDS_PER_CALL, MachineSpeed, measure_speed

SILL_FITS = 150  # fits of the sills in the search for the ranges, measured on the Jura data
# Time of a pair of sites in a variogram, relative to a kernel value, and its arrays in memory. If
# readings are missing, the variograms of the sites with both outputs are computed, too.
PAIR_TIME, ARRAYS_OF_PAIRS = 15.0, 7.0
STEP_1 = "step 1"


def plan_cokriging(
    settings: FitSettings, n_structures: int, table: TrainingTable, execution: Execution
) -> Plan:
    """Return the steps of a fit to this table with these settings, and their costs."""
    like = replace(settings, kernel=NAMED_KERNELS["rbf"], refine=0, n_latents=n_structures)
    plan = plan_fit(like, table, execution)
    names = [step.name for step in plan.steps]
    before = plan.steps[: names.index(STEP_1)]
    with limit_threads(plan.n_readings):
        speed = measure_speed("cpu")
    complete = not np.isnan(table.Y).any()
    steps = [_variograms(plan, speed, complete=complete), *_check(plan, speed)]
    return replace(plan, steps=(*before, *steps))


def _variograms(plan: Plan, speed: MachineSpeed, *, complete: bool) -> Step:
    """Plan the direct and cross-variograms, and the search for ranges and sills."""
    N, D = plan.n_sites, plan.n_outputs
    n = min(N, MAX_SITES)
    n_pairs, n_variograms = n * (n - 1) / 2, D * (D + 1) / 2 * (1 if complete else 2)
    seconds = SILL_FITS * SECONDS_PER_CALL + PAIR_TIME * n_variograms * n_pairs * speed.value
    memory = ARRAYS_OF_PAIRS * BYTES_PER_ENTRY * n_pairs
    text = f"computed from {n} of {N} sites" if n < N else ""
    method = "pairs of sites, weighted least squares"
    return Step("variograms", method, plan.n_readings, 0, 0, SILL_FITS, seconds, memory, text)


def _check(plan: Plan, speed: MachineSpeed) -> Iterator[Step]:
    """Plan the predictions of left-out readings, which check the intervals of several outputs."""
    if plan.n_outputs > 1:
        n = min(plan.n_readings, MAX_CHECKED)
        memory = MATRICES_IN_MEMORY * BYTES_PER_ENTRY * float(np.square(n))
        seconds = speed.likelihood(n, n**2 / 2)
        yield Step("intervals", "dense, readings left out", n, 1, n, 1, seconds, memory)
