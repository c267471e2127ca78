"""The cost of a fit, computed from the sizes of its steps and the speed of the machine.

Sizes are known before a fit, but the numbers of likelihood evaluations are not. The numbers assumed
here are typical of the Jura and AMSU-A data and of simulated tables (`benchmarks/planned.py`). The
number for the joint optimisation grows with the number of parameters. With more than 10⁵ sites,
validation, standardisation and the construction of k-d trees also take time.
"""

from collections.abc import Iterator, Sequence

import joblib
import numpy as np
from jaxtyping import Float

from emgpr.arrays import chunk_bytes, limit_threads
from emgpr.fitting.defaults import FitSettings, resolve_params
from emgpr.fitting.input_columns import are_coordinates
from emgpr.inputs import TrainingTable
from emgpr.latents import Exact, choose_learner, is_external, learners_per_output
from emgpr.latents.kernel_choice import (
    CANDIDATES,
    count_varying_columns,
    shares_length_scale,
)
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.parameter_checks import is_auto
from emgpr.planning.approximations import describe_batches, describe_learners
from emgpr.planning.plan import Plan, Step
from emgpr.planning.prediction_costs import plan_prediction, plan_stacking
from emgpr.planning.problem_size import (
    BYTES_PER_ENTRY,
    MATRICES_IN_MEMORY,
    Workload,
    learner_work,
)
from emgpr.planning.speed import SECONDS_PER_CALL, measure_speed
from emgpr.planning.vecchia_costs import plan_vecchia
from emgpr.row_numbers import rows_of_table
from emgpr.transforms import bounds_per_output, candidates, transforms_to_fit
from emgpr.transforms.automatic import FIT_SITES as TRANSFORM_FIT_SITES
from emgpr.transforms.automatic import MAX_SITES as MAX_TRANSFORM_SITES
from emgpr.weights.fit import (
    LOW_RANK_READINGS,
    SUBSAMPLE_READINGS,
    SUBSAMPLE_READINGS_PER_PARAMETER,
)

Array = np.ndarray

# Number of evaluations of the likelihood: for a member in step 2, and for a member with a small
# batch, which uses Newton's method; in the joint optimisation on a subsample, and with a single
# latent process; in a sweep over kernels and noise with fixed weights; and after the removal of a
# latent process.
STEP_2_EVALUATIONS, SMALL_BATCH_EVALUATIONS = 20, 10
COARSE_EVALUATIONS, ONE_LATENT_EVALUATIONS = 20, 30
SWEEP_EVALUATIONS, REFIT_EVALUATIONS = 25, 15
# Number of evaluations in the joint optimisation, relative to the square root of the number of
# parameters.
JOINT_EVALUATIONS = 8.0
# If noise can be correlated, the joint optimisation is repeated without the latent processes that
# turn out to be noise. With this many latent processes, there nearly always are such processes.
MANY_LATENTS = 30
# Time of step 1 for a kernel that starts from the fit of another one, relative to the first kernel.
# Some of these searches end early, and some are not needed.
FURTHER_KERNEL = 0.45
# Time of step 1 for kernels with a length-scale for each column, relative to a single length-scale.
SEPARATE_SCALES = 3.0
# Seconds needed to fit one candidate transform to an output and to compute its densities, relative
# to the Python overhead of a likelihood.
TRANSFORM_CALLS = 2.0

TABLE_PASSES = 700.0  # time per site before step 1, relative to computing one kernel value
TABLE_COPIES = 5.0  # copies of the table in memory: original, validated, standardised
EIGEN_TIME = 6.0  # time needed to compute and use eigenvectors, relative to a Cholesky inverse
# Assumed rank of the low-rank covariance in step 2, relative to the number of readings: for smooth
# kernels, and for kernels that are chosen from the data, which are often rough.
RELATIVE_RANK, RELATIVE_RANK_OF_CHOSEN = 0.5, 1.0


def plan_fit(settings: FitSettings, table: TrainingTable, execution: Execution) -> Plan:
    """Return the steps of a fit to this table with these settings, and their costs."""
    observations = Observations.from_table(table.x, table.Y)
    with limit_threads(observations.n_readings), rows_of_table(table.inputs.rows):
        return _plan_fit(settings, observations, table, execution)


def _plan_fit(
    settings: FitSettings,
    observations: Observations,
    table: TrainingTable,
    execution: Execution,
) -> Plan:
    device = execution.device
    n_processes = joblib.effective_n_jobs(execution.n_jobs) if device == "cpu" else 1
    params = resolve_params(settings, observations)
    load = Workload(settings, observations, params, measure_speed(device), device, n_processes)
    steps = [
        _table(load),
        *_transforms(load, table.Y, table.output_names),
        _step_1(load, are_coordinates(table.inputs, table.x)),
        *(_weights(load) if settings.couples_outputs else ()),
        *plan_stacking(load),
    ]
    return Plan(
        observations.n_sites,
        observations.n_outputs,
        observations.n_readings,
        device,
        n_processes,
        tuple(steps),
        plan_prediction(load),
    )


