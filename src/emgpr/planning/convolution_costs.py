"""The cost of a fit of convolved processes, whose likelihood has a dense covariance."""

from dataclasses import replace

import numpy as np

from emgpr.arrays import limit_threads
from emgpr.convolution.fit import CONTINUED, SEARCH_READINGS
from emgpr.fitting.convolution import check_number_of_readings
from emgpr.fitting.defaults import FitSettings
from emgpr.inputs import TrainingTable
from emgpr.kernels import NAMED_KERNELS
from emgpr.parallel import Execution
from emgpr.planning.fit_costs import plan_fit
from emgpr.planning.plan import Plan, Step
from emgpr.planning.problem_size import BYTES_PER_ENTRY
from emgpr.planning.speed import MachineSpeed, measure_speed

# Evaluations of the likelihood from a starting point, measured on the Jura data and on simulated
# tables, and from a point that is continued with all readings.
EVALUATIONS, CONTINUED_EVALUATIONS = 45, 35
MATRICES = 6.0  # n × n matrices in memory, in addition to one for each term of the covariance
STEP_1 = "step 1"


def plan_convolution(
    settings: FitSettings, own_processes: bool, table: TrainingTable, execution: Execution
) -> Plan:
    """Return the steps of a fit to this table with these settings, and their costs."""
    check_number_of_readings(table)
    like = replace(settings, kernel=NAMED_KERNELS["rbf"], conditioning="all", refine=0)
    plan = plan_fit(like, table, execution)
    names = [step.name for step in plan.steps]
    before = plan.steps[: names.index(STEP_1) + 1]
    n, n_terms = plan.n_readings, int(settings.n_latents or 1) + own_processes
    with limit_threads(n):
        speed = measure_speed("cpu")
    n_tried, n_starts = min(n, SEARCH_READINGS), settings.n_restarts
    turns = -(-n_starts // plan.n_processes)
    tried = _step("starting points", n_tried, n_terms, n_starts, turns, EVALUATIONS, speed)
    if n_tried == n:
        return replace(plan, steps=(*before, tried))
    tried = replace(tried, approximation=f"tried on {n_tried} of {n} readings")
    turns = -(-CONTINUED // plan.n_processes)
    last = _step("all readings", n, n_terms, CONTINUED, turns, CONTINUED_EVALUATIONS, speed)
    return replace(plan, steps=(*before, tried, last))


def _step(
    name: str,
    n: int,
    n_terms: int,
    n_searches: int,
    turns: int,
    evaluations: int,
    speed: MachineSpeed,
) -> Step:
    """Plan searches that are run in turns, each with n readings."""
    seconds = turns * evaluations * speed.likelihood(n, n_terms * n**2 / 2)
    memory = (MATRICES + n_terms / 2) * BYTES_PER_ENTRY * float(np.square(n))
    return Step(name, "Fisher scoring", n, n_searches, n, evaluations, seconds, memory)
