"""How long it takes to ask a model: whether transfer helps, and for predictions."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from emgpr.arrays import room
from emgpr.estimators.approximations import of_conditioning
from emgpr.estimators.believer import NEIGHBOURS, affordable
from emgpr.estimators.left_out import some_of_each
from emgpr.estimators.plan import Step
from emgpr.estimators.validation import MANY
from emgpr.estimators.work import CALL, FACTOR, MATRICES, SQUARE, TREE, VALUES, Work

PLACES = 1000
SHUFFLES = 20  # of sites, to see how many hold the readings around a place
AMONG = 5000  # of the sites
ARRAYS = 2.0  # of the readings around each place, at a time
COPIES = 12.0  # of the table: in trees, and in what is left out
TREES = 4.0  # of it, in trees alone


def safe_transfer(work: Work) -> Iterator[Step]:
    """Every reading, or some, left out, with transfer and without, by "site" and by "output"."""
    if not (work.model.transfer == "safe" and work.seen.n_tasks > 1):
        return
    how, seen = _how(work), work.seen
    method = "with and without, by readings left out"
    if isinstance(how, str):
        n, pairs = seen.n_readings, work.settled.n_latents * work.sites**2
        apart = sum(work.evaluation(float(m), m**2) for m in work.counts)
        seconds = 2 * (work.L * work.evaluation(n, pairs) + apart)
        memory = MATRICES * SQUARE * n**2
        yield Step("safe transfer", method, n, work.L, n, 2, seconds, memory)
        return
    asked = some_of_each(seen, MANY) if seen.n_sites > MANY else np.arange(seen.n_sites)
    n = int(seen.seen[:, asked].sum())
    problems = len(asked) + n  # by site, and by output
    width = _around(work, how) + 1
    each = work.L * _solve(work, width * seen.n_tasks) + _values(work, width)
    own = _solve(work, how + 1) + _values(work, how + 1) / work.settled.n_latents
    seconds = problems * each + 2 * n * own + 4 * work.sorting(seen.n_tasks * TREE)
    memory = _bytes(work, width, problems, how) + _held(work, COPIES, len(asked))
    words = f"judged by {n} readings" if len(asked) < seen.n_sites else ""
    words = f"{words} of {seen.n_readings}, each from neighbours" if words else "from neighbours"
    side = width * seen.n_tasks
    yield Step("safe transfer", method, n, work.L * problems, side, 1, seconds, memory, words)


def prediction(work: Work) -> Step:
    """1000 places, from what was learned."""
    how, D, L = _how(work), work.seen.n_tasks, work.L
    n, sizes = work.seen.n_readings, _sizes(work)
    words = of_conditioning(how, work.counts)
    if how == "all":
        method, side, count = f"from all {n} readings", round(max(sizes)), L
        each = PLACES * D / len(sizes)  # outputs at places, of a group that is conditioned on
        operations = L * sum(m**3 / 3 + each * m**2 for m in sizes)
        seconds = operations / work.speed.operations + L * CALL
        memory = MATRICES * SQUARE * side**2
    elif how == "batch":
        method, side = f"from {work.readings} readings a member", work.readings
        count = L
        operations = L * (side**3 / 3 + PLACES * D * side**2)
        seconds = operations / work.speed.operations + L * CALL
        memory = MATRICES * SQUARE * side**2
    else:
        method = f"from {how} neighbours of each output"
        together = work.model.transfers
        width = _around(work, how) if together else how
        side, groups = (width * D, 1) if together else (width, D)
        count = PLACES * L * groups
        each = L * _solve(work, side) + _values(work, width)
        seconds = PLACES * groups * each + work.sorting(D * TREE) + L * CALL
        memory = _bytes(work, width, PLACES, how) + _held(work, TREES, PLACES)
    return Step("1000 places", method, n, count, side, 1, seconds, memory, words)


def _how(work: Work) -> Any:
    """What predictions are conditioned on, as `fit` will settle it."""
    how = work.model.conditioning
    if how == "auto":
        return "all" if affordable(work.L, _sizes(work)) else NEIGHBOURS
    return how if isinstance(how, str) else int(how)


def _sizes(work: Work) -> list[float]:
    """Readings that are joined by a latent."""
    return [float(work.seen.n_readings)] if work.model.transfers else work.counts.tolist()


def _around(work: Work, how: int) -> int:
    """Sites that hold the nearest readings of each output, at most, if gaps are anywhere."""
    seen, rng, most = work.seen.seen, np.random.default_rng(0), 1
    for _ in range(SHUFFLES):
        own = seen[:, rng.integers(seen.shape[1], size=min(AMONG, seen.shape[1]))]
        near = own & (np.cumsum(own, axis=1) <= how)
        most = max(most, int(near.any(axis=0).sum()))
    return most


def _solve(work: Work, side: int) -> float:
    """Seconds of what is told by the readings around a place, to one member."""
    return FACTOR * work.speed.factoring(side)


def _values(work: Work, width: int) -> float:
    """Seconds of the kernels between the sites around a place."""
    return VALUES / 2 * work.settled.n_latents * width**2 * work.speed.value


def _bytes(work: Work, width: int, problems: int, how: int) -> float:
    """Of so many places and what is around each, as many at a time as there may be room for."""
    D, Q = (work.seen.n_tasks, work.settled.n_latents) if work.model.transfers else (1, 1)
    at_once = room(work.device) // (SQUARE * (D * how) ** 2 * (3 * D**2 + Q))
    each = SQUARE * width**2 * (ARRAYS * D**2 + Q)
    return max(1.0, min(problems, at_once)) * each


def _held(work: Work, copies: float, asked: int) -> float:
    """Bytes of so many copies of the table, and of what members say of the places asked."""
    P, D = work.seen.x.shape[1], work.seen.n_tasks
    return SQUARE * (copies * work.seen.n_sites * (P + D) + 2 * work.L * asked * D**2)
