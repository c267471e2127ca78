"""Many small bounded minimisations in lockstep: limited-memory BFGS with projection.

Or Newton's method, where the objective tells how it curves.

All problems of a batch are evaluated together, each with its own history and
its own step length, until each has ended in its own way. A step never moves a
variable by more than `max_step`, the first by no more than a fifth of that: on
a likelihood with a flat far side (a length-scale of zero explains nothing, but
its slope is zero too) a long first step is not taken back.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

Array = np.ndarray
Objective = Callable[
    [Float[Array, "b p"], Int[Array, " b"]], tuple[Float[Array, " b"], Float[Array, "b p"]]
]
Curved = Callable[
    [Float[Array, "b p"], Int[Array, " b"]],
    tuple[Float[Array, " b"], Float[Array, "b p"], Float[Array, "b p p"]],
]

MEMORY = 20  # pairs of steps and gradient changes kept
ARMIJO = 1e-4  # share of the promised decrease that a step must deliver
MAX_HALVINGS = 20
LEVEL = 1e-4  # of the strongest curvature: none is taken to be weaker
FLAT = 1e3  # times gtol, for each unit of the value: a slope that rounding can hide


@dataclass(frozen=True)
class Memory:
    """Steps that were made and how the gradient changed along them, the latest last."""

    steps: Float[Array, "B m p"]
    changes: Float[Array, "B m p"]
    n_pairs: Int[Array, " B"]

    def of(self, problems: Int[Array, " b"] | Sequence[int], growth: float = 1.0) -> "Memory":
        """That of some problems, whose functions have since grown `growth` times as large."""
        at = np.asarray(problems)
        return Memory(self.steps[at], growth * self.changes[at], self.n_pairs[at])


@dataclass(frozen=True)
class Minima:
    """Where each problem ended, and how: `converged`, and which variables sit at a bound.

    `cut_off` are problems whose function had no finite value around a point on the way: they
    were resumed from there, the best so far, along the gradient.
    """

    x: Float[Array, "B p"]
    value: Float[Array, " B"]
    converged: Bool[Array, " B"]
    at_bound: Bool[Array, "B p"]
    n_iter: Int[Array, " B"]
    memory: Memory
    cut_off: Bool[Array, " B"]

    @property
    def n_problems(self) -> int:
        """B."""
        return len(self.value)

    def problem(self, i: int) -> "Minima":
        """The end of one problem, as a batch of one."""
        at = slice(i, i + 1)
        return Minima(
            self.x[at],
            self.value[at],
            self.converged[at],
            self.at_bound[at],
            self.n_iter[at],
            self.memory.of([i]),
            self.cut_off[at],
        )


@dataclass
class State:
    """The moving parts of every problem; rows are problems. A search goes on from one of these."""

    x: Array
    f: Array
    g: Array
    steps: Array
    changes: Array
    n_pairs: Array
    direction: Array
    promise: Array  # what a whole step would gain, by the curvature that is known
    length: Array
    halvings: Array
    n_iter: Array
    small: Array
    converged: Array
    going: Array  # neither converged nor given up
    curvature: Array  # as the objective tells it; else of no size
    cut_off: Array  # no finite value was found around a point on the way


def minimize(
    objective: Objective | Curved,
    x0: Float[Array, "B p"],
    *,
    bounds: Float[Array, "p 2"] | None = None,
    max_iter: int = 120,
    max_step: float = 1.0,
    gtol: float = 1e-5,
    ftol: float = 2e-9,
    unit: float = 1.0,
    promise: float = 0.0,
    memory: Memory | None = None,
    watch: Callable[[Float[Array, " B"]], None] | None = None,
    keep: Callable[[State], None] | None = None,
    resume: State | None = None,
) -> Minima:
    """Minimise B functions of p variables from the rows of x0.

    `objective(x, which)` returns values and gradients of the problems `which` at
    the rows of x; it may add their curvatures (second derivatives, or about those), and then
    nothing is remembered of steps. A problem has converged when its projected gradient is below
    `gtol`, or small beside its value while two steps running gained less than `ftol` of that;
    values below `unit` count as that (of a log-likelihood, whose zero means nothing, the number of
    readings). Or when the next step promises, by what is known of the curvature, no more than
    `promise`. With the `memory` of a search on some of the data, a search on all of it starts
    knowing how its function curves. `watch` is told the values after every round of steps that
    moved a problem; `keep` is shown the state after every round, and a search that is to `resume`
    one ends with the same bits as if it had never stopped.

    >>> target = np.array([[1.0], [5.0]])
    >>> bowl = lambda x, which: (((x - target[which]) ** 2).sum(1), 2 * (x - target[which]))
    >>> found = minimize(bowl, np.zeros((2, 1)), bounds=np.array([[-2.0, 2.0]]))
    >>> found.x.round(6), found.at_bound.ravel(), found.converged
    (array([[1.], [2.]]), array([False,  True]), array([ True,  True]))
    """
    p = x0.shape[1]
    low, high = (np.full(p, -np.inf), np.full(p, np.inf)) if bounds is None else bounds.T
    state = resume
    if state is None:
        x = np.clip(x0.astype(float), low, high)
        state = _start(objective, x, memory)
        fine = np.isfinite(state.f)
        state.converged[:] = fine & (_slope(x, state.g, low, high) <= gtol)
        state.cut_off[:] = ~fine
        active = np.flatnonzero(fine & ~state.converged)
        _aim(state, active, low, high, max_step)
        state.converged[active] = state.promise[active] <= promise
        state.going[active] = ~state.converged[active]
    converged, cut_off = state.converged, state.cut_off

    while state.going.any() and p:
        active = np.flatnonzero(state.going)
        trial = np.clip(
            state.x[active] + state.length[active, None] * state.direction[active], low, high
        )
        for bound in (low, high):  # a step that ends at a bound ends on it, not a rounding short
            near = np.isfinite(bound) & (np.abs(trial - bound) <= 1e-12 * (1 + np.abs(bound)))
            trial = np.where(near, bound, trial)
        f, g, H = _evaluate(objective, trial, active)
        moved = trial - state.x[active]
        promised = np.einsum("bp,bp->b", state.g[active], moved)
        accept = f <= state.f[active] + ARMIJO * promised
        took, back = active[accept], active[~accept]

        gain = state.f[took] - f[accept]
        relative = gain / np.maximum(unit, np.abs(state.f[took]))
        state.small[took] = np.where(relative <= ftol, state.small[took] + 1, 0)
        if H is None:
            _remember(state, took, moved[accept], g[accept] - state.g[took])
        else:
            state.curvature[took] = H[accept]
        state.x[took], state.f[took], state.g[took] = trial[accept], f[accept], g[accept]
        state.n_iter[took] += 1
        slope = _slope(state.x[took], state.g[took], low, high)
        flat = FLAT * gtol * np.maximum(unit, np.abs(state.f[took]))
        converged[took] = (slope <= gtol) | ((state.small[took] >= 2) & (slope <= flat))
        _aim(state, took, low, high, max_step)
        converged[took] |= state.promise[took] <= promise
        if watch is not None and len(took):
            watch(state.f)

        lost = back[:0]
        if len(back):
            lost = _shorten(state, back, f[~accept], promised[~accept])
            _aim(state, back[state.halvings[back] == MAX_HALVINGS], low, high, max_step)
            # No descent left even along the gradient: rounding ends it, if it is flat there.
            flat = FLAT * gtol * np.maximum(unit, np.abs(state.f[lost]))
            level = _slope(state.x[lost], state.g[lost], low, high) <= flat
            converged[lost] = level & ~cut_off[lost]
        ended = converged[active] | (state.n_iter[active] >= max_iter) | np.isin(active, lost)
        state.going[active] = ~ended
        if keep is not None:
            keep(state)

    edge = 1e-6
    at_bound = (state.x <= low + edge) | (state.x >= high - edge)
    known = Memory(state.steps, state.changes, state.n_pairs)
    return Minima(state.x, state.f, converged | (p == 0), at_bound, state.n_iter, known, cut_off)


def _shorten(state: State, back: Array, f: Array, promised: Array) -> Array:
    """Shorten the steps to f that were rejected; those who are lost, with nothing else to try.

    To the minimum of the parabola through what is known; where nothing is, not so fast that the
    last is too short to move at all.
    """
    bend = f - state.f[back] - promised
    with np.errstate(divide="ignore", invalid="ignore"):
        shrink = np.where(np.isfinite(bend), -promised / (2 * bend), 0.25)
    state.length[back] *= np.clip(np.nan_to_num(shrink, nan=0.5), 0.1, 0.5)
    state.halvings[back] += 1
    over = state.halvings[back] >= MAX_HALVINGS
    exhausted = back[over]
    state.cut_off[exhausted] |= ~np.isfinite(f)[over]
    misled = (state.n_pairs[exhausted] > 0) | state.curvature[exhausted].any((1, 2))
    # What was known of the curvature misled: once more along the gradient.
    fresh = exhausted[misled]
    state.n_pairs[fresh], state.curvature[fresh] = 0, 0.0
    return exhausted[~misled]


def _newton(curvature: Float[Array, "b p p"], gradient: Float[Array, "b p"]) -> Array:
    """Newton's step, but downhill where the function curves down too."""
    values, vectors = np.linalg.eigh(curvature)
    size = np.abs(values)
    size = np.maximum(size, LEVEL * size.max(axis=1, keepdims=True, initial=0.0))
    along = np.einsum("bpm,bp->bm", vectors, gradient)
    along = np.divide(along, size, out=np.zeros_like(along), where=size > 0)
    step = np.einsum("bpm,bm->bp", vectors, along)
    # What neither slopes nor curves is not to move, not even by a rounding.
    return np.where((gradient != 0) | curvature.any(axis=1), step, 0.0)


