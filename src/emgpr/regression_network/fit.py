"""The fit of Gaussian process regression networks by structured variational Bayes.

All starting points have constant weights, with the same prior variance. They are tried for a few
iterations, and the best one is continued, first with equal and then with separate variances. If
weights may vary, there are two more searches. One starts from the best trial, with weights that
change over the region; their length-scale, and a large noise, are held fixed at first, so that
weights and nodes can adapt. The other one starts from the result for constant weights, with weights
that are almost constant. The search with the higher bound is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from emgpr.arrays import limit_threads
from emgpr.latents import typical_distances
from emgpr.parallel import DEFAULT_EXECUTION, Execution, parallel_map
from emgpr.progress import iteration_progress
from emgpr.regression_network.extrapolate import extrapolate
from emgpr.regression_network.problem import NetworkProblem
from emgpr.regression_network.starts import starting_states
from emgpr.regression_network.updates import NetworkState, update_nodes, update_weights

MAX_SITES = 1000  # with more, an iteration takes more than ten seconds
TRIAL_ITERATIONS = 15  # for each starting point
EQUAL_ITERATIONS = 60  # at most, with equal variances of the weights, from the best starting point
NODE_STEPS, WEIGHT_STEPS = 3, 8  # of L-BFGS, in each iteration
TOLERANCE = 1e-6  # gain of an iteration for each reading, at which a search has converged
# Iterations in which the length-scale of varying weights and the noise are fixed, and the noise.
HELD_ITERATIONS, HELD_NOISE = 10, 0.3
CONSTANT, VARYING, ALMOST_CONSTANT = (
    "constant weights", "varying weights", "almost constant weights",
)  # fmt: skip
# Length-scales of the weights at the start of a search, relative to the extent of the region.
WEIGHT_SCALES = {VARYING: 1.5, ALMOST_CONSTANT: 10.0}


@dataclass(frozen=True)
class NetworkSearch:
    """Where a search ended: its start, the bound, the number of iterations, and convergence."""

    start: str
    bound: float
    n_iter: int
    converged: bool


@dataclass(frozen=True)
class FittedNetwork:
    """The state with the highest bound, its search, and all searches."""

    state: NetworkState
    best: NetworkSearch
    searches: Sequence[NetworkSearch]


def fit_network(
    problem: NetworkProblem,
    n_latents: int,
    *,
    constant_weights: bool = False,
    n_restarts: int = 5,
    max_iter: int = 200,
    rng: np.random.Generator,
    execution: Execution = DEFAULT_EXECUTION,
) -> FittedNetwork:
    """Fit all parameters and both blocks of q to standardised readings."""
    equal = replace(problem, equal_variances=True)
    with limit_threads(n_latents * problem.observations.n_sites):
        starts = starting_states(equal, n_latents, n_restarts, rng)
        trial = partial(search_maximum, equal, CONSTANT, max_iter=min(TRIAL_ITERATIONS, max_iter))
        label = "Regression network: starting points"
        trials = parallel_map(trial, starts, execution, label=label)
        tried, _ = max(trials, key=lambda end: end[0].bound)
        n_equal, verbose = min(EQUAL_ITERATIONS, max_iter), execution.verbose
        state, _ = search_maximum(equal, CONSTANT, tried, max_iter=n_equal, verbose=verbose)
        ends = [search_maximum(problem, CONSTANT, state, max_iter=max_iter, verbose=verbose)]
        if not constant_weights:
            label = "Regression network: varying weights"
            search = partial(search_varying, problem, max_iter)
            jobs = [(VARYING, tried), (ALMOST_CONSTANT, ends[0][0])]
            ends += parallel_map(search, jobs, execution, label=label)
    candidates = ends if constant_weights else ends[1:]
    state, best = max(candidates, key=lambda end: end[0].bound)
    searches = [*(search for _, search in trials), *(search for _, search in ends)]
    return FittedNetwork(state, best, searches)


def search_varying(
    problem: NetworkProblem, max_iter: int, start: tuple[str, NetworkState]
) -> tuple[NetworkState, NetworkSearch]:
    """Search from a state with constant weights, whose weights are allowed to vary from now on."""
    name, state = start
    scale = WEIGHT_SCALES[name] * typical_distances(problem.observations.x)[1]
    scale = float(np.clip(scale, *np.exp(problem.weight_bounds)))
    parameters, n_held = replace(state.parameters, weight_length_scale=scale), 0
    if name == VARYING:
        parameters = replace(parameters, noise=np.maximum(parameters.noise, HELD_NOISE))
        n_held = HELD_ITERATIONS
    state = replace(state, parameters=parameters)
    return search_maximum(problem, name, state, max_iter=max_iter, n_held=n_held)


def search_maximum(
    problem: NetworkProblem,
    name: str,
    state: NetworkState,
    *,
    max_iter: int,
    n_held: int = 0,
    verbose: int = 0,
) -> tuple[NetworkState, NetworkSearch]:
    """Update weights and nodes in turn until the bound no longer increases."""
    threshold = TOLERANCE * problem.observations.n_readings
    bounds, converged, recent = [state.bound], False, [state]
    label = f"Regression network, {name}"
    with iteration_progress(label, max_iter, threshold, verbose) as show:
        for i in range(max_iter):
            held = i < n_held
            state = update_weights(problem, state, WEIGHT_STEPS, hold=held)
            state = update_nodes(problem, state, NODE_STEPS, hold=held)
            # The state before the first iteration is not a result of updates.
            recent = [*recent, state] if i else [state]
            if len(recent) == 3:
                state = extrapolate(problem, *recent)
                recent = [state]
            bounds.append(state.bound)
            show(bounds)
            # In the first iteration, the prior can differ from that of the start.
            converged = i > n_held and abs(bounds[-1] - bounds[-2]) < threshold
            if converged:
                break
    return state, NetworkSearch(name, state.bound, len(bounds) - 1, converged)