def _table(load: Workload) -> Step:
    """Plan the validation and standardisation of the table."""
    seconds, memory = load.site_passes(TABLE_PASSES), load.table_bytes(TABLE_COPIES)
    n = load.observations.n_readings
    return Step("table", "validation, standardisation", n, 0, 0, 1, seconds, memory)


def _transforms(load: Workload, Y: Float[Array, "N D"], names: Sequence[str]) -> Iterator[Step]:
    """Plan the choice of transforms, for which each output is fitted once."""
    settings = load.settings
    given = transforms_to_fit(settings.output_transform, settings.compositions, names)
    bounds = bounds_per_output(settings.output_bounds, names, Y, given)
    n_candidates = [
        len(candidates(values[~np.isnan(values)], bound))
        for values, bound, spec in zip(Y.T, bounds, given, strict=True)
        if is_auto(spec)
    ]
    several = [n for n in n_candidates if n > 1]  # a single candidate needs no fit
    if not several:
        return
    n, N = min(load.max_count, MAX_TRANSFORM_SITES), load.observations.n_sites
    work = Exact().work(min(n, TRANSFORM_FIT_SITES))
    seconds = len(several) * (load.work_seconds(work) or 0.0)
    scores = len(several) * load.speed.likelihood(n, n**2)
    scores += sum(several) * TRANSFORM_CALLS * SECONDS_PER_CALL
    seconds += scores / min(load.n_processes, len(several))
    method = f"{sum(several)} candidates, by cross-validation"
    sampled = f"chosen on {MAX_TRANSFORM_SITES} of {N} sites" if N > MAX_TRANSFORM_SITES else ""
    memory = load.work_bytes(work)
    yield Step("transforms", method, n, len(several), n, work.evaluations, seconds, memory, sampled)


def _step_1(load: Workload, coordinates: bool) -> Step:
    """Plan step 1, which fits each output separately.

    `coordinates` tells whether all input columns are coordinates of one unit.
    """
    settings, D, n = load.settings, load.observations.n_outputs, load.max_count
    learner = choose_learner(settings.latent_learner, load.observations)
    learners, external = learners_per_output(learner, D), is_external(learner)
    n_fits, kernels, scales = D, "", 1.0
    if settings.lists_kernels and not external:
        n_fits = max(D, len(settings.kernel))  # type: ignore[arg-type]
    elif settings.chooses_kernel and not external:
        shared = shares_length_scale(load.observations, coordinates)
        several = count_varying_columns(load.observations) > 1 and shared
        n_fits = D * (len(CANDIDATES) + several)
        scales = 1.0 if shared else SEPARATE_SCALES
        kernels = f", {len(CANDIDATES)} kernels"
        kernels += ", the best also with a length-scale for each column" if several else ""
    counts = [n if external else int(load.counts[i % D]) for i in range(n_fits)]
    fits = [learner_work(learners[i % D], count) for i, count in enumerate(counts)]
    known = [load.work_seconds(work) for work in fits]
    seconds = None
    share = FURTHER_KERNEL if settings.chooses_kernel else 1.0
    if None not in known:
        first, further = (sum(filter(None, part)) for part in (known[:D], known[D:]))
        n_tasks = n_fits * max(work.n_parts for work in fits)
        seconds = scales * (first + share * further) / min(load.n_processes, n_tasks)
    # If learners differ, show one whose time is unknown or, if all times are known, the slowest.
    largest = [learner_work(learner, n) for learner in learners]
    shown = max(largest, key=lambda work: (work.parts is None, work.evaluations))
    return Step(
        "step 1",
        shown.method + kernels,
        min(n, shown.n_matrices * shown.side),
        round(D + share * (n_fits - D)) * shown.n_matrices,
        shown.side,
        max(work.evaluations for work in largest),
        seconds,
        max(map(load.work_bytes, largest)),
        describe_learners(learners, n),
    )


