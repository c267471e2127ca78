"""Step 1 by maximum likelihood (eq. 5): each task from several starts, the best kept."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.covariance import log_likelihood
from emgpr.execution import each
from emgpr.kernels import Pairs, evaluate, without_noise
from emgpr.latents.latent import Latent
from emgpr.latents.prior import Prior, noise_prior
from emgpr.latents.search import Search, search_space
from emgpr.observations import Observations
from emgpr.optimize import Minima, Objective, minimize

Array = np.ndarray

ENOUGH = 250  # sites on which starts are compared,
FEW = 6  # after so many iterations
RUNS = 2  # of them are followed to the end,
SAME = 0.3  # unless they have met, to this logarithm


def fit_latents(
    seen: Observations,
    kernels: Sequence[Kernel],
    *,
    n_restarts: int,
    max_iter: int,
    rng: np.random.Generator,
    weak_prior: bool = False,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Latent]:
    """Kernel and noise of tasks alone: task i mod D with `kernels[i]`, for every i.

    With `weak_prior`, by the posterior under a weak prior on the noise.
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
        problems = [
            (seen.task(d % seen.n_tasks), bare, search, max_iter, weak_prior) for d in tasks
        ]
        fitted = each(_fit_task, problems, n_jobs=n_jobs, label="Step 1: tasks", verbose=verbose)
        found.update(zip(tasks, fitted, strict=True))
    return [found[d] for d in range(len(kernels))]


def _fit_task(problem: tuple[Observations, Kernel, Search, int, bool]) -> Latent:
    table, kernel, search, max_iter, weak = problem
    prior = noise_prior(table, weak)
    best = _promising(table, kernel, search, prior)
    loss = _loss(table, kernel, prior)
    ends = [minimize(loss, start[None], bounds=search.bounds, max_iter=max_iter) for start in best]
    end = min(ends, key=lambda minima: float(minima.value[0]))
    noise = float(np.exp(end.x[0, -1]))
    return Latent(
        kernel.clone_with_theta(end.x[0, :-1]),
        noise,
        -float(end.value[0]) - float(prior(np.array([[noise]]))[0]),
        search.noise_bounds,
        int(end.n_iter[0]),
        _trouble(end, search, max_iter) or _idle(table, kernel, -float(end.value[0]), prior),
    )


def _thinned(table: Observations) -> Observations:
    """Some of the sites, at random: enough to tell starts that are far off from those near."""
    order = np.random.default_rng(0).permutation(table.n_sites)
    return table.at(np.sort(order[:ENOUGH]))


def _promising(
    table: Observations, kernel: Kernel, search: Search, prior: Prior
) -> Float[Array, "_ p"]:
    """From every length-scale, with its best noise, a few steps on some of the sites; the best.

    A likelihood often has two peaks, a short range with little noise and a long one with
    much, and the value at a start says little about the peak it leads to.
    """
    loss = _loss(_thinned(table), kernel, prior)
    values = loss(search.starts, np.arange(len(search.starts)))[0]
    groups = values.reshape(search.n_kernels, -1)
    first = np.arange(len(groups)) * groups.shape[1] + groups.argmin(axis=1)
    ends = minimize(loss, search.starts[first], bounds=search.bounds, max_iter=FEW)
    order = np.argsort(ends.value, kind="stable")
    apart: list[Array] = []
    for x in ends.x[order]:
        if all(np.abs(x - other).max() > SAME for other in apart):
            apart.append(x)
    return np.array(apart[:RUNS])


def _loss(table: Observations, kernel: Kernel, prior: Prior) -> Objective:
    """Negative log-likelihood of one task, and prior, at rows of (log hyper-parameters, noise)."""
    n = table.n_sites
    pairs = Pairs(table.x)

    def loss(params: Float[Array, "b p"], which: Int[Array, " b"]) -> tuple[Array, Array]:
        K, pullback = evaluate(kernel, params[:, :-1], pairs)
        b, noise = len(params), np.exp(params[:, -1])
        batch = Observations(
            np.broadcast_to(table.x, (b, *table.x.shape)),
            np.broadcast_to(table.y, (b, 1, n)),
            np.broadcast_to(table.seen, (b, 1, n)),
        )
        K = np.broadcast_to(K, (b, n, n))
        fit = log_likelihood(
            batch, np.ones((b, 1, 1, 1)), noise[:, None, None], K[:, None], of_kernels=True
        )
        assert fit.of_kernels is not None
        believed, slope = prior(noise[:, None, None])
        of_log_noise = (fit.of_noise + slope)[:, 0, 0] * noise
        gradient = np.column_stack([pullback(fit.of_kernels[:, 0]), of_log_noise])
        return -(fit.value + believed), -gradient

    return loss


def _idle(table: Observations, kernel: Kernel, value: float, prior: Prior) -> str:
    """Whether white noise explains the readings better than the kernel that was learned."""
    n, power = table.n_readings, float((table.y**2).sum())
    if not kernel.n_dims or power == 0:
        return ""
    white = -0.5 * n * (np.log(2 * np.pi * power / n) + 1)
    if value < white + prior(np.array([[power / n]]))[0]:
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
