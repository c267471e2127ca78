"""Bounded minimisation of many functions at a time, by projected L-BFGS or Newton's method.

Newton's method is used if the objective returns its curvature. All problems of a batch are
evaluated together, each with its own history and step length, until all have ended. A step changes
each variable by at most `max_step`; the first step, by at most a fifth of this. A long first step
could lead to a region where the likelihood is flat (for length-scales near zero, for instance), and
the search would stop there.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from emgpr.arrays import eigh

Array = np.ndarray
Points = Float[Array, "b p"]
Problems = Int[Array, " b"]
Values = Float[Array, " b"]
Curvatures = Float[Array, "b p p"]
Objective = Callable[[Points, Problems], tuple[Values, Points]]
ObjectiveWithCurvature = Callable[[Points, Problems], tuple[Values, Points, Curvatures]]
AnyObjective = Objective | ObjectiveWithCurvature

N_PAIRS = 20  # number of stored pairs of a step and the change of the gradient
SUFFICIENT_DECREASE = 1e-4  # relative to the decrease predicted by the gradient (Armijo)
MAX_REDUCTIONS = 20  # maximum number of times that a step is shortened
FIRST_STEP = 0.2  # relative to max_step, if the curvature is unknown
MIN_CURVATURE = 1e-4  # relative to the largest eigenvalue; smaller eigenvalues are replaced
MIN_PAIR_CURVATURE = 1e-10  # of a stored pair: step · change relative to change²
# A gradient below this multiple of gtol times the magnitude of the value can be rounding error.
FLAT = 1e3
AT_BOUND = 1e-6  # a variable within this distance of a bound counts as being at the bound


@dataclass(frozen=True)
class LBFGSMemory:
    """The most recent steps and the gradient changes along these steps, the oldest first."""

    steps: Float[Array, "B m p"]
    gradient_changes: Float[Array, "B m p"]
    n_pairs: Int[Array, " B"]

    def select(
        self, problems: Int[Array, " b"] | Sequence[int], growth: float = 1.0
    ) -> "LBFGSMemory":
        """Return the memory of these problems, rescaled for functions multiplied by `growth`."""
        rows = np.asarray(problems)
        changes = growth * self.gradient_changes[rows]
        return LBFGSMemory(self.steps[rows], changes, self.n_pairs[rows])


@dataclass(frozen=True)
class OptimizeResult:
    """Final point of each problem, whether it converged, and which variables are at a bound.

    `nonfinite` marks problems whose function had no finite value along a search direction. The
    search then continued along the gradient, from the best point found.
    """

    x: Float[Array, "B p"]
    value: Float[Array, " B"]
    converged: Bool[Array, " B"]
    at_bound: Bool[Array, "B p"]
    n_iter: Int[Array, " B"]
    memory: LBFGSMemory
    nonfinite: Bool[Array, " B"]

    def problem(self, i: int) -> "OptimizeResult":
        """Return the result of one problem as a batch of one."""
        at = slice(i, i + 1)
        return OptimizeResult(
            self.x[at],
            self.value[at],
            self.converged[at],
            self.at_bound[at],
            self.n_iter[at],
            self.memory.select([i]),
            self.nonfinite[at],
        )


@dataclass
class OptimizerState:
    """State from which a search can be resumed; each row of an array is a problem."""

    x: Array
    value: Array
    gradient: Array
    steps: Array
    gradient_changes: Array
    n_pairs: Array
    direction: Array
    expected_gain: Array  # of a full step; infinite if the curvature is unknown
    step_length: Array
    n_reductions: Array
    n_iter: Array
    n_small_gains: Array  # consecutive steps with a small gain
    converged: Array
    active: Array  # problems whose search has not ended
    curvature: Array  # as returned by the objective, or empty
    nonfinite: Array


@dataclass(frozen=True)
class _Settings:
    low: Float[Array, " p"]
    high: Float[Array, " p"]
    max_iter: int
    max_step: float
    gtol: float
    ftol: float
    value_scale: float
    expected_gain: float

    def clip(self, x: Float[Array, "b p"]) -> Float[Array, "b p"]:
        """Clip points to the bounds. Values within rounding error of a bound become the bound."""
        x = np.clip(x, self.low, self.high)
        for bound in (self.low, self.high):
            is_close = np.isfinite(bound) & (np.abs(x - bound) <= 1e-12 * (1 + np.abs(bound)))
            x = np.where(is_close, bound, x)
        return x

    def scale(self, value: Float[Array, " b"]) -> Float[Array, " b"]:
        """Return the absolute values, or `value_scale` where it is larger."""
        return np.maximum(self.value_scale, np.abs(value))

    def projected_gradient(self, state: OptimizerState, which: Array) -> Float[Array, " b"]:
        """Return the largest absolute component of each projected gradient."""
        x = state.x[which]
        moved = np.clip(x - state.gradient[which], self.low, self.high)
        return np.abs(moved - x).max(1, initial=0.0)


def minimize(
    objective: AnyObjective,
    x0: Float[Array, "B p"],
    *,
    bounds: Float[Array, "p 2"] | None = None,
    max_iter: int = 120,
    max_step: float = 1.0,
    gtol: float = 1e-5,
    ftol: float = 2e-9,
    value_scale: float = 1.0,
    expected_gain: float = 0.0,
    memory: LBFGSMemory | None = None,
    stop_if: Callable[[Points, Values, Values, Problems], Bool[Array, " b"]] | None = None,
    callback: Callable[[Float[Array, " B"]], None] | None = None,
    state_callback: Callable[[OptimizerState], None] | None = None,
    initial_state: OptimizerState | None = None,
) -> OptimizeResult:
    """Minimise B functions of p variables, starting from the rows of x0.

    `objective(x, which)` returns values and gradients of the problems `which` at the rows of x. It
    may also return curvatures (exact or approximate Hessians), which then replace L-BFGS. A
    problem has converged if its projected gradient is below `gtol`, or if the next step is expected
    to gain no more than `expected_gain`. It has also converged if the gradient is small relative to
    the value and two consecutive steps gained less than `ftol` times the value. Values smaller than
    `value_scale` (for a log-likelihood, the number of readings) are replaced by it in this test.

    The `memory` of a search on part of the data approximates the curvature for all data. A search
    also ends if `stop_if(x, value, gain, which)` is true, given the expected gain of a step.
    `callback` receives the values after every iteration in which a step was accepted, and
    `state_callback` receives the state after every iteration. A search that continues from an
    `initial_state` ends at exactly the same point as an uninterrupted search.

    >>> target = np.array([[1.0], [5.0]])
    >>> bowl = lambda x, which: (((x - target[which]) ** 2).sum(1), 2 * (x - target[which]))
    >>> found = minimize(bowl, np.zeros((2, 1)), bounds=np.array([[-2.0, 2.0]]))
    >>> found.x.round(6), found.at_bound.ravel(), found.converged
    (array([[1.], [2.]]), array([False,  True]), array([ True,  True]))
    """
    p = x0.shape[1]
    low, high = (np.full(p, -np.inf), np.full(p, np.inf)) if bounds is None else bounds.T
    settings = _Settings(low, high, max_iter, max_step, gtol, ftol, value_scale, expected_gain)
    state = initial_state
    if state is None:
        state = _start(objective, x0, memory, settings)
    while state.active.any() and p:
        if stop_if is not None:
            at = np.flatnonzero(state.active)
            state.active[at] = ~stop_if(state.x[at], state.value[at], state.expected_gain[at], at)
        if not state.active.any():
            break
        moved = _iterate(objective, state, settings)
        if callback is not None and moved:
            callback(state.value)
        if state_callback is not None:
            state_callback(state)
    return OptimizeResult(
        state.x,
        state.value,
        state.converged | (p == 0),
        (state.x <= low + AT_BOUND) | (state.x >= high - AT_BOUND),
        state.n_iter,
        LBFGSMemory(state.steps, state.gradient_changes, state.n_pairs),
        state.nonfinite,
    )


def _start(
    objective: AnyObjective,
    x0: Float[Array, "B p"],
    memory: LBFGSMemory | None,
    settings: _Settings,
) -> OptimizerState:
    """Evaluate the objective at the starting points, and choose the first search directions."""
    B, p = x0.shape
    x = np.clip(x0.astype(float), settings.low, settings.high)
    value, gradient, curvature = _evaluate(objective, x, np.arange(B))
    finite = np.isfinite(value)
    state = OptimizerState(
        x=x, value=value, gradient=gradient,
        steps=np.zeros((B, N_PAIRS, p)), gradient_changes=np.zeros((B, N_PAIRS, p)),
        n_pairs=np.zeros(B, int), direction=np.zeros((B, p)), expected_gain=np.full(B, np.inf),
        step_length=np.ones(B), n_reductions=np.zeros(B, int), n_iter=np.zeros(B, int),
        n_small_gains=np.zeros(B, int), converged=np.zeros(B, bool), active=np.zeros(B, bool),
        curvature=np.zeros((B, 0, 0)) if curvature is None else curvature, nonfinite=~finite,
    )  # fmt: skip
    if memory is not None and curvature is None:
        state.steps[:], state.gradient_changes[:] = memory.steps, memory.gradient_changes
        state.n_pairs[:] = memory.n_pairs
    slope = settings.projected_gradient(state, np.arange(B))
    state.converged[:] = finite & (slope <= settings.gtol)
    which = np.flatnonzero(finite & ~state.converged)
    _choose_direction(state, which, settings)
    state.converged[which] = state.expected_gain[which] <= settings.expected_gain
    state.active[which] = ~state.converged[which]
    return state


def _evaluate(objective: AnyObjective, x: Array, which: Array) -> tuple[Array, Array, Array | None]:
    """Return values, gradients and curvatures; if any is not finite, the value is infinity."""
    value, gradient, *rest = objective(x, which)
    finite = np.isfinite(value) & np.isfinite(gradient).all(1)
    curvature = rest[0] if rest else None
    if curvature is not None:
        finite &= np.isfinite(curvature).all((1, 2))
        curvature = np.where(finite[:, None, None], curvature, 0.0)
    return np.where(finite, value, np.inf), np.where(finite[:, None], gradient, 0.0), curvature


def _iterate(objective: AnyObjective, state: OptimizerState, settings: _Settings) -> bool:
    """Try one step for every active problem; return whether any step was accepted."""
    which = np.flatnonzero(state.active)
    step = state.step_length[which, None] * state.direction[which]
    x = settings.clip(state.x[which] + step)
    value, gradient, curvature = _evaluate(objective, x, which)
    step = x - state.x[which]
    predicted = np.einsum("bp,bp->b", state.gradient[which], step)
    accept = value <= state.value[which] + SUFFICIENT_DECREASE * predicted
    accepted, rejected = which[accept], which[~accept]

    gain = state.value[accepted] - value[accept]
    small = gain / settings.scale(state.value[accepted]) <= settings.ftol
    state.n_small_gains[accepted] = np.where(small, state.n_small_gains[accepted] + 1, 0)
    if curvature is None:
        _store_pairs(state, accepted, step[accept], gradient[accept] - state.gradient[accepted])
    else:
        state.curvature[accepted] = curvature[accept]
    state.x[accepted], state.value[accepted] = x[accept], value[accept]
    state.gradient[accepted] = gradient[accept]
    state.n_iter[accepted] += 1
    slope = settings.projected_gradient(state, accepted)
    flat = slope <= FLAT * settings.gtol * settings.scale(state.value[accepted])
    stalled = (state.n_small_gains[accepted] >= 2) & flat
    state.converged[accepted] = (slope <= settings.gtol) | stalled
    _choose_direction(state, accepted, settings)
    state.converged[accepted] |= state.expected_gain[accepted] <= settings.expected_gain

    exhausted = rejected[:0]
    if len(rejected):
        exhausted = _shorten(state, rejected, value[~accept], predicted[~accept])
        restarted = rejected[state.n_reductions[rejected] == MAX_REDUCTIONS]
        _choose_direction(state, restarted, settings)
        # No step reduces the value. If rounding explains this, the search has converged.
        slope = settings.projected_gradient(state, exhausted)
        flat = slope <= FLAT * settings.gtol * settings.scale(state.value[exhausted])
        state.converged[exhausted] = flat & ~state.nonfinite[exhausted]
    ended = state.converged[which] | (state.n_iter[which] >= settings.max_iter)
    state.active[which] = ~(ended | np.isin(which, exhausted))
    return len(accepted) > 0


def _shorten(
    state: OptimizerState,
    rejected: Int[Array, " b"],
    value: Float[Array, " b"],
    predicted: Float[Array, " b"],
) -> Int[Array, " e"]:
    """Shorten rejected steps; return the problems in which no further step can be tried.

    The new length minimises the parabola given by both values and the slope. If the value was not
    finite, the length is divided by four, so that the shortest possible step still
    changes x.
    """
    bend = value - state.value[rejected] - predicted
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(np.isfinite(bend), -predicted / (2 * bend), 0.25)
    state.step_length[rejected] *= np.clip(np.nan_to_num(factor, nan=0.5), 0.1, 0.5)
    state.n_reductions[rejected] += 1
    over = state.n_reductions[rejected] >= MAX_REDUCTIONS
    exhausted = rejected[over]
    state.nonfinite[exhausted] |= ~np.isfinite(value)[over]
    # If a curvature was used, it was misleading, so try once more along the gradient.
    informed = (state.n_pairs[exhausted] > 0) | state.curvature[exhausted].any((1, 2))
    state.n_pairs[exhausted[informed]], state.curvature[exhausted[informed]] = 0, 0.0
    return exhausted[~informed]


def _store_pairs(state: OptimizerState, which: Array, step: Array, change: Array) -> None:
    """Store step and gradient change for problems with positive curvature along the step."""
    min_product = MIN_PAIR_CURVATURE * np.einsum("bp,bp->b", change, change)
    useful = np.einsum("bp,bp->b", step, change) > min_product
    which, step, change = which[useful], step[useful], change[useful]
    for history, new in ((state.steps, step), (state.gradient_changes, change)):
        history[which, :-1] = history[which, 1:]
        history[which, -1] = new
    state.n_pairs[which] = np.minimum(state.n_pairs[which] + 1, N_PAIRS)


def _choose_direction(state: OptimizerState, which: Array, settings: _Settings) -> None:
    """Set new search directions: (quasi-)Newton steps in the variables not held at a bound."""
    if not len(which):
        return
    x, low, high = state.x[which], settings.low, settings.high
    gradient = state.gradient[which]
    free = ~(((x <= low) & (gradient > 0)) | ((x >= high) & (gradient < 0)))
    gradient = np.where(free, gradient, 0.0)
    newton_step, informed = _newton_step(state, which, gradient, free)
    direction = np.where(free, -newton_step, 0.0)
    direction[((x <= low) & (direction < 0)) | ((x >= high) & (direction > 0))] = 0.0
    uphill = np.einsum("bp,bp->b", direction, gradient) >= 0
    direction[uphill] = -gradient[uphill]
    informed = informed & ~uphill  # the length of a gradient has no meaning as a step
    state.n_pairs[which[~informed]] = 0
    gain = -0.5 * np.einsum("bp,bp->b", direction, gradient)
    longest = np.abs(direction).max(1, initial=0.0)
    limit = np.where(informed, settings.max_step, FIRST_STEP * settings.max_step)
    direction *= np.minimum(1.0, limit / np.where(longest > 0, longest, 1.0))[:, None]
    # Stop at the first bound, because continuing along the bound might increase the value.
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(direction > 0, (high - x) / direction, (low - x) / direction)
    room = np.where(direction == 0, np.inf, room).min(1, initial=np.inf)
    # The gain is unknown for a step that is shortened by a bound or by the limit on its length.
    known = informed & (longest <= limit) & (room >= 1.0)
    state.expected_gain[which] = np.where(known, gain, np.inf)
    state.direction[which] = direction * np.minimum(1.0, room)[:, None]
    state.step_length[which] = 1.0
    state.n_reductions[which] = 0


def _newton_step(
    state: OptimizerState, which: Array, gradient: Float[Array, "b p"], free: Bool[Array, "b p"]
) -> tuple[Float[Array, "b p"], Bool[Array, " b"]]:
    """Return H⁻¹ g in the free variables, and whether any curvature was available.

    H is the curvature returned by the objective, or that of the stored pairs (two-loop recursion).
    """
    steps = state.steps[which] * free[:, None]
    changes = state.gradient_changes[which] * free[:, None]
    age = N_PAIRS - np.arange(N_PAIRS)
    product = np.einsum("bmp,bmp->bm", steps, changes)
    used = (age <= state.n_pairs[which, None]) & (product > 0)
    inverse = np.where(used, 1 / np.where(used, product, 1.0), 0.0)

    q = gradient.copy()
    alpha = np.zeros_like(product)
    stored = range(N_PAIRS - int(state.n_pairs[which].max()), N_PAIRS)
    for m in reversed(stored):
        alpha[:, m] = inverse[:, m] * np.einsum("bp,bp->b", steps[:, m], q)
        q -= alpha[:, m, None] * changes[:, m]
    has_curvature = state.curvature.size > 0
    if has_curvature:
        q = _solve_curvature(state.curvature[which] * (free[:, :, None] & free[:, None, :]), q)
    else:
        latest = changes[:, -1]
        size = np.einsum("bp,bp->b", latest, latest)
        known = used[:, -1] & (size > 0)
        q *= np.where(known, product[:, -1] / np.where(known, size, 1.0), 1.0)[:, None]
    for m in stored:
        beta = inverse[:, m] * np.einsum("bp,bp->b", changes[:, m], q)
        q += (alpha[:, m] - beta)[:, None] * steps[:, m]
    return q, used.any(1) | has_curvature


def _solve_curvature(
    curvature: Float[Array, "b p p"], gradient: Float[Array, "b p"]
) -> Float[Array, "b p"]:
    """Return |H|⁻¹ g: the Newton step, with the sign of negative eigenvalues reversed."""
    values, vectors = eigh(curvature)
    size = np.abs(values)
    size = np.maximum(size, MIN_CURVATURE * size.max(axis=1, keepdims=True, initial=0.0))
    components = np.einsum("bpm,bp->bm", vectors, gradient)
    components = np.divide(components, size, out=np.zeros_like(components), where=size > 0)
    step = np.einsum("bpm,bm->bp", vectors, components)
    # A variable with zero gradient and curvature must not change, not even by rounding.
    return np.where((gradient != 0) | curvature.any(axis=1), step, 0.0)
