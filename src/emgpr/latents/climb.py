"""Step 1 by ascent: each task from its most promising peaks, the best kept.

What is climbed is the learner's: the likelihood (eq. 5), that of batches, or what inducing points
make of it. The search for peaks, the starts, the bounds and what is said of the end are one.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel, WhiteKernel

from emgpr.arrays import room
from emgpr.checkpoint import NOTHING_KEPT, Ledger
from emgpr.execution import chunks, each
from emgpr.kernels import without_noise
from emgpr.latents.latent import Latent
from emgpr.latents.learner import check_counts
from emgpr.latents.prior import Prior, noise_prior, variances
from emgpr.latents.search import Search, search_space
from emgpr.latents.starts import NOTHING, SLOPE, Peaks, find_peaks
from emgpr.observations import Observations
from emgpr.optimize import Minima, Objective, minimize

Array = np.ndarray

BYTES = 64.0  # of temporaries for each pair of sites
CLEAR = 1e-5  # noise variance of a standardised output below which its likelihood hardly changes


class Climb(ABC):
    """A learner that climbs; each kind says what, and of which sites."""

    def __post_init__(self) -> None:
        check_counts(self)

    def taken(self, table: Observations) -> Observations:
        """The sites that are learned from, of a table in which all tasks were read everywhere."""
        return table

    @abstractmethod
    def loss(
        self,
        table: Observations,
        kernel: Kernel,
        whose: Int[Array, " m"],
        *,
        weak_prior: bool = False,
        device: str = "cpu",
    ) -> Objective:
        """What is to be as small as possible, of task `whose[i]` for problem i, at rows of
        (log hyper-parameters, log noise). The table is of the sites taken.
        """

    def learn(self, x: Float[Array, "n P"], y: Float[Array, " n"], kernel: Kernel) -> Latent:
        """Kernel and noise of one task, with the estimators' settings of the search."""
        table = Observations(x, y[None], np.ones((1, len(y)), bool))
        rng = np.random.default_rng(0)
        return climb(table, [kernel], self, n_restarts=5, max_iter=120, rng=rng)[0]


