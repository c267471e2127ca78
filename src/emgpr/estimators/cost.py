"""How long a fit will take and how much memory: counted, and multiplied by this machine's speed."""

from collections.abc import Iterator
from typing import Any

import joblib
import numpy as np
from jaxtyping import Float

from emgpr.arrays import room, settle
from emgpr.estimators.approximations import of_batches
from emgpr.estimators.cost_beliefs import prediction, safe_transfer
from emgpr.estimators.cost_latents import latents
from emgpr.estimators.plan import Plan, Step, measured
from emgpr.estimators.settings import settle as settle_settings
from emgpr.estimators.work import CALL, CLIMB, MATRICES, SQUARE, Work
from emgpr.observations import Observations
from emgpr.transforms import candidates, one_each
from emgpr.transforms.choice import ENOUGH as ENOUGH_SITES
from emgpr.weights.fit import EACH, ENOUGH, SMALL

Array = np.ndarray

WEIGHTS = 20  # evaluations of a member in step 2
COARSE = 20  # of the joint ascent on some of the sites,
JOINT = 50  # and on all,
ONE_LATENT = 30  # of one latent
SWEEP = 25  # of kernels and noise, weights held
RELEARN = 15  # without a latent that is switched off

EIGEN = 6.0  # of the time of a factor and an inverse: eigenvectors and what is made of them
SPAN = 0.5  # of the readings: columns of the latents' span, which are not known before step 1


def planned(model: Any, seen: Observations, Y: Float[Array, "N D"]) -> Plan:
    """The steps of fitting this model to this table."""
    device = settle(model.device)
    workers = joblib.effective_n_jobs(model.n_jobs) if device == "cpu" else 1
    settled = settle_settings(model, seen)
    work = Work(model, seen, settled, measured(device), device, workers)
    steps = [
        work.table(),
        *_transforms(work, Y),
        latents(work),
        *(_weights(work) if model.transfers else []),
        *safe_transfer(work),
    ]
    return Plan(
        seen.n_sites,
        seen.n_tasks,
        seen.n_readings,
        device,
        workers,
        tuple(steps),
        prediction(work),
    )


def _transforms(work: Work, Y: Float[Array, "N D"]) -> Iterator[Step]:
    """Each output alone, under each of its candidates."""
    given = one_each(vars(work.model)["transform"], work.model.output_names_)
    tried = [
        len(candidates(values[~np.isnan(values)]))
        for values, spec in zip(Y.T, given, strict=True)
        if isinstance(spec, str) and spec == "auto"
    ]
    fits = sum(n for n in tried if n > 1)  # one candidate is not tried
    if not fits:
        return
    n = min(int(work.counts.max()), ENOUGH_SITES)
    seconds = fits * (work.alone(n) + work.evaluation(n, n**2)) / min(work.workers, len(tried))
    method, N = f"{fits} candidates, by readings left out", work.seen.n_sites
    words = f"chosen on {ENOUGH_SITES} of {N} sites" if N > ENOUGH_SITES else ""
    yield Step("transforms", method, n, fits, n, CLIMB, seconds, work.kernel_bytes(n), words)


def _weights(work: Work) -> Iterator[Step]:
    """Step 2, and what follows it."""
    settled, D = work.settled, work.seen.n_tasks
    joint = settled.refine == "joint"
    own = settled.n_weights * D  # weights of a member
    n = _thinned(work, own) if joint else work.readings
    yield _step_2(work, n, "" if settled.refine else _batches(work))
    pairs = settled.n_latents * work.sites**2
    once = work.L * _likelihood(work, work.readings, pairs)
    every = work.L * work.readings
    if joint:
        some = _thinned(work, own + D * (D + 1) // 2 + settled.n_latents)
        coarse = work.L * _likelihood(work, some, pairs * (some / work.readings) ** 2)
        times = JOINT if settled.n_latents > 1 else ONE_LATENT
        seconds = times * once + (COARSE * coarse if some < work.readings else 0.0)
        yield _step(work, "joint ascent", _form(work), every, times, seconds, _batches(work))
    elif settled.refine:
        sweep = SWEEP * once + (_step_2(work, n, "").seconds or 0.0)
        method = f"{settled.refine} sweeps, {_form(work)}"
        seconds = int(settled.refine) * sweep
        yield _step(work, "refinement", method, every, SWEEP, seconds, _batches(work))
    if isinstance(work.model.n_latents, str):
        seconds = settled.n_latents * (RELEARN if joint else WEIGHTS) * once
        yield _step(work, "switching off", "latents one by one", every, RELEARN, seconds)


def _batches(work: Work) -> str:
    return of_batches(work.L, work.sites, work.seen.n_sites)


def _step_2(work: Work, n: int, words: str) -> Step:
    L, D, Q = work.L, work.seen.n_tasks, work.settled.n_latents
    pairs = Q * (work.sites * n / work.readings) ** 2
    if work.sites * D <= SMALL:
        # In lockstep: Python's share is that of a round, not of a member.
        seconds = WEIGHTS * (L * (work.evaluation(n, 0.0) - CALL) + 2 * CALL)
        memory = min(L * MATRICES * SQUARE * n**2, room(work.device))
        return Step("step 2", "dense, all at once", L * n, L, n, WEIGHTS, seconds, memory, words)
    side = round(SPAN * n)
    eigen = EIGEN * Q * work.speed.factoring((pairs / Q) ** 0.5)
    seconds = L * (WEIGHTS * work.evaluation(side, 0.0) + eigen) / min(work.workers, L)
    method = "span of the latents, or dense if that is no smaller"
    memory = MATRICES * SQUARE * n * side  # between that of the one and of the other
    return Step("step 2", method, L * n, L, side, WEIGHTS, seconds, memory, words)


def _thinned(work: Work, n_parameters: int) -> int:
    """Readings of a member on which an ascent begins."""
    enough = max(ENOUGH, EACH * n_parameters)
    return enough if enough <= 0.7 * work.readings else work.readings


def _structured(work: Work) -> bool:
    """Whether one latent and no gaps make two eigendecompositions of it."""
    one = work.settled.n_latents == 1 and work.seen.n_tasks > 1
    return one and work.L == 1 and work.seen.complete


def _likelihood(work: Work, n: float, pairs: float) -> float:
    if not _structured(work):
        return work.evaluation(n, pairs)
    N = n / work.seen.n_tasks
    return EIGEN * work.speed.factoring(N) + work.evaluation(0.0, N**2)


def _form(work: Work) -> str:
    if _structured(work):
        return "eigenvectors of the sites, no gaps"
    return "dense" if work.L == 1 else f"dense, {work.L} batches of {work.sites} sites"


def _step(
    work: Work,
    name: str,
    method: str,
    n_readings: int,
    evaluations: int,
    seconds: float,
    words: str = "",
) -> Step:
    side = work.sites if _structured(work) else work.readings
    at_once = min(work.L, max(1, int(room(work.device) // (32.0 * work.readings**2))))
    memory = at_once * MATRICES * SQUARE * side**2
    return Step(name, method, n_readings, work.L, side, evaluations, seconds, memory, words)