def _start(objective: Objective | Curved, x: Float[Array, "B p"], memory: Memory | None) -> State:
    """At x, knowing what the memory does."""
    B, p = x.shape
    f, g, H = _evaluate(objective, x, np.arange(B))
    state = State(
        x=x, f=f, g=g,
        steps=np.zeros((B, MEMORY, p)), changes=np.zeros((B, MEMORY, p)),
        n_pairs=np.zeros(B, int), direction=np.zeros((B, p)), promise=np.full(B, np.inf),
        length=np.ones(B), halvings=np.zeros(B, int), n_iter=np.zeros(B, int),
        small=np.zeros(B, int), converged=np.zeros(B, bool), going=np.zeros(B, bool),
        curvature=np.zeros((B, 0, 0)) if H is None else H, cut_off=np.zeros(B, bool),
    )  # fmt: skip
    if memory is not None and H is None:
        state.steps[:], state.changes[:] = memory.steps, memory.changes
        state.n_pairs[:] = memory.n_pairs
    return state


def _evaluate(
    objective: Objective | Curved, x: Array, which: Array
) -> tuple[Array, Array, Array | None]:
    """Values, gradients and curvatures; whatever is not finite counts as infinitely bad."""
    answer = objective(x, which)
    f, g, H = answer if len(answer) == 3 else (*answer, None)
    fine = np.isfinite(f) & np.isfinite(g).all(1)
    if H is not None:
        fine &= np.isfinite(H).all((1, 2))
        H = np.where(fine[:, None, None], H, 0.0)
    return np.where(fine, f, np.inf), np.where(fine[:, None], g, 0.0), H


