"""Step 1: the kernel and the noise of every task, by whichever learner."""

from collections.abc import Sequence

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from emgpr.checkpoint import NOTHING_KEPT, Ledger
from emgpr.execution import each
from emgpr.latents.climb import Climb, climb, nothing_learned, signal_of
from emgpr.latents.contract import wrong_with
from emgpr.latents.exact import Exact
from emgpr.latents.latent import Latent
from emgpr.latents.learner import LatentLearner
from emgpr.latents.poe import PoE
from emgpr.latents.search import search_space
from emgpr.latents.sparse import DTC, FITC, PITC, VFE
from emgpr.latents.variogram import Variogram
from emgpr.observations import Observations

LEARNERS: dict[str, LatentLearner] = {
    "exact": Exact(),
    "poe": PoE(),
    "dtc": DTC(),
    "fitc": FITC(),
    "pitc": PITC(),
    "vfe": VFE(),
    "variogram": Variogram(),
}


def fit_latents(
    seen: Observations,
    kernels: Sequence[Kernel],
    learner: LatentLearner = LEARNERS["exact"],
    *,
    n_restarts: int,
    max_iter: int,
    rng: np.random.Generator,
    weak_prior: bool = False,
    n_jobs: int | None = None,
    device: str = "cpu",
    verbose: int = 0,
    ledger: Ledger = NOTHING_KEPT,
) -> list[Latent]:
    """Kernel and noise of tasks alone: task i mod D with `kernels[i]`, for every i.

    Learners that climb share their search between tasks and follow the settings, with
    `weak_prior` by the posterior under a weak prior on the noise; others are asked task by task.
    """
    if isinstance(learner, Climb):
        return climb(
            seen,
            kernels,
            learner,
            n_restarts=n_restarts,
            max_iter=max_iter,
            rng=rng,
            weak_prior=weak_prior,
            n_jobs=n_jobs,
            device=device,
            verbose=verbose,
            ledger=ledger,
        )
    D, spoken = seen.n_tasks, np.resize(~seen.silent, len(kernels))
    problems = [(learner, seen.task(i % D), kernels[i]) for i in np.flatnonzero(spoken).tolist()]
    learned = iter(
        each(_ask, problems, n_jobs=n_jobs, label="Step 1: tasks", verbose=verbose, ledger=ledger)
    )
    return [
        next(learned) if spoken[i] else _of_one_value(seen, i % D, kernel, weak_prior)
        for i, kernel in enumerate(kernels)
    ]


def _ask(problem: tuple[LatentLearner, Observations, Kernel]) -> Latent:
    """What a learner says of one task, if it is an answer."""
    learner, table, kernel = problem
    latent = learner.learn(table.x, table.y[0], kernel)
    wrong = wrong_with(latent, table.x)
    if wrong:
        raise ValueError(
            f"latent_learner={learner!r}: its learn gave {wrong}; "
            "emgpr.latents.check_learner(learner) tells what else is expected of it."
        )
    return latent


def _of_one_value(seen: Observations, d: int, kernel: Kernel, weak_prior: bool) -> Latent:
    """There is nothing to learn of it."""
    bare, nugget = signal_of(kernel)
    search = search_space(bare, nugget, seen.x, 1, np.random.default_rng(0))
    return nothing_learned(bare, search, int(seen.seen[d].sum()), weak_prior)
