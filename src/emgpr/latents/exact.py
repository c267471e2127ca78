"""Step 1 by maximum likelihood (eq. 5): each task from several starts, the best kept."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import fetch, like, namespace, room
from emgpr.covariance import log_likelihood
from emgpr.execution import chunks, each
from emgpr.kernels import Pairs, evaluate, without_noise
from emgpr.latents.latent import Latent
from emgpr.latents.search import Search, search_space
from emgpr.observations import Observations
from emgpr.optimize import Minima, Objective, minimize

Array = np.ndarray

ENOUGH = 250  # sites on which starts are compared,
FEW = 6  # after so many iterations
RUNS = 2  # of them are followed to the end,
SAME = 0.3  # unless they have met, to this logarithm
BYTES = 64.0  # of temporaries for each pair of sites


def fit_latents(
    seen: Observations,
    kernels: Sequence[Kernel],
    *,
    n_restarts: int,
    max_iter: int,
    rng: np.random.Generator,
    n_jobs: int | None = None,
    device: str = "cpu",
    verbose: int = 0,
) -> list[Latent]:
    """Kernel and noise of tasks alone: task i mod D with `kernels[i]`, for every i.

    On a device, tasks that were measured at the same sites are learned in lockstep.
    """
    groups: list[tuple[Kernel, list[int]]] = []
    for d, kernel in enumerate(kernels):
        for known, tasks in groups:
            if known == kernel:
                tasks.append(d)
                break
        else:
            groups.append((kernel, [d]))

    found: dict[int, Latent] = {}
    for kernel, tasks in groups:
        bare, white = without_noise(kernel)
        if bare is None:
            raise ValueError(
                f"kernel={kernel} is nothing but noise, and noise is learned anyway. "
                "Give the kernel of the signal, such as RBF() or Matern(nu=1.5)."
            )
        search = search_space(bare, white, seen.x, n_restarts, rng)
        teams = _teams(seen, tasks, device)
        problems = [
            (seen.tasks([d % seen.n_tasks for d in team]), bare, search, max_iter, device)
            for team in teams
        ]
        fitted = each(_fit_tasks, problems, n_jobs=n_jobs, label="Step 1: tasks", verbose=verbose)
        for team, latents in zip(teams, fitted, strict=True):
            found.update(zip(team, latents, strict=True))
    return [found[d] for d in range(len(kernels))]


def _teams(seen: Observations, tasks: list[int], device: str) -> list[list[int]]:
    """Tasks that were measured at the same sites, as many as are learned in lockstep."""
    alike: dict[bytes, list[int]] = {}
    for d in tasks:
        alike.setdefault(seen.seen[d % seen.n_tasks].tobytes(), []).append(d)
    return [
        [team[i] for i in run]
        for team in alike.values()
        for run in _in_lockstep(len(team), RUNS * seen.n_sites**2, device)
    ]


def _in_lockstep(n: int, pairs: int, device: str) -> list[range]:
    """Problems at once: as many as a device has room for; on the CPU one, near the caches."""
    return chunks(n, BYTES * pairs, 1, 0.0 if device == "cpu" else room(device))


def _fit_tasks(problem: tuple[Observations, Kernel, Search, int, str]) -> list[Latent]:
    table, kernel, search, max_iter, device = problem
    starts, whose = _promising(table, kernel, search, device)
    ends = []
    for run in _in_lockstep(len(starts), table.n_sites**2, device):
        loss = _loss(table, kernel, whose[run], device)
        end = minimize(loss, starts[run], bounds=search.bounds, max_iter=max_iter)
        ends += [end.problem(i) for i in range(end.n_problems)]
    best = [
        min((ends[i] for i in np.flatnonzero(whose == d)), key=lambda end: float(end.value[0]))
        for d in range(table.n_tasks)
    ]
    return [
        Latent(
            kernel.clone_with_theta(end.x[0, :-1]),
            float(np.exp(end.x[0, -1])),
            -float(end.value[0]),
            search.noise_bounds,
            int(end.n_iter[0]),
            _trouble(end, search, max_iter) or _idle(table.y[d], kernel, -float(end.value[0])),
        )
        for d, end in enumerate(best)
    ]


def _thinned(table: Observations) -> Observations:
    """Some of the sites, at random: enough to tell starts that are far off from those near."""
    order = np.random.default_rng(0).permutation(table.n_sites)
    return table.at(np.sort(order[:ENOUGH]))


def _promising(
    table: Observations, kernel: Kernel, search: Search, device: str
) -> tuple[Float[Array, "m p"], Int[Array, " m"]]:
    """From every length-scale, with its best noise, a few steps on some of the sites; the best
    for each task, and whose they are.

    A likelihood often has two peaks, a short range with little noise and a long one with
    much, and the value at a start says little about the peak it leads to.
    """
    table, D, S = _thinned(table), table.n_tasks, len(search.starts)
    everyone = np.repeat(np.arange(D), S)
    values = _loss(table, kernel, everyone, device)(
        np.tile(search.starts, (D, 1)), np.arange(D * S)
    )[0]
    groups = values.reshape(D * search.n_kernels, -1)
    first = np.arange(len(groups)) * groups.shape[1] + groups.argmin(axis=1)
    whose = everyone[first]
    loss = _loss(table, kernel, whose, device)
    ends = minimize(loss, search.starts[first % S], bounds=search.bounds, max_iter=FEW)
    kept: list[int] = []
    for d in range(D):
        apart: list[int] = []
        own = np.flatnonzero(whose == d)
        for i in own[np.argsort(ends.value[own], kind="stable")]:
            if all(np.abs(ends.x[i] - ends.x[j]).max() > SAME for j in apart):
                apart.append(i)
        kept += apart[:RUNS]
    return ends.x[kept], whose[kept]


def _loss(
    table: Observations, kernel: Kernel, whose: Int[Array, " m"], device: str = "cpu"
) -> Objective:
    """Negative log-likelihood of a task, task `whose[i]` for problem i, at rows of
    (log hyper-parameters, log noise). All tasks were measured at all sites of the table.
    """
    n = table.n_sites
    table = table.on(device)
    pairs = Pairs(table.x)
    xp = namespace(table.x)

    def loss(params: Float[Array, "b p"], which: Int[Array, " b"]) -> tuple[Array, Array]:
        b, noise = len(params), np.exp(params[:, -1])
        K, pullback = evaluate(kernel, like(params[:, :-1], table.x), pairs)
        tasks = like(whose[which], table.x)
        batch = Observations(
            xp.broadcast_to(table.x, (b, *table.x.shape)),
            table.y[tasks][:, None],
            table.seen[tasks][:, None],
        )
        K = xp.broadcast_to(K, (b, n, n))
        W, Sigma = like(np.ones((b, 1, 1, 1)), K), like(noise[:, None, None], K)
        fit = log_likelihood(batch, W, Sigma, K[:, None], of_kernels=True)
        assert fit.of_kernels is not None
        of_log_noise = fetch(fit.of_noise)[:, 0, 0] * noise
        gradient = np.column_stack([fetch(pullback(fit.of_kernels[:, 0])), of_log_noise])
        return -fetch(fit.value), -gradient

    return loss


def _idle(y: Float[Array, " n"], kernel: Kernel, log_likelihood: float) -> str:
    """Whether white noise explains the readings better than the kernel that was learned."""
    n, power = len(y), float((y**2).sum())
    if (
        kernel.n_dims
        and power > 0
        and log_likelihood < -0.5 * n * (np.log(2 * np.pi * power / n) + 1)
    ):
        return "no process was found in it: white noise explains its readings better"
    return ""


_MEANING = {
    ("length_scale", "lower"): ": between sites it looks like pure noise",
    ("length_scale", "upper"): ": it hardly varies over the region, or follows a trend",
    ("noise", "lower"): ": its readings look free of noise",
    ("noise", "upper"): ": its readings look like nothing but noise",
}


def _trouble(end: Minima, search: Search, max_iter: int) -> str:
    """What the user should know of how a search ended."""
    if not np.isfinite(end.value[0]):
        return "its likelihood could not be evaluated at any start"
    words = []
    if not end.converged[0]:
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
    return "; ".join(words)
