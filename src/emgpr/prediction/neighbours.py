"""Conditioning on the nearest sites only: a small solve a site, whatever N is."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import factor
from emgpr.covariance import between_tasks, prior
from emgpr.covariance.dense import coregionalization, readings
from emgpr.kernels import matrix
from emgpr.observations import Observations
from emgpr.prediction.condition import CHUNK_BYTES, Belief

Array = np.ndarray


def condition_on_neighbours(
    known: Observations,
    x: Float[Array, "M P"],
    kernels: Sequence[Kernel],
    W: Float[Array, "L Q D k"],
    noise: Float[Array, " D"],
    n_neighbours: int,
) -> Belief:
    """The signals at x, each site given the `n_neighbours` known sites nearest to it."""
    L, Q, D, _ = W.shape
    known = known.at(np.flatnonzero(known.seen.any(axis=0)))
    B = coregionalization(W)
    n = min(n_neighbours, known.n_sites)
    scale = _column_scales(kernels, x.shape[1])
    tree = KDTree(known.x / scale)
    cov = prior(B, np.stack([kernel.diag(x) for kernel in kernels]))
    mean = np.zeros((L, len(x), D))
    step = max(1, int(CHUNK_BYTES // (8 * n * n * (3 * D * D + Q))))
    for start in range(0, len(x), step):
        at = slice(start, start + step)
        _, nearest = tree.query(x[at] / scale, k=range(1, n + 1))
        tables = known.at(nearest)
        K = np.stack([matrix(kernel, tables.x) for kernel in kernels], axis=1)
        Kx = np.stack([matrix(kernel, tables.x, x[at, None]) for kernel in kernels], axis=1)
        seen = tables.seen.reshape(len(nearest), D * n, 1)
        y = tables.stacked[..., None]
        for member in range(L):
            L_factor = factor(readings(tables, B[member], noise, K)).checked(
                f"covariance of {n} neighbouring sites"
            )
            cross = between_tasks(B[member], Kx).reshape(-1, D * n, D) * seen
            half = L_factor.half_solve(np.concatenate([cross, y], axis=-1))
            half, target = half[..., :D], half[..., D:]
            turned = np.swapaxes(half, -1, -2)
            mean[member, at] = (turned @ target)[..., 0]
            cov[member, at] -= turned @ half
    return Belief(mean, cov)


def _column_scales(kernels: Sequence[Kernel], P: int) -> Float[Array, " P"]:
    """Units in which the columns of the inputs may be compared: the mean log length-scale
    of the kernels that have one a column, else the inputs' own."""
    logs = [
        np.log(value)
        for kernel in kernels
        for name, value in kernel.get_params().items()
        if name.rsplit("__", 1)[-1] == "length_scale" and np.ndim(value) == 1 and len(value) == P
    ]
    return np.exp(np.mean(logs, axis=0)) if logs else np.ones(P)
