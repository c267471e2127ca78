"""What the readings say of the latent processes themselves.

Latent q with rank k is k independent processes f_qj of one kernel, and output d is
Σ_qj W_q[d, j] f_qj plus noise, so cov(f_qj(x), y_d(x')) = W_q[d, j] k_q(x, x').
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import factor, fetch, namespace, put, room
from emgpr.covariance.dense import coregionalization, readings
from emgpr.kernels import matrices
from emgpr.observations import Observations
from emgpr.prediction.condition import coupled
from emgpr.prediction.neighbours import sites_near

Array = np.ndarray

TILE = 32  # sites that share their neighbours


def condition_latents(
    known: Observations,
    x: Float[Array, "M P"],
    kernels: Sequence[Kernel],
    W: Float[Array, "Q D k"],
    noise: Float[Array, "D D"],
    *,
    n_neighbours: int | None = None,
    device: str = "cpu",
) -> tuple[Float[Array, "M Q k"], Float[Array, "M Q k"]]:
    """Mean and variance of every process at x, given all that is known or what is near.

    With `n_neighbours`, sites of x are taken some at a time, given the readings nearest to any of
    them. A latent that no output hears keeps its prior.
    """
    Q, _, k = W.shape
    mean = np.zeros((len(x), Q, k))
    var = np.repeat(np.stack([kernel.diag(x) for kernel in kernels], axis=1)[..., None], k, axis=2)
    for rows in _tiles(x, len(x) if n_neighbours is None else TILE):
        near = known
        if n_neighbours is not None:
            near = known.at(sites_near(known, x[rows], kernels, n_neighbours))
        for tasks, latents in coupled(coregionalization(W)[None], noise):
            block = Observations(near.x, near.y[tasks], near.seen[tasks])
            block = block.at(np.flatnonzero(block.seen.any(axis=0)))
            if not len(latents) or not block.n_sites:
                continue
            heard, own = [kernels[q] for q in latents], W[np.ix_(latents, tasks)]
            at = np.ix_(rows, latents)
            between = noise[np.ix_(tasks, tasks)]
            told, less = _condition(block, x[rows], heard, own, between, device)
            mean[at] = told
            var[at] -= less
    return mean, np.maximum(var, 0.0)


def _condition(
    known: Observations,
    x: Float[Array, "m P"],
    kernels: Sequence[Kernel],
    W: Float[Array, "q d k"],
    noise: Float[Array, "d d"],
    device: str,
) -> tuple[Float[Array, "m q k"], Float[Array, "m q k"]]:
    """Means, and by how much less the variances are than before any reading."""
    known, weights, noise = known.on(device), put(W, device), put(noise, device)
    xp, (Q, D, k), N = namespace(weights), W.shape, known.n_sites
    K, B = matrices(kernels, known.x), coregionalization(weights)
    L = factor(partial(readings, known, B, noise, K)).checked(
        f"covariance of the {known.n_readings} readings conditioned on"
    )
    target = L.half_solve(known.stacked[:, None])
    mean, less = np.empty((len(x), Q, k)), np.empty((len(x), Q, k))
    step = max(1, int(room(device) // (16 * D * N * Q * k)))
    for start in range(0, len(x), step):
        at = slice(start, start + step)
        new = put(x[at], device)
        cross = xp.einsum("qdj,qnm->dnmqj", weights, matrices(kernels, known.x, new))
        half = L.half_solve(cross.reshape(D * N, -1) * known.seen.reshape(-1, 1))
        mean[at] = fetch(half.T @ target).reshape(-1, Q, k)
        less[at] = fetch(xp.sum(half**2, axis=0)).reshape(-1, Q, k)
    return mean, less


def _tiles(x: Float[Array, "M P"], size: int) -> Iterator[Array]:
    """Rows of x, those that follow each other along its first columns together."""
    order = np.lexsort(x.T[::-1])
    return (order[start : start + size] for start in range(0, len(x), max(size, 1)))
