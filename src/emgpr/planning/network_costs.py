"""The cost of a fit of a Gaussian process regression network, in iterations of two updates."""

from dataclasses import replace

import numpy as np

from emgpr.arrays import limit_threads
from emgpr.fitting.defaults import FitSettings
from emgpr.fitting.regression_network import check_number_of_sites
from emgpr.inputs import TrainingTable
from emgpr.kernels import NAMED_KERNELS
from emgpr.parallel import Execution
from emgpr.planning.fit_costs import plan_fit
from emgpr.planning.plan import Plan, Step
from emgpr.planning.problem_size import BYTES_PER_ENTRY
from emgpr.planning.speed import MachineSpeed, measure_speed
from emgpr.regression_network.fit import TRIAL_ITERATIONS

# Iterations until convergence, measured on the Jura data and on simulated tables.
CONSTANT_ITERATIONS, VARYING_ITERATIONS = 30, 40
# Evaluations of the bound of the nodes in an iteration; the update of the weights takes as long as
# the second number of them.
EVALUATIONS, WEIGHT_EVALUATIONS = 6, 2
MATRICES = 6.0  # matrices of all nodes at all sites in memory
STEP_1 = "step 1"


def plan_network(
    settings: FitSettings, constant_weights: bool, table: TrainingTable, execution: Execution
) -> Plan:
    """Return the steps of a fit to this table with these settings, and their costs."""
    check_number_of_sites(table)
    like = replace(settings, kernel=NAMED_KERNELS["rbf"], conditioning="all", refine=0)
    plan = plan_fit(like, table, execution)
    names = [step.name for step in plan.steps]
    before = plan.steps[: names.index(STEP_1) + 1]
    n = int(settings.n_latents or 1) * len(table.x)
    with limit_threads(n):
        speed = measure_speed("cpu")
    turns = -(-settings.n_restarts // plan.n_processes)
    steps = [
        _step("starting points", n, settings.n_restarts, turns * TRIAL_ITERATIONS, speed),
        _step("constant weights", n, 1, CONSTANT_ITERATIONS, speed),
    ]
    if not constant_weights:
        turns = -(-2 // plan.n_processes)
        steps.append(_step("varying weights", n, 2, turns * VARYING_ITERATIONS, speed))
    return replace(plan, steps=(*before, *steps))


def _step(name: str, n: int, n_searches: int, n_iter: int, speed: MachineSpeed) -> Step:
    """Plan searches with this number of iterations in total."""
    evaluations = EVALUATIONS + WEIGHT_EVALUATIONS
    seconds = n_iter * evaluations * speed.likelihood(n, n**2 / 2)
    memory = MATRICES * BYTES_PER_ENTRY * float(np.square(n))
    return Step(name, "variational Bayes", n, n_searches, n, n_iter, seconds, memory)
