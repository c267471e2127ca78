"""Conditioning on the nearest sites only: a small solve a site, whatever N is."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from jaxtyping import Float, Int
from joblib import cpu_count
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import factor, fetch, namespace, put, room
from emgpr.covariance import between_tasks, prior
from emgpr.covariance.dense import coregionalization, readings
from emgpr.kernels import matrices
from emgpr.observations import Observations
from emgpr.prediction.condition import Belief, coupled

Array = np.ndarray


def condition_on_neighbours(
    known: Observations,
    x: Float[Array, "M P"],
    kernels: Sequence[Kernel],
    W: Float[Array, "L Q D k"],
    noise: Float[Array, "D D"],
    n_neighbours: int,
    *,
    device: str = "cpu",
) -> Belief:
    """The signals at x, given the `n_neighbours` nearest readings of each output.

    Outputs that no latent joins are conditioned apart.
    """
    L, _, D, _ = W.shape
    B = coregionalization(W)
    scale = column_scales(kernels, x.shape[1])
    mean = np.zeros((L, len(x), D))
    cov = np.zeros((L, len(x), D, D))
    for tasks, latents in coupled(B, noise):
        own = [kernels[q] for q in latents]
        block = Observations(known.x, known.y[tasks], known.seen[tasks])
        name = "neighbours", tuple(tasks.tolist()), tuple(scale.tolist()), n_neighbours
        near = known.remembered(name, partial(_Neighbours, block, scale, n_neighbours))
        B_block = B[:, latents][:, :, tasks][..., tasks]
        mean[..., tasks], cov[:, :, tasks[:, None], tasks] = _condition(
            block, near, x, own, B_block, noise[np.ix_(tasks, tasks)], device
        )
    return Belief(mean, cov)


def sites_near(
    known: Observations, x: Float[Array, "M P"], kernels: Sequence[Kernel], n: int
) -> Int[Array, " _"]:
    """Sites that are among the `n` nearest, of some output, to any row of x."""
    near = _Neighbours(known, column_scales(kernels, x.shape[1]), n)
    return np.setdiff1d(near.of(x), [-1]) if near.trees else np.arange(0)


class _Neighbours:
    """Finds the nearest sites of each output; those of several outputs are joined."""

    def __init__(self, known: Observations, scale: Float[Array, " P"], n: int) -> None:
        self.scale = scale
        # Not np.unique of rows: to that, a row of a million is a record of as many fields.
        patterns = {own.tobytes(): own for own in known.seen}
        sites = [np.flatnonzero(patterns[key]) for key in sorted(patterns) if patterns[key].any()]
        self.trees = [(at, KDTree(known.x[at] / scale), min(n, len(at))) for at in sites]
        self.width = sum(n for _, _, n in self.trees)

    def of(self, x: Float[Array, "m P"], threads: int = 1) -> Int[Array, "m n"]:
        """Sites near each row of x, once each; −1 fills the row."""
        found = [
            at[tree.query(x / self.scale, k=range(1, n + 1), workers=threads)[1]]
            for at, tree, n in self.trees
        ]
        sites = np.sort(np.concatenate(found, axis=1), axis=1)
        sites[:, 1:][sites[:, 1:] == sites[:, :-1]] = -1
        sites = -np.sort(-sites, axis=1)
        return sites[:, : max(1, int((sites >= 0).sum(axis=1).max()))]


def _condition(
    known: Observations,
    near: _Neighbours,
    x: Float[Array, "M P"],
    kernels: Sequence[Kernel],
    B: Float[Array, "L Q D D"],
    noise: Float[Array, "D D"],
    device: str,
) -> tuple[Float[Array, "L M D"], Float[Array, "L M D D"]]:
    L, Q, D, _ = B.shape
    mean = np.zeros((L, len(x), D))
    if not kernels:
        return mean, np.zeros((L, len(x), D, D))
    cov = prior(B, np.stack([kernel.diag(x) for kernel in kernels]))
    if not near.trees:
        return mean, cov
    P = x.shape[1]
    known, new, Bs, noise = known.on(device), put(x, device), put(B, device), put(noise, device)
    xp = namespace(new)
    step = max(1, int(room(device) // (8 * near.width**2 * (3 * D * D + Q + P))))
    threads = cpu_count() if device.startswith("cuda") else 1  # or a GPU would wait for them
    for start in range(0, len(x), step):
        at = slice(start, start + step)
        tables = known.at(near.of(x[at], threads))
        K = matrices(kernels, tables.x)
        Kx = matrices(kernels, tables.x, new[at, None])
        seen = tables.seen.reshape(len(tables.x), -1, 1)
        y = tables.stacked[..., None]
        for member in range(L):
            L_factor = factor(partial(readings, tables, Bs[member], noise, K)).checked(
                f"covariance of {tables.n_sites} neighbouring sites"
            )
            cross = between_tasks(Bs[member], Kx).reshape(*seen.shape[:2], D) * seen
            half = L_factor.half_solve(xp.concat([cross, y], axis=-1))
            half, target = half[..., :D], half[..., D:]
            turned = xp.matrix_transpose(half)
            mean[member, at] = fetch(turned @ target)[..., 0]
            cov[member, at] -= fetch(turned @ half)
    return mean, cov


def column_scales(kernels: Sequence[Kernel], P: int) -> Float[Array, " P"]:
    """Units in which the columns of the inputs may be compared: the mean log length-scale
    of the kernels that have one a column, else the inputs' own."""
    logs = [
        np.log(value)
        for kernel in kernels
        for name, value in kernel.get_params().items()
        if name.rsplit("__", 1)[-1] == "length_scale" and np.ndim(value) == 1 and len(value) == P
    ]
    return np.exp(np.mean(logs, axis=0)) if logs else np.ones(P)
