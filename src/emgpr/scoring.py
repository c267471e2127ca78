"""Maximisation of a log posterior density by damped Fisher scoring.

A step solves (F + λ diag F) step = gradient, where F is an information matrix (Levenberg-Marquardt
damping). The damping λ decreases after each step that is accepted at once, and increases if a step
has to be shortened. Far from the maximum, this gains in ten iterations what L-BFGS gains in a
hundred. Close to the maximum, F can differ from the curvature. Therefore, after `n_scoring`
iterations, F becomes the initial curvature of L-BFGS, which corrects it along previous steps.

The search has converged if the expected gain of an undamped step is small.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import cho_solve, cholesky

from emgpr.optimize import AT_BOUND, LBFGSMemory, OptimizeResult

Array = np.ndarray
Function = Callable[[Float[Array, " p"]], tuple[float, Float[Array, " p"]]]
Information = Callable[[Float[Array, " p"], int], Float[Array, "p p"]]

INITIAL_DAMPING, MIN_DAMPING, MAX_DAMPING = 1.0, 1e-4, 1e3
DECREASE, INCREASE = 0.5, 4.0  # factors of the damping after accepted and after shortened steps
MIN_INFORMATION = 1e-3  # lower bound on diag F, relative to `scale` / p
ROUNDING = 1e-10  # relative damping that makes a nearly singular matrix invertible
SUFFICIENT_INCREASE = 1e-4  # relative to the increase predicted by the gradient (Armijo)
MAX_STEP = 1.0  # largest change of a variable in a step
MAX_REDUCTIONS = 12  # maximum number of times that a step is shortened
MAX_SCORING, RENEWAL = 20, 5  # iterations with F only, by default; F is then renewed every RENEWAL
FIRST_AVERAGED = 6  # iteration from which on the information matrices are averaged
N_PAIRS = 20  # number of stored pairs of a step and the change of the gradient


@dataclass(frozen=True)
class ScoringState:
    """The best point found so far, how the search ended, and what is needed to resume it."""

    x: Float[Array, " p"]
    value: float
    gradient: Float[Array, " p"]
    information: Float[Array, "p p"]
    damping: float = INITIAL_DAMPING
    n_iter: int = 0
    n_evaluations: int = 1
    expected_gain: float = np.inf
    converged: bool = False
    failed: bool = False  # no step increases the value
    nonfinite: bool = False
    pairs: tuple[tuple[Array, Array], ...] = field(default=(), repr=False)


def maximise_by_scoring(
    function: Function,
    information: Information,
    x0: Float[Array, " p"],
    *,
    bounds: Float[Array, "p 2"],
    scale: float,
    tolerance: float,
    max_iter: int,
    min_iter: int = 0,
    damping: float = INITIAL_DAMPING,
    new_share: float = 1.0,
    n_scoring: int = MAX_SCORING,
    callback: Callable[[ScoringState], None] | None = None,
    initial_state: ScoringState | None = None,
) -> ScoringState:
    """Maximise a function, given its gradient and an information matrix.

    `function(x)` returns value and gradient. `information(x, i)` returns the information matrix for
    iteration i. If it is computed from a random part of the data, pass a `new_share` below 1; it is
    then averaged over iterations, with this share of the newest matrix. `scale` is the number of
    readings. The search ends if the expected gain is at most `tolerance * scale`, but not before
    `min_iter` iterations. After `n_scoring` iterations, F is renewed less often and corrected along
    previous steps.

    >>> target = np.array([1.0, 5.0])
    >>> found = maximise_by_scoring(
    ...     lambda x: (-((x - target) ** 2).sum(), -2 * (x - target)),
    ...     lambda x, i: 2 * np.eye(2),
    ...     np.zeros(2),
    ...     bounds=np.array([[-2.0, 2.0], [-2.0, 2.0]]),
    ...     scale=1.0,
    ...     tolerance=1e-6,
    ...     max_iter=50,
    ... )
    >>> found.x.round(2), found.converged
    (array([1., 2.]), True)
    """
    low, high = bounds.T
    state = initial_state
    if state is None:
        state = evaluate_start(function, information, x0, bounds=bounds, damping=damping)
    while True:
        state = _assess(state, low, high, scale, tolerance)
        done = state.converged and state.n_iter >= min_iter
        if done or state.failed or state.n_iter >= max_iter:
            break
        state = _step(state, function, low, high, scale, n_scoring)
        if not state.failed and (state.n_iter < n_scoring or state.n_iter % RENEWAL == 0):
            state = replace(state, information=_update(state, information, new_share))
        if callback is not None:
            callback(state)
    return state


def evaluate_start(
    function: Function,
    information: Information,
    x0: Float[Array, " p"],
    *,
    bounds: Float[Array, "p 2"],
    damping: float = INITIAL_DAMPING,
) -> ScoringState:
    """Return the state in which a search from `x0`, moved inside its bounds, begins."""
    x = np.clip(x0, *bounds.T)
    value, gradient = function(x)
    if not np.isfinite(value):
        empty = np.zeros((len(x), len(x)))
        return ScoringState(x, value, gradient, empty, failed=True, nonfinite=True)
    return ScoringState(x, value, gradient, information(x, 0), damping)


def as_optimize_result(state: ScoringState, bounds: Float[Array, "p 2"]) -> OptimizeResult:
    """Return the end of a search in the form in which `minimize` returns it."""
    x, (low, high) = state.x[None], bounds.T
    empty = np.zeros((1, 0, x.shape[1]))
    return OptimizeResult(
        x,
        -np.array([state.value]),
        np.array([state.converged]),
        (x <= low + AT_BOUND) | (x >= high - AT_BOUND),
        np.array([state.n_iter]),
        LBFGSMemory(empty, empty, np.zeros(1, int)),
        np.array([state.nonfinite]),
    )


def expected_gain(gradient: Float[Array, " p"], information: Float[Array, "p p"]) -> float:
    """Return ½ gᵀ(F + I)⁻¹g, the gain that an undamped step is expected to have.

    The identity matrix is the information of a prior with a standard deviation of one for every
    variable. Without it, the gain would be overestimated where F is nearly singular.
    """
    F = information + np.eye(len(gradient))
    return 0.5 * float(gradient @ _solve(F, gradient, ROUNDING, 1.0))


def _update(state: ScoringState, information: Information, new_share: float) -> Float[Array, "p p"]:
    """Return the information matrix at the present point, averaged with previous ones."""
    new = information(state.x, state.n_iter)
    share = 1.0 if state.n_iter < FIRST_AVERAGED else new_share
    return share * new + (1 - share) * state.information


def _assess(
    state: ScoringState, low: Array, high: Array, scale: float, tolerance: float
) -> ScoringState:
    """Compute the expected gain, and whether the search has converged."""
    if state.failed:
        return state
    free = _free(state, low, high)
    gain = expected_gain(state.gradient[free], state.information[np.ix_(free, free)])
    return replace(state, expected_gain=gain, converged=gain <= tolerance * scale)


def _free(state: ScoringState, low: Array, high: Array) -> Bool[Array, " p"]:
    """Mark the variables that are not held at a bound by the gradient."""
    held_low = (state.x <= low) & (state.gradient < 0)
    return ~(held_low | ((state.x >= high) & (state.gradient > 0)))


def _step(
    state: ScoringState, function: Function, low: Array, high: Array, scale: float, n_scoring: int
) -> ScoringState:
    """Take one step, shortened until it increases the value sufficiently."""
    free = _free(state, low, high)
    pairs = state.pairs if state.n_iter >= n_scoring else ()
    direction = _direction(state, free, pairs, scale)
    direction = _limited(direction, state.gradient)
    length, n_evaluations, nonfinite = 1.0, state.n_evaluations, False
    for _ in range(MAX_REDUCTIONS):
        x = np.clip(state.x + length * direction, low, high)
        value, gradient = function(x)
        n_evaluations += 1
        predicted = float(state.gradient @ (x - state.x))
        if np.isfinite(value) and value >= state.value + SUFFICIENT_INCREASE * predicted:
            break
        nonfinite |= not np.isfinite(value)
        bend = state.value + predicted - value
        factor = predicted / (2 * bend) if np.isfinite(bend) and bend > 0 else 0.25
        length *= float(np.clip(factor, 0.1, 0.5))
    else:
        # No step increases the value. Without stored pairs, and with the largest damping, the
        # direction is that of the gradient, and nothing else can be tried.
        exhausted = not pairs and state.damping >= MAX_DAMPING
        return replace(
            state, damping=MAX_DAMPING, pairs=(), failed=exhausted, nonfinite=nonfinite,
            n_evaluations=n_evaluations,
        )  # fmt: skip
    step, change = x - state.x, state.gradient - gradient
    kept = state.pairs
    if step @ change > 1e-10 * (change @ change):
        kept = (*kept, (step, change))[-N_PAIRS:]
    factor = INCREASE if length < 1 else DECREASE
    return replace(
        state, x=x, value=value, gradient=gradient, n_iter=state.n_iter + 1,
        damping=float(np.clip(state.damping * factor, MIN_DAMPING, MAX_DAMPING)), pairs=kept,
        n_evaluations=n_evaluations,
    )  # fmt: skip


def _direction(
    state: ScoringState, free: Bool[Array, " p"], pairs: tuple[tuple[Array, Array], ...],
    scale: float,
) -> Float[Array, " p"]:  # fmt: skip
    """Return H⁻¹ g in the free variables, with H from F and the pairs (two-loop recursion)."""
    q = state.gradient[free]
    restricted = [(step[free], change[free]) for step, change in pairs]
    used = [(s, y, s @ y) for s, y in restricted if s @ y > 1e-10 * (y @ y)]
    alphas = []
    for s, y, product in reversed(used):
        alphas.append((s @ q) / product)
        q = q - alphas[-1] * y
    q = _solve(state.information[np.ix_(free, free)], q, state.damping, scale)
    for (s, y, product), alpha in zip(used, reversed(alphas), strict=True):
        q = q + (alpha - (y @ q) / product) * s
    if q @ state.gradient[free] <= 0:  # not an ascent direction
        q = _solve(state.information[np.ix_(free, free)], state.gradient[free], 1.0, scale)
    direction = np.zeros_like(state.x)
    direction[free] = q
    return direction


def _limited(direction: Float[Array, " p"], gradient: Float[Array, " p"]) -> Float[Array, " p"]:
    """Limit the change of each variable, or scale all changes if that is not an ascent."""
    limited = np.clip(direction, -MAX_STEP, MAX_STEP)
    if limited @ gradient > 0:
        return limited
    return direction * min(1.0, MAX_STEP / float(np.abs(direction).max(initial=MAX_STEP)))


def _solve(
    F: Float[Array, "p p"], g: Float[Array, " p"], damping: float, scale: float
) -> Float[Array, " p"]:
    """Return (F + damping · diag F)⁻¹ g, with more damping if that matrix is not definite."""
    if not len(g):
        return g
    diagonal = np.maximum(np.diagonal(F), MIN_INFORMATION * scale / len(g))
    while True:
        damped = F.copy()
        damped[np.diag_indices_from(damped)] += damping * diagonal
        try:
            return np.asarray(cho_solve((cholesky(damped, lower=True), True), g))
        except np.linalg.LinAlgError:
            damping = 10 * max(damping, ROUNDING)
            if damping > 1e6:
                return g / diagonal