def _weights(load: Workload) -> Iterator[Step]:
    """Plan step 2 and the optimisation that follows it."""
    if load.params.n_neighbours is not None:
        yield from plan_vecchia(load)
        return
    params, D, L = load.params, load.observations.n_outputs, load.n_members
    joint = params.refine == "joint"
    n_weights = params.n_weights * D
    n = _subsample(load, n_weights) if joint else load.member_readings
    step_2 = _step_2(load, n, "" if params.refine else _describe_batches(load))
    yield step_2
    n_values = params.n_latents * load.member_sites**2
    once = L * _likelihood(load, load.member_readings, n_values)
    if joint:
        n_coarse = _subsample(load, n_weights + D * (D + 1) // 2 + params.n_latents)
        share = (n_coarse / load.member_readings) ** 2
        coarse = L * _likelihood(load, n_coarse, n_values * share)
        times = _joint_evaluations(load)
        repeated = min(1.0, params.n_latents / MANY_LATENTS) if params.correlated else 0.0
        seconds = (1 + repeated) * times * once
        seconds += COARSE_EVALUATIONS * coarse if n_coarse < load.member_readings else 0.0
        yield _optimisation(load, "joint optimisation", _form(load), times, seconds, describe=True)
    elif params.refine:
        sweep = SWEEP_EVALUATIONS * once + (step_2.seconds or 0.0)
        method, seconds = f"{params.refine} sweeps, {_form(load)}", int(params.refine) * sweep
        yield _optimisation(load, "refinement", method, SWEEP_EVALUATIONS, seconds, describe=True)
    if is_auto(load.settings.n_latents):
        times = REFIT_EVALUATIONS if joint else STEP_2_EVALUATIONS
        seconds = params.n_latents * times * once
        method = "removal of latent processes"
        yield _optimisation(load, "pruning", method, REFIT_EVALUATIONS, seconds)


def _joint_evaluations(load: Workload) -> int:
    """Return the number of evaluations of the likelihood in the joint optimisation."""
    params, D = load.params, load.observations.n_outputs
    if params.n_latents == 1:
        return ONE_LATENT_EVALUATIONS
    n_noises = D * (D + 1) // 2 if params.correlated else D
    n_parameters = load.n_members * params.n_weights * D + n_noises + params.n_latents
    return min(load.settings.max_iter, round(JOINT_EVALUATIONS * n_parameters**0.5))


def _describe_batches(load: Workload) -> str:
    return describe_batches(load.n_members, load.member_sites, load.observations.n_sites)


def _step_2(load: Workload, n: int, approximation: str) -> Step:
    """Plan step 2, in which each member uses n readings."""
    L, D, Q = load.n_members, load.observations.n_outputs, load.params.n_latents
    if load.member_sites * D <= LOW_RANK_READINGS:
        times = SMALL_BATCH_EVALUATIONS
        # All members are evaluated in one call, so that the Python overhead does not grow with L.
        each = load.speed.likelihood(n, 0.0) - SECONDS_PER_CALL
        seconds = times * (L * each + 2 * SECONDS_PER_CALL)
        dense = L * MATRICES_IN_MEMORY * BYTES_PER_ENTRY * n**2
        memory = min(dense, chunk_bytes(load.device))
        method = "dense, all members at once"
        return Step("step 2", method, L * n, L, n, times, seconds, memory, approximation)
    times, chosen = STEP_2_EVALUATIONS, load.settings.chooses_kernel
    rank = round((RELATIVE_RANK_OF_CHOSEN if chosen else RELATIVE_RANK) * n)
    sites = load.member_sites * n / load.member_readings
    eigen = EIGEN_TIME * Q * load.speed.factorisation(sites)
    each = times * load.speed.likelihood(rank, 0.0) + eigen
    seconds = L * each / min(load.n_processes, L)
    method = "low rank, or dense if that is faster"
    memory = MATRICES_IN_MEMORY * BYTES_PER_ENTRY * n * rank  # a compromise between both forms
    return Step("step 2", method, L * n, L, rank, times, seconds, memory, approximation)


def _subsample(load: Workload, n_parameters: int) -> int:
    """Return the number of readings in the subsample with which a member's optimisation starts."""
    n = max(SUBSAMPLE_READINGS, SUBSAMPLE_READINGS_PER_PARAMETER * n_parameters)
    return n if n <= 0.7 * load.member_readings else load.member_readings


def _is_kronecker(load: Workload) -> bool:
    """Tell whether the covariance is a Kronecker product: one latent and no missing readings."""
    single_latent = load.params.n_latents == 1 and load.observations.n_outputs > 1
    return single_latent and load.n_members == 1 and load.observations.complete


def _likelihood(load: Workload, n: float, n_values: float) -> float:
    """Return the seconds for one evaluation of the likelihood of a member with n readings."""
    if not _is_kronecker(load):
        return load.speed.likelihood(n, n_values)
    N = n / load.observations.n_outputs
    return EIGEN_TIME * load.speed.factorisation(N) + load.speed.likelihood(0.0, N**2)


def _form(load: Workload) -> str:
    if _is_kronecker(load):
        return "Kronecker form, by eigenvectors"
    L = load.n_members
    return "dense" if L == 1 else f"dense, {L} batches of {load.member_sites} sites"


def _optimisation(
    load: Workload, name: str, method: str, times: int, seconds: float, *, describe: bool = False
) -> Step:
    """Return the step that maximises the likelihood of the members, each with all its readings."""
    L, n = load.n_members, load.member_readings
    side = load.member_sites if _is_kronecker(load) else n
    at_once = min(L, max(1, int(chunk_bytes(load.device) // (32.0 * n**2))))
    memory = at_once * MATRICES_IN_MEMORY * BYTES_PER_ENTRY * side**2
    approximation = _describe_batches(load) if describe else ""
    return Step(name, method, L * n, L, side, times, seconds, memory, approximation)
