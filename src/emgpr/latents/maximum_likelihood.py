"""Step 1 by maximum likelihood, from the most promising starting points for every output.

The learner provides the objective: the likelihood of all readings (eq. 5), the likelihoods of
batches, or an inducing-point approximation. All learners share the starting points, the bounds and
the description of the result.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel, WhiteKernel

from emgpr.arrays import chunk_bytes, chunks
from emgpr.kernels import split_noise
from emgpr.latents.base import BaseLearner, Evaluations, Latent
from emgpr.latents.objective import negative_log_likelihood, with_noise_prior
from emgpr.latents.search_end import describe_end, white_noise_log_likelihood
from emgpr.latents.search_space import SearchSpace, SiteDistances, search_space
from emgpr.latents.starts import (
    EXPECTED_GAIN,
    GRADIENT_TOLERANCE,
    SUBSAMPLE_SITES,
    StartingPoints,
    WarmStart,
    find_starting_points,
    given_starting_points,
)
from emgpr.noise import noise_prior, output_variances
from emgpr.observations import Observations
from emgpr.optimize import Objective, OptimizeResult, minimize
from emgpr.parallel import (
    DEFAULT_EXECUTION,
    Execution,
    parallel_map,
    thread_map,
    uses_workers,
)

Array = np.ndarray

BYTES_PER_PAIR = 64.0  # temporary memory per pair of sites
# If the noise variance of a standardised output is smaller, it hardly affects the likelihood.
NOISE_FREE = 1e-5
# A search is given up if its log-likelihood, plus this multiple of the expected gain and a margin,
# is below the one to be exceeded.
GAIN_FACTOR, GAIN_MARGIN = 10.0, 0.5
# Typical number of evaluations for one output and kernel on the subsample, and their Python
# overhead, which is small because they run together for all outputs.
START_EVALUATIONS, START_OVERHEAD = 7, 0.4


class LikelihoodLearner(BaseLearner):
    """Base class of learners that maximise a likelihood; the default is the exact likelihood."""

    def select_sites(self, table: Observations) -> Observations:
        """Return the sites used for the fit.

        Every output must have been measured at every site of `table`.
        """
        return table

    def objective(
        self, table: Observations, kernel: Kernel, outputs: Int[Array, " m"], device: str = "cpu"
    ) -> Objective:
        """Return the function to minimise, given the table of the selected sites.

        Problem i is the fit to output `outputs[i]`. Its parameters are the log hyper-parameters of
        the kernel, followed by the log noise variance.
        """
        return negative_log_likelihood(table, kernel, outputs, device)

    def prepare(self, table: Observations, kernel: Kernel) -> None:
        """Compute what the search for a kernel needs of the sites, so that the table caches it."""
        table.subsample(SUBSAMPLE_SITES)

    def n_parts(self, n: int) -> int:
        """Return the number of parts into which workers can divide the sums over n readings."""
        return 1

    def divided_objective(
        self,
        table: Observations,
        kernel: Kernel,
        outputs: Int[Array, " m"],
        execution: Execution,
    ) -> Objective:
        """Return the objective, with sums over several parts divided among workers."""
        return self.objective(table, kernel, outputs, execution.device)

    def learn(self, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel) -> Latent:
        """Fit a kernel and a noise variance to one output, with up to 120 iterations per search."""
        self.check_settings()
        table, rng = Observations.of_one_output(x, y), np.random.default_rng(0)
        return maximise_likelihoods(table, [kernel], self, n_restarts=5, max_iter=120, rng=rng)[0]


def typical_evaluations(n: int) -> int:
    """Return a typical number of evaluations of the likelihood of n readings in a search.

    The search starts close to the optimum and ends when the next step is expected to gain less than
    a fixed amount. More readings need more steps.

    >>> [typical_evaluations(n) for n in (1, 100, 2400)]
    [1, 4, 7]
    """
    return max(1, round(0.7 * (np.log2(n) - 1)))


def search_work(n: int, times: int, **evaluation: Any) -> tuple[Evaluations, Evaluations]:
    """Describe a search with n readings, given the number of evaluations and the work of each."""
    n_subsample = min(n, SUBSAMPLE_SITES)
    start = Evaluations(
        START_EVALUATIONS, likelihoods=1, n_readings=n_subsample, calls=START_OVERHEAD
    )
    return start, Evaluations(times, **evaluation)


# Outputs that were measured at the same sites and a table of them, with a key for these sites.
Tables = dict[bytes, tuple[list[int], Observations]]


@dataclass(frozen=True)
class _Problem:
    """Searches that run together, for outputs measured at the same sites."""

    learner: LikelihoodLearner
    table: Observations
    kernel: Kernel
    search: SearchSpace
    starts: StartingPoints
    max_iter: int
    weak_prior: bool
    device: str


def maximise_likelihoods(
    observations: Observations,
    kernels: Sequence[Kernel],
    learner: LikelihoodLearner,
    *,
    n_restarts: int,
    max_iter: int,
    rng: np.random.Generator,
    weak_prior: bool = False,
    execution: Execution = DEFAULT_EXECUTION,
    outputs: Sequence[int] | None = None,
    starts: Sequence[WarmStart | None] | None = None,
    tables: Tables | None = None,
) -> list[Latent]:
    """Fit `kernels[i]` and a noise variance to `outputs[i]`, or to output i mod D, for every i.

    If `starts[i]` is not None, fit i starts from it. Otherwise, starting points are found together
    for all outputs that were measured at the same sites. With `weak_prior`, the posterior density
    under a weak prior on the noise is maximised. Workers run one search each, or, if the learner
    divides the sums over so many readings into parts, evaluate these parts. In the second case and
    on a GPU, the likelihoods of several outputs are maximised together. Calls with the same
    observations and learner can share the dict `tables`, in which tables of sites are kept.
    """
    D, device = observations.n_outputs, execution.device
    outputs = [i % D for i in range(len(kernels))] if outputs is None else outputs
    starts = [None] * len(kernels) if starts is None else starts
    tables = {} if tables is None else tables
    best: dict[int, tuple[float, Latent]] = {}
    distances = SiteDistances.in_table(observations)
    for kernel, fits in _group_equal(kernels):
        signal, white = split_signal_kernel(kernel)
        search = search_space(signal, white, distances, n_restarts, rng)
        varying = [i for i in fits if not observations.constant[outputs[i]]]
        for i in set(fits) - set(varying):
            n = int(observations.observed[outputs[i]].sum())
            best[i] = 0.0, constant_output_latent(signal, search, n, weak_prior)
        problems: list[_Problem] = []
        fits_of_problems: list[list[int]] = []
        groups = _group_similar(observations, varying, outputs, starts)

        def prepared(group: list[int], kernel: Kernel = signal) -> tuple[list[int], Observations]:
            same_sites, table = _table(observations, learner, outputs[group[0]], tables)
            if not uses_workers(execution):
                learner.prepare(table, kernel)
            return same_sites, table

        tables_of_groups = list(thread_map(prepared, groups))
        for group, (same_sites, table) in zip(groups, tables_of_groups, strict=True):
            at = np.array([same_sites.index(outputs[i]) for i in group])
            chosen = table.select_outputs(at)
            given = [start for start in (starts[i] for i in group) if start is not None]
            if given:
                found = given_starting_points(chosen, signal, search, given, weak_prior=weak_prior)
            else:
                found = find_starting_points(
                    chosen, signal, search, max_iter, weak_prior=weak_prior, device=device
                )
            # A GPU runs as many searches together as fit into its memory; the CPU runs them singly.
            memory = 0.0 if device == "cpu" else chunk_bytes(device)
            runs = chunks(len(found.x), BYTES_PER_PAIR * table.n_sites**2, 1, memory)
            if _is_divided(learner, table, execution):
                runs = [range(len(found.x))]
            for run in runs:
                part = found.select(run)
                fits_of_problems.append([group[j] for j in part.outputs])
                part = replace(part, outputs=at[part.outputs])
                problems.append(
                    _Problem(learner, table, signal, search, part, max_iter, weak_prior, device)
                )
        results = _run_searches(problems, execution)
        for problem, indices, result in zip(problems, fits_of_problems, results, strict=True):
            for i, (value, latent) in zip(indices, _latents(problem, result), strict=True):
                if i not in best or value > best[i][0]:
                    best[i] = value, latent
    return [best[i][1] for i in range(len(kernels))]


def _table(
    observations: Observations, learner: LikelihoodLearner, d: int, tables: Tables
) -> tuple[list[int], Observations]:
    """Return the outputs measured at the same sites as output d, and their table."""
    key = observations.observed[d].tobytes()
    if key not in tables:
        same = np.flatnonzero((observations.observed == observations.observed[d]).all(axis=1))
        tables[key] = same.tolist(), learner.select_sites(observations.outputs(same.tolist()))
    return tables[key]


def split_signal_kernel(kernel: Kernel) -> tuple[Kernel, WhiteKernel | None]:
    """Split a kernel into a signal kernel and white noise; raise an error if it has no signal."""
    signal, white = split_noise(kernel)
    if signal is None:
        raise ValueError(
            f"kernel={kernel} contains only noise, which is always fitted. Pass a kernel for the "
            "signal, such as RBF() or Matern(nu=1.5)."
        )
    return signal, white


def _group_equal(kernels: Sequence[Kernel]) -> list[tuple[Kernel, list[int]]]:
    """Return every distinct kernel with the list of its positions in the sequence."""
    groups: list[tuple[Kernel, list[int]]] = []
    for i, kernel in enumerate(kernels):
        for other, positions in groups:
            # Kernels whose parameters broadcast can compare as equal, so n_dims is compared first.
            if other.n_dims == kernel.n_dims and other == kernel:
                positions.append(i)
                break
        else:
            groups.append((kernel, [i]))
    return groups


def _group_similar(
    observations: Observations,
    fits: list[int],
    outputs: Sequence[int],
    starts: Sequence[WarmStart | None],
) -> list[list[int]]:
    """Group the fits whose outputs were measured at the same sites, and which all have starts."""
    groups: dict[tuple[bytes, bool], list[int]] = {}
    for i in fits:
        key = observations.observed[outputs[i]].tobytes(), starts[i] is None
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def _is_divided(learner: LikelihoodLearner, table: Observations, execution: Execution) -> bool:
    """Tell whether workers evaluate parts of the objective instead of running whole searches."""
    return learner.n_parts(table.n_sites) > 1 and uses_workers(execution)


def _run_searches(problems: list[_Problem], execution: Execution) -> list[OptimizeResult]:
    """Run searches in workers, and those with divided objectives in this process."""
    found: dict[int, OptimizeResult] = {}
    divided = [_is_divided(problem.learner, problem.table, execution) for problem in problems]
    for parts, where in ((False, execution), (True, replace(execution, n_jobs=1))):
        chosen = [i for i in range(len(problems)) if divided[i] == parts]
        search = partial(_maximise, execution=execution) if parts else _maximise
        label, items = "Step 1: outputs", [problems[i] for i in chosen]
        found |= zip(chosen, parallel_map(search, items, where, label=label), strict=True)
    return [found[i] for i in range(len(problems))]


def _maximise(problem: _Problem, execution: Execution | None = None) -> OptimizeResult:
    """Minimise the objective on all selected sites from every starting point.

    With `execution`, its workers evaluate the parts of the objective.
    """
    table, starts, search = problem.table, problem.starts, problem.search
    variances = output_variances(table)[starts.outputs]
    given = table, problem.kernel, starts.outputs
    likelihood = (
        problem.learner.objective(*given, problem.device)
        if execution is None
        else problem.learner.divided_objective(*given, execution)
    )
    objective = with_noise_prior(likelihood, variances, problem.weak_prior)

    def stop_if(x: Array, value: Array, gain: Array, which: Array) -> Array:
        noise = np.exp(x[:, -1])[:, None, None]
        log_prior = noise_prior(variances[which][:, None], problem.weak_prior)(noise)[0]
        highest = -value - log_prior + GAIN_FACTOR * gain + GAIN_MARGIN
        return np.asarray(highest < starts.to_exceed[which])

    result = minimize(
        objective,
        starts.x,
        bounds=search.bounds,
        max_iter=problem.max_iter,
        gtol=GRADIENT_TOLERANCE,
        expected_gain=EXPECTED_GAIN,
        memory=starts.memory,
        stop_if=stop_if,
    )
    return _round_noise_down(result, objective, search)


def _round_noise_down(
    result: OptimizeResult, objective: Objective, search: SearchSpace
) -> OptimizeResult:
    """Set a negligible noise variance to its lower bound, unless this reduces the likelihood."""
    floor = search.bounds[-1, 0]
    small = np.flatnonzero((result.x[:, -1] < np.log(NOISE_FREE)) & (result.x[:, -1] > floor))
    if not len(small):
        return result
    x, value, at_bound = result.x.copy(), result.value.copy(), result.at_bound.copy()
    noise_free = x[small]
    noise_free[:, -1] = floor
    found = objective(noise_free, small)[0]
    as_good = found <= value[small] + EXPECTED_GAIN  # False for NaN
    chosen = small[as_good]
    x[chosen], value[chosen], at_bound[chosen, -1] = noise_free[as_good], found[as_good], True
    return replace(result, x=x, value=value, at_bound=at_bound)


def _latents(problem: _Problem, result: OptimizeResult) -> list[tuple[float, Latent]]:
    """Return, for every search, the maximum of the log posterior density and the fitted latent."""
    table, search = problem.table, problem.search
    found = []
    for i, d in enumerate(problem.starts.outputs):
        end, value = result.problem(i), -float(result.value[i])
        prior = noise_prior(output_variances(table)[[d]], problem.weak_prior)
        noise = float(np.exp(end.x[0, -1]))
        only_noise = value < white_noise_log_likelihood(table.y[d], search, prior)
        latent = Latent(
            problem.kernel.clone_with_theta(end.x[0, :-1]),
            noise,
            value - float(prior(np.array([[noise]]))[0]),
            search.noise_bounds,
            int(end.n_iter[0]),
            describe_end(end, search, problem.max_iter, only_noise=only_noise),
            table.n_sites,
        )
        found.append((value, latent))
    return found


def constant_output_latent(kernel: Kernel, search: SearchSpace, n: int, weak_prior: bool) -> Latent:
    """Return the latent of n equal readings: a starting kernel and the most probable noise."""
    low, high = search.bounds[-1]
    levels = np.exp(np.linspace(low, high, 200))
    log_prior = noise_prior(np.ones(1), weak_prior)(levels[:, None, None])[0]
    noise = float(levels[np.argmax(log_prior - 0.5 * n * np.log(levels))])
    return Latent(kernel.clone_with_theta(search.starts[0, :-1]), noise, 0.0, (noise, noise))