def _blocked(x: Array, g: Array, low: Array, high: Array) -> Array:
    """Variables at a bound that descent would push through."""
    return ((x <= low) & (g > 0)) | ((x >= high) & (g < 0))


def _slope(x: Array, g: Array, low: Array, high: Array) -> Array:
    """Largest component of the projected gradient."""
    return np.abs(np.clip(x - g, low, high) - x).max(1, initial=0.0)


def _remember(state: State, which: Array, step: Array, change: Array) -> None:
    """Keep the pairs that tell of positive curvature."""
    useful = np.einsum("bp,bp->b", step, change) > 1e-10 * np.einsum("bp,bp->b", change, change)
    which, step, change = which[useful], step[useful], change[useful]
    for history, new in ((state.steps, step), (state.changes, change)):
        history[which, :-1] = history[which, 1:]
        history[which, -1] = new
    state.n_pairs[which] = np.minimum(state.n_pairs[which] + 1, MEMORY)


def _aim(state: State, which: Array, low: Array, high: Array, max_step: float) -> None:
    """A new direction for these problems: the two-loop recursion on their free variables."""
    if not len(which):
        return
    free = ~_blocked(state.x[which], state.g[which], low, high)
    gradient = np.where(free, state.g[which], 0.0)
    steps = state.steps[which] * free[:, None]
    changes = state.changes[which] * free[:, None]
    age = MEMORY - np.arange(MEMORY)
    product = np.einsum("bmp,bmp->bm", steps, changes)
    used = (age <= state.n_pairs[which, None]) & (product > 0)
    inverse = np.where(used, 1 / np.where(used, product, 1.0), 0.0)

    q = gradient.copy()
    alpha = np.zeros_like(product)
    kept = range(MEMORY - int(state.n_pairs[which].max()), MEMORY)
    for m in reversed(kept):
        alpha[:, m] = inverse[:, m] * np.einsum("bp,bp->b", steps[:, m], q)
        q -= alpha[:, m, None] * changes[:, m]
    told = state.curvature.size > 0
    if told:
        q = _newton(state.curvature[which] * (free[:, :, None] & free[:, None, :]), q)
    else:
        latest = changes[:, -1]
        size = np.einsum("bp,bp->b", latest, latest)
        known = used[:, -1] & (size > 0)
        q *= np.where(known, product[:, -1] / np.where(known, size, 1.0), 1.0)[:, None]
    for m in kept:
        beta = inverse[:, m] * np.einsum("bp,bp->b", changes[:, m], q)
        q += (alpha[:, m] - beta)[:, None] * steps[:, m]

    x = state.x[which]
    direction = np.where(free, -q, 0.0)
    direction[((x <= low) & (direction < 0)) | ((x >= high) & (direction > 0))] = 0.0
    uphill = np.einsum("bp,bp->b", direction, gradient) >= 0
    direction[uphill] = -gradient[uphill]
    blind = uphill | ~(
        used.any(1) | told
    )  # no curvature known: the length of a gradient means nothing
    state.n_pairs[which[blind]] = 0
    promise = -0.5 * np.einsum("bp,bp->b", direction, gradient)
    reach = np.abs(direction).max(1, initial=0.0)
    limit = np.where(blind, 0.2 * max_step, max_step)
    direction *= np.minimum(1.0, limit / np.where(reach > 0, reach, 1.0))[:, None]
    # Straight to the first bound on the way, and onto it: a bent step is no descent direction.
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(direction > 0, (high - x) / direction, (low - x) / direction)
    room = np.where(direction == 0, np.inf, room).min(1, initial=np.inf)
    # What a step across a bound, or farther than may be gone, would gain is not known.
    state.promise[which] = np.where(blind | (reach > limit) | (room < 1.0), np.inf, promise)
    direction *= np.minimum(1.0, room)[:, None]
    state.direction[which] = direction
    state.length[which] = 1.0
    state.halvings[which] = 0