def climb(
    seen: Observations,
    kernels: Sequence[Kernel],
    learner: Climb,
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

    With `weak_prior`, by the posterior under a weak prior on the noise. Tasks that were measured
    at the same sites share the search for peaks; on a device they also climb in lockstep.
    """
    found: dict[int, Latent] = {}
    heights: dict[int, float] = {}
    taken: dict[tuple[int, ...], Observations] = {}
    for kernel, tasks in _alike(kernels):
        bare, nugget = signal_of(kernel)
        search = search_space(bare, nugget, seen.x, n_restarts, rng)
        climbs: list[_Climb] = []
        owners: list[list[int]] = []
        silent = [d for d in tasks if seen.silent[d % seen.n_tasks]]
        for d in silent:
            n = int(seen.seen[d % seen.n_tasks].sum())
            found[d] = nothing_learned(bare, search, n, weak_prior)
        for team in _teams(seen, [d for d in tasks if d not in silent]):
            own = [d % seen.n_tasks for d in team]
            if tuple(own) not in taken:
                taken[tuple(own)] = learner.taken(seen.tasks(own))
            table = taken[tuple(own)]
            peaks = find_peaks(table, bare, search, max_iter, weak_prior=weak_prior, device=device)
            for run in _in_lockstep(len(peaks.x), table.n_sites**2, device):
                some = peaks.at(run)
                climbs.append((learner, table, bare, search, some, max_iter, weak_prior, device))
                owners.append([team[i] for i in some.whose])
        fitted = each(
            _climb, climbs, n_jobs=n_jobs, label="Step 1: tasks", verbose=verbose, ledger=ledger
        )
        for whose, problem, ends in zip(owners, climbs, fitted, strict=True):
            for d, (height, latent) in zip(whose, _found(problem, ends), strict=True):
                if d not in found or height > heights[d]:
                    found[d], heights[d] = latent, height
    return [found[d] for d in range(len(kernels))]


def signal_of(kernel: Kernel) -> tuple[Kernel, WhiteKernel | None]:
    """The kernel of the signal, and what was said of the noise; raises if there is no signal."""
    bare, nugget = without_noise(kernel)
    if bare is None:
        raise ValueError(
            f"kernel={kernel} is nothing but noise, and noise is learned anyway. "
            "Give the kernel of the signal, such as RBF() or Matern(nu=1.5)."
        )
    return bare, nugget


def _alike(kernels: Sequence[Kernel]) -> list[tuple[Kernel, list[int]]]:
    """Every kernel once, and who has it."""
    groups: list[tuple[Kernel, list[int]]] = []
    for d, kernel in enumerate(kernels):
        for known, tasks in groups:
            if known.n_dims == kernel.n_dims and known == kernel:  # == broadcasts
                tasks.append(d)
                break
        else:
            groups.append((kernel, [d]))
    return groups


def _teams(seen: Observations, tasks: list[int]) -> list[list[int]]:
    """Tasks that were measured at the same sites."""
    alike: dict[bytes, list[int]] = {}
    for d in tasks:
        alike.setdefault(seen.seen[d % seen.n_tasks].tobytes(), []).append(d)
    return list(alike.values())


def _in_lockstep(n: int, pairs: int, device: str) -> list[range]:
    """Problems at once: as many as a device has room for; on the CPU one, near the caches."""
    return chunks(n, BYTES * pairs, 1, 0.0 if device == "cpu" else room(device))


_Climb = tuple[Climb, Observations, Kernel, Search, Peaks, int, bool, str]


def _climb(problem: _Climb) -> Minima:
    """From every peak of some sites to that of all."""
    learner, table, kernel, search, peaks, max_iter, weak_prior, device = problem
    loss = learner.loss(table, kernel, peaks.whose, weak_prior=weak_prior, device=device)
    ends = minimize(
        loss,
        peaks.x,
        bounds=search.bounds,
        max_iter=max_iter,
        gtol=SLOPE,
        promise=NOTHING,
        memory=peaks.memory,
    )
    return _at_the_floor(ends, loss, search)


def _found(problem: _Climb, ends: Minima) -> list[tuple[float, Latent]]:
    """How high each peak is, and what is there."""
    _, table, kernel, search, peaks, max_iter, weak_prior, _ = problem
    latents = []
    for i, d in enumerate(peaks.whose):
        y, end, height = table.y[d], ends.problem(i), -float(ends.value[i])
        prior = noise_prior(variances(table)[[d]], weak_prior)
        noise = float(np.exp(end.x[0, -1]))
        latent = Latent(
            kernel.clone_with_theta(end.x[0, :-1]),
            noise,
            height - float(prior(np.array([[noise]]))[0]),
            search.noise_bounds,
            int(end.n_iter[0]),
            trouble(end, search, max_iter, idle=height < white(y, search, prior)),
            table.n_sites,
        )
        latents.append((height, latent))
    return latents


def nothing_learned(kernel: Kernel, search: Search, n: int, weak_prior: bool) -> Latent:
    """Of n readings of one value: a kernel to start from, and the likeliest noise of no signal."""
    low, high = search.bounds[-1]
    levels = np.exp(np.linspace(low, high, 200))
    believed = noise_prior(np.ones(1), weak_prior)(levels[:, None, None])[0]
    noise = float(levels[np.argmax(believed - 0.5 * n * np.log(levels))])
    return Latent(kernel.clone_with_theta(search.starts[0, :-1]), noise, 0.0, (noise, noise))


def _at_the_floor(ends: Minima, loss: Objective, search: Search) -> Minima:
    """Noise that is as good as none is the least there may be, if that is as likely."""
    floor = search.bounds[-1, 0]
    free = np.flatnonzero((ends.x[:, -1] < np.log(CLEAR)) & (ends.x[:, -1] > floor))
    if not len(free):
        return ends
    x, value, at_bound = ends.x.copy(), ends.value.copy(), ends.at_bound.copy()
    there = x[free]
    there[:, -1] = floor
    found, _ = loss(there, free)
    fine = found <= value[free] + NOTHING  # false for NaN
    x[free[fine]], value[free[fine]], at_bound[free[fine], -1] = there[fine], found[fine], True
    return replace(ends, x=x, value=value, at_bound=at_bound)


def white(y: Float[Array, " n"], search: Search, prior: Prior | None = None) -> float:
    """How likely readings are that are nothing but noise; −inf if there is nothing to them."""
    if not np.any(y):
        return -np.inf
    noise = float(np.clip(np.mean(y**2), *search.noise_bounds))
    likelihood = -0.5 * (np.sum(y**2) / noise + len(y) * np.log(2 * np.pi * noise))
    believed = 0.0 if prior is None else float(prior(np.array([[noise]]))[0])
    return float(likelihood) + believed


_MEANING = {
    ("length_scale", "lower"): ": between sites it looks like pure noise",
    ("length_scale", "upper"): ": it hardly varies over the region, or follows a trend",
    ("noise", "lower"): ": its readings look free of noise",
    ("noise", "upper"): ": its readings look like nothing but noise",
}


def trouble(end: Minima, search: Search, max_iter: int, *, idle: bool) -> str:
    """What the user should know of how a search ended; `idle` if noise alone is likelier."""
    if not np.isfinite(end.value[0]):
        return "its likelihood could not be evaluated at any start"
    words = []
    if end.cut_off[0]:
        words.append(
            "its likelihood could not be evaluated around a point, and the search went on from the "
            "best one"
        )
    elif not end.converged[0]:
        words.append(f"it did not converge within max_iter={max_iter}; try more")
    fixed = search.bounds[:, 0] == search.bounds[:, 1]
    for i in np.flatnonzero(end.at_bound[0] & ~fixed):
        low, high = np.exp(search.bounds[i])
        side = "lower" if end.x[0, i] < search.bounds[i].mean() else "upper"
        if side == "upper" and search.names[i].endswith("]"):
            continue  # a column that does not matter, as one length-scale of several can tell
        kind = search.names[i].rsplit("__", 1)[-1].partition("[")[0]
        words.append(
            f"{search.names[i]} ended at its {side} bound ({low:.3g}, {high:.3g})"
            + _MEANING.get((kind, side), "")
        )
    if idle and end.converged[0] and end.x.shape[1] > 1:
        words.append("no process was found in it: white noise explains its readings better")
    return "; ".join(words)
