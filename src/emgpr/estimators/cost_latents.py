"""How long step 1 will take, whoever does it."""

from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor

from emgpr.estimators.approximations import (
    SPARSE,
    is_new_regressor,
    learner_named,
    lenders_of,
    of_learner,
)
from emgpr.estimators.plan import Step
from emgpr.estimators.work import CALL, CLIMB, SQUARE, VALUES, Work
from emgpr.latents import PITC, Exact, PoE, Variogram, choose_learner, is_lent
from emgpr.latents.borrowed import is_trained
from emgpr.latents.choice import CANDIDATES
from emgpr.latents.sparse import RUN

BORROWED = 30  # evaluations of scikit-learn's regressor, which needs twice the time for each
PRODUCTS = 14.0  # operations for each reading and two inducing points
RUNS = 12.0  # arrays of a run of sites and the points
LAGS = 450  # evaluations of what is least on the variogram, from all starts,
BINS = 8.0  # passes over the pairs of sites, as of making a kernel's value


def latents(work: Work) -> Step:
    """Step 1."""
    model, D, n = work.model, work.seen.n_tasks, int(work.counts.max())
    learner, _ = choose_learner(model.latent_learner, work.seen)
    if is_lent(learner):
        return _borrowed(work, learner, n)
    learner, each, kernels = learner_named(learner), 1, ""
    if isinstance(model.kernel, str):
        varied = int(np.count_nonzero(np.ptp(work.seen.x, axis=0)))
        each = len(CANDIDATES) + (varied > 1)
        kernels = f", {len(CANDIDATES)} kernels"
        kernels += ", the best with a length-scale a column too" if varied > 1 else ""
    many = max(D, len(model.kernel)) if isinstance(model.kernel, list | tuple) else D * each
    counts = [int(work.counts[i % D]) for i in range(many)]
    words = of_learner(learner, n)
    how, n_each, side, evaluations, memory = _way(work, learner, n)
    known = [_seconds(work, learner, count) for count in counts]
    seconds = None if None in known else sum(filter(None, known)) / min(work.workers, many)
    return Step(
        "step 1", how + kernels, min(n, n_each * side), many * n_each, side, evaluations, seconds,
        memory, words,
    )  # fmt: skip


def _way(work: Work, learner: Any, n: int) -> tuple[str, int, int, int, float]:
    """How it is done for one task: in words, with how many matrices of which side, how often, in
    which memory."""
    if isinstance(learner, Exact):
        return "exact likelihood", 1, n, CLIMB, work.kernel_bytes(n)
    if isinstance(learner, PoE):
        n_batches, size = learner.dealt(n)
        memory = work.kernel_bytes(size, n_batches)
        return "poe, likelihoods of batches", n_batches, size, CLIMB, memory
    if isinstance(learner, SPARSE):
        m = min(n, learner.n_inducing)
        run = learner.block_size if isinstance(learner, PITC) else RUN
        memory = SQUARE * RUNS * min(n, run) * m + work.kernel_bytes(m)
        return f"{type(learner).__name__.lower()}, inducing points", 1, m, CLIMB, memory
    if isinstance(learner, Variogram):
        some = min(n, learner.n_sites)
        memory = work.kernel_bytes(some) + work.kernel_bytes(*PoE().dealt(n)[::-1])
        return "variogram, least squares", 1, some, LAGS, memory
    return f"{type(learner).__name__}, of your own", 1, n, 1, 0.0


def _seconds(work: Work, learner: Any, n: int) -> float | None:
    """Of one kernel of a task that was read n times; None if it cannot be known."""
    if isinstance(learner, Exact):
        return work.alone(n)
    if isinstance(learner, PoE):
        n_batches, size = learner.dealt(n)
        once = n_batches * (work.evaluation(size, size**2) - CALL) + CALL
        return work.starts(n) + CLIMB * once
    if isinstance(learner, SPARSE):
        m, block = min(n, learner.n_inducing), 0
        pairs, runs, factoring = 2.0 * n * m, n / RUN, 4 * work.evaluation(m, m**2)
        if isinstance(learner, PITC):
            block = min(n, learner.block_size)
            pairs, runs = pairs + 2 * n * block, n / block
            factoring += 2 * runs * work.speed.factoring(block)
        products = PRODUCTS * n * m * (m + block) / work.speed.operations
        once = factoring + products + VALUES * pairs * work.speed.value + CALL * runs
        return work.starts(n) + CLIMB * once
    if isinstance(learner, Variogram):
        pairs = min(n, learner.n_sites) ** 2
        n_batches, size = PoE().dealt(n)
        least = LAGS * (CALL / 2 + BINS * pairs * work.speed.value)
        return least + n_batches * work.evaluation(size, size**2)
    return None


def _borrowed(work: Work, learner: Any, n: int) -> Step:
    """By scikit-learn's regressor, unless it is fitted already, or by whom we do not know."""
    D = work.seen.n_tasks
    lenders = lenders_of(learner, D)
    new = [own for own in lenders if is_new_regressor(own)]
    seconds: float | None = None
    if all(isinstance(own, GaussianProcessRegressor) or is_trained(own) for own in lenders):
        times = sum(1 + int(own.n_restarts_optimizer) for own in new)
        seconds = 2 * BORROWED * times * work.evaluation(n, n**2) / min(work.workers, D)
    method = "scikit-learn's regressor" if new else "as another library has learned"
    method = method if seconds is not None else "by a function of your own"
    memory = work.kernel_bytes(n) if new else 0.0
    return Step(
        "step 1", method, n, D, n, BORROWED if new else 0, seconds, memory, of_learner(learner, n)
    )
