"""Conditioning on a table of readings (eq. 4), for one member or for many sets of weights.

What is known comes and what is believed goes as NumPy arrays; the work is done on `device`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse.csgraph import connected_components
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import factor, fetch, namespace, put, room
from emgpr.covariance import between_tasks, prior
from emgpr.covariance.dense import coregionalization, readings
from emgpr.kernels import matrices
from emgpr.observations import Observations

Array = np.ndarray


@dataclass(frozen=True)
class Belief:
    """Mean and covariance of the D signals (no noise) at each of M sites, for L members."""

    mean: Float[Array, "L M D"]
    cov: Float[Array, "L M D D"]


def condition(
    known: Observations,
    x: Float[Array, "M P"],
    kernels: Sequence[Kernel],
    W: Float[Array, "L Q D k"],
    noise: Float[Array, "D D"],
    *,
    with_cov: bool = True,
    device: str = "cpu",
) -> Belief:
    """The signals at x given all that is known, for every member's weights.

    Outputs that no latent joins are conditioned apart, which is exact and far
    smaller: the no-transfer model is D ordinary regressions. Without `with_cov`
    only means are worked out, and covariances are zero.
    """
    L, _, D, _ = W.shape
    B = coregionalization(W)
    mean = np.zeros((L, len(x), D))
    cov = np.zeros((L, len(x), D, D))
    for tasks, latents in coupled(B, noise):
        block = Observations(known.x, known.y[tasks], known.seen[tasks])
        here = known.seen[tasks].any(axis=0)
        block = block.at(np.flatnonzero(here))
        own = [kernels[q] for q in latents]
        B_block = B[:, latents][:, :, tasks][..., tasks]
        mean[..., tasks], cov[:, :, tasks[:, None], tasks] = _condition(
            block, x, own, B_block, noise[np.ix_(tasks, tasks)], with_cov, device
        )
    return Belief(mean, cov)


def coupled(
    B: Float[Array, "L Q D D"], noise: Float[Array, "D D"]
) -> Iterator[tuple[Int[Array, " _"], Int[Array, " _"]]]:
    """Groups of tasks joined by a latent or by their noise, each with the latents it hears."""
    heard = np.abs(B).max(axis=0)
    n, label = connected_components(heard.sum(axis=0) + np.abs(noise) > 0, directed=False)
    for group in range(n):
        tasks = np.flatnonzero(label == group)
        latents = np.flatnonzero(heard[:, tasks][..., tasks].any(axis=(1, 2)))
        yield tasks, latents


def _condition(
    known: Observations,
    x: Float[Array, "M P"],
    kernels: Sequence[Kernel],
    B: Float[Array, "L Q D D"],
    noise: Float[Array, "D D"],
    with_cov: bool,
    device: str,
) -> tuple[Float[Array, "L M D"], Float[Array, "L M D D"]]:
    L, _, D, _ = B.shape
    M, N = len(x), known.n_sites
    mean = np.zeros((L, M, D))
    cov = np.zeros((L, M, D, D))
    if kernels and with_cov:
        cov += prior(B, np.stack([kernel.diag(x) for kernel in kernels]))
    if not N or not kernels:
        return mean, cov
    known, new, Bs, noise = known.on(device), put(x, device), put(B, device), put(noise, device)
    xp = namespace(new)
    K = matrices(kernels, known.x)
    step = max(1, int(room(device) // (8 * N * (D * D + len(kernels) + x.shape[1]))))
    seen = known.seen.reshape(-1, 1)
    for member in range(L):
        L_factor = factor(partial(readings, known, Bs[member], noise, K)).checked(
            f"covariance of the {known.n_readings} readings conditioned on"
        )
        gamma = L_factor.solve(known.stacked[:, None])
        for start in range(0, M, step):
            at = slice(start, start + step)
            Kx = matrices(kernels, known.x, new[at])
            cross = between_tasks(Bs[member], Kx).reshape(D * N, -1) * seen
            mean[member, at] = fetch(cross.T @ gamma).reshape(D, -1).T
            if with_cov:
                half = L_factor.half_solve(cross).reshape(D * N, D, -1)
                cov[member, at] -= fetch(xp.einsum("ndm,nem->mde", half, half))
    return mean, cov
