"""Step 2 by maximum likelihood (eq. 7), all members of the ensemble in lockstep."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from emgpr.arrays import fetch, like, room
from emgpr.checkpoint import NOTHING_KEPT, Ledger
from emgpr.covariance import Span, log_likelihood, log_likelihood_in_span, span_of
from emgpr.execution import Failed, chunks, each_if_possible
from emgpr.kernels import matrices
from emgpr.observations import Observations
from emgpr.optimize import Curved, Objective, minimize
from emgpr.weights.start import Mixture

Array = np.ndarray

ENOUGH = 400  # readings of a part, on which the ascent starts,
EACH = 20  # and at least so many for each parameter: fewer lead astray
FLAT = 1e-6  # for each reading: what one of two steps must gain to be followed by a third,
LOOSE = 3e-5  # if the joint ascent moves on from there
CLOSE = 1e-5  # for each reading: what the next step must promise to be made,
NEAR = 1e-4  # on a large table,
WAY = 3e-4  # on some of the sites, and on the small batch of a member,
EARLY = 2e-3  # and on the large batch of a member, which predicts from all readings as it does
SMALL = 100  # readings; of fewer, the dense form of all members at once is quicker,
LARGE = 2000  # and on a device of fewer than these
FEW = 2  # readings for each weight; of fewer, curvatures take longer than the likelihood

_Readings = tuple[float, float]
_Problem = tuple[Observations | None, Observations, Mixture, Array, _Readings, "_Patience", str]


@dataclass(frozen=True)
class _Patience:
    """When an ascent ends: gains and promises are for each reading."""

    max_iter: int
    gain: float
    promise: float
    curved: bool  # by Newton's method, where the curvature is told

    def on(self, n: float, promise: float = 0.0) -> dict[str, Any]:
        """Settings of a search on so many readings, which may be content with less."""
        enough = n * max(promise, self.promise)
        return {"max_iter": self.max_iter, "ftol": self.gain, "unit": n, "promise": enough}


@dataclass(frozen=True)
class FittedWeights:
    """Weights of every member, the log-likelihood of its batch, and how the search ended.

    A member that failed has a log-likelihood of −inf; `trouble` is why, if we know.
    """

    W: Float[Array, "L Q D k"]
    log_likelihood: Float[Array, " L"]
    converged: Bool[Array, " L"]
    n_iter: Int[Array, " L"]
    trouble: str = ""

    @property
    def stands(self) -> Bool[Array, " L"]:
        """Which members did not fail."""
        return np.isfinite(self.log_likelihood)

    def at(self, some: Bool[Array, " L"]) -> "FittedWeights":
        """Some of the members."""
        return FittedWeights(
            self.W[some],
            self.log_likelihood[some],
            self.converged[some],
            self.n_iter[some],
            self.trouble,
        )


def fit_weights(
    seen: Observations,
    parts: Sequence[Int[Array, " _"]],
    start: Mixture,
    *,
    W: Float[Array, "L Q D k"] | None = None,
    max_iter: int,
    loosely: bool = False,
    n_jobs: int | None = None,
    device: str = "cpu",
    verbose: int = 0,
    ledger: Ledger = NOTHING_KEPT,
) -> FittedWeights:
    """The weights that make each part of the table likeliest, kernels and noise held.

    Every member starts from the weights of `start`, or from its own in `W`. `loosely` if they are
    but a start themselves. Members that fail together are tried again, then each by itself.
    """
    few = parts if W is not None else thinned(seen, parts, start.W.size)
    if W is None:
        W = np.broadcast_to(start.W, (len(parts), *start.W.shape))
    n = start.W.shape[1] * max(map(len, parts))
    gain = LOOSE if loosely else FLAT
    # Where the joint ascent of one table starts decides which of several peaks, about as high, it
    # ends at. Newton's method would go far from δ, for weights that suit kernels and noise as held.
    curved = len(parts) > 1 or not loosely
    patience = _Patience(max_iter, gain, _promise(n, len(parts)), curved)
    runs = chunks(len(parts), 32.0 * n * n, n_jobs, room(device))
    fewer = sum(map(len, few)) < sum(map(len, parts))
    # Of a member on average: the same whoever else is learned beside it.
    readings = _readings(seen, few) / len(parts), _readings(seen, parts) / len(parts)

    def learn(runs: list[range]) -> dict[range, FittedWeights | Failed]:
        problems = [
            (
                seen.batches([few[i] for i in run]) if fewer else None,
                seen.batches([parts[i] for i in run]),
                start,
                W[list(run)],
                readings,
                patience,
                device,
            )
            for run in runs
        ]
        fitted = each_if_possible(
            _fit, problems, n_jobs=n_jobs, label="Step 2: members", verbose=verbose, ledger=ledger
        )
        return dict(zip(runs, fitted, strict=True))

    fitted = learn(runs)
    together = [run for run, own in fitted.items() if isinstance(own, Failed) and len(run) > 1]
    if together:
        fitted |= learn([range(i, i + 1) for run in together for i in run])
    return _joined({run: own for run, own in fitted.items() if run not in together}, W)


def _joined(fitted: dict[range, FittedWeights | Failed], W: Array) -> FittedWeights:
    """All members in order; one that failed keeps the weights it was given."""
    own, why = [], ""
    for run in sorted(fitted, key=lambda run: run.start):
        some = fitted[run]
        if isinstance(some, Failed):
            why = f"{type(some.why).__name__}: {some.why}".rstrip(": ")
            none = np.zeros(len(run))
            some = FittedWeights(W[list(run)], none - np.inf, none > 0, none.astype(int))
        own.append(some)
    return FittedWeights(
        np.concatenate([some.W for some in own]),
        np.concatenate([some.log_likelihood for some in own]),
        np.concatenate([some.converged for some in own]),
        np.concatenate([some.n_iter for some in own]),
        why,
    )


def thinned(
    seen: Observations, parts: Sequence[Int[Array, " _"]], n_parameters: int
) -> list[Int[Array, " _"]]:
    """Of each part as many sites as hold readings enough to find the way."""
    enough = max(ENOUGH, EACH * n_parameters)
    few = []
    for part in parts:
        share = enough / max(1, int(seen.seen[:, part].sum()))
        size = len(part) if share > 0.7 else max(1, int(share * len(part)))
        few.append(part[seen.at(part).some(size)])
    return few


def without_transfer(start: Mixture, log_likelihood: float) -> FittedWeights:
    """The weights that step 2 starts from, δ, as they are."""
    value = np.array([log_likelihood])
    return FittedWeights(start.W[None], value, np.array([True]), np.array([0]))


def _readings(seen: Observations, parts: Sequence[Int[Array, " _"]]) -> int:
    return sum(int(seen.seen[:, part].sum()) for part in parts)


def _promise(n: int, n_members: int) -> float:
    """What the next step must promise for each of n readings, of tables as many as there are."""
    if n_members > 1:
        return EARLY if n > ENOUGH else WAY
    return NEAR if n > LARGE else CLOSE


def _fit(problem: _Problem) -> FittedWeights:
    """Most of the way on some of the sites, if there are many, and the end on all."""
    some, tables, start, W0, (n_some, n), patience, device = problem
    L = len(W0)
    x0 = W0.reshape(L, -1)
    loss = _loss(tables, start, device, curved=patience.curved)
    if some is not None:
        first = _loss(some, start, device, curved=patience.curved)
        way = minimize(first, x0, **patience.on(n_some, WAY))
        memory = way.memory.of(range(L), n / n_some)
        end = minimize(loss, way.x, memory=memory, **patience.on(n))
    if some is None or not np.isfinite(end.value).all():
        end = minimize(loss, x0, **patience.on(n))
    return FittedWeights(end.x.reshape(L, *start.W.shape), -end.value, end.converged, end.n_iter)


def _loss(tables: Observations, start: Mixture, device: str, *, curved: bool) -> Objective | Curved:
    """Negative log-likelihood of each table at rows of weights."""
    tables = tables.on(device)
    L = len(tables.x)
    K = matrices(start.kernels, tables.x)
    shape = start.W.shape
    alone = tables.table(0) if L == 1 else None
    free = None if start.free is None else start.free.ravel()
    structured = shape[0] == 1 and tables.complete  # the same for all members, whoever is left
    curved = curved and not structured and FEW * start.W.size <= tables.n_tasks * tables.n_sites
    spans: list[Span | None] = [None]
    if tables.n_tasks * tables.n_sites > (SMALL if device == "cpu" else LARGE):
        spans = [_span(tables.table(i), start, K[i]) for i in range(L)]

    def in_span(flat: Float[Array, "b p"], which: Int[Array, " b"]) -> tuple[Array, Array]:
        W = flat.reshape(-1, *shape)
        fits = [
            log_likelihood_in_span(span, w, start.noise)
            for w, i in zip(W, which, strict=True)
            if (span := spans[i]) is not None
        ]
        of_weights = np.stack([gradient for _, gradient in fits])
        value = np.array([value for value, _ in fits])
        return -value, -start.learned(of_weights).reshape(flat.shape)

    def dense(flat: Float[Array, "b p"], which: Int[Array, " b"]) -> Any:
        W, noise = like(flat.reshape(-1, *shape), K), like(start.noise, K)
        if alone is not None:  # no batch axis: what was not read is left out, not decoupled
            fit = log_likelihood(alone, W[0], noise, K[0], curvature=curved)
        else:
            these = slice(None) if len(which) == L else like(which, K)
            fit = log_likelihood(tables.table(these), W, noise, K[these], curvature=curved)
        of_weights = start.learned(fetch(fit.of_weights))
        answer = -np.atleast_1d(fetch(fit.value)), -of_weights.reshape(flat.shape)
        if fit.curvature is None:
            return answer
        curvature = fetch(fit.curvature).reshape(*flat.shape, -1)
        return *answer, curvature if free is None else curvature * np.outer(free, free)

    return in_span if all(span is not None for span in spans) else dense


def _span(table: Observations, start: Mixture, K: Float[Any, "Q N N"]) -> Span | None:
    """Without the places that only make tables alike in shape: they would have a part in it."""
    read = np.flatnonzero(fetch(table.seen).any(axis=0))
    if len(read) < table.n_sites:
        at = like(read, K)
        table, K = table.at(read), K[:, at[:, None], at]
    return span_of(table, start.noise, K, start.W.shape[2])
