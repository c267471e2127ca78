"""The signals of many sites at once: their joint belief, and draws from it."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import factor, fetch, namespace, put
from emgpr.covariance import between_tasks
from emgpr.covariance.dense import coregionalization, readings
from emgpr.kernels import matrices
from emgpr.observations import Observations
from emgpr.prediction.condition import coupled

Array = np.ndarray


def condition_jointly(
    known: Observations,
    x: Float[Array, "M P"],
    kernels: Sequence[Kernel],
    W: Float[Array, "Q D k"],
    noise: Float[Array, "D D"],
    *,
    device: str = "cpu",
) -> tuple[Float[Array, "D M"], Float[Array, "D M D M"]]:
    """Mean and covariance of every signal at every site of x, with those at all others."""
    B = coregionalization(W)
    D, M = len(noise), len(x)
    mean, cov = np.zeros((D, M)), np.zeros((D, M, D, M))
    for tasks, latents in coupled(B[None], noise):
        if not len(latents):  # an output that hears nothing
            continue
        own, heard = put(B[latents][:, tasks][..., tasks], device), [kernels[q] for q in latents]
        n = len(tasks)
        block = Observations(known.x, known.y[tasks], known.seen[tasks])
        block = block.at(np.flatnonzero(block.seen.any(axis=0))).on(device)
        new = put(x, device)
        at = np.ix_(tasks, np.arange(M), tasks, np.arange(M))
        cov[at] = fetch(between_tasks(own, matrices(heard, new)))
        if not block.n_sites:
            continue
        noises = put(noise[np.ix_(tasks, tasks)], device)
        L = factor(partial(readings, block, own, noises, matrices(heard, block.x))).checked(
            f"covariance of the {block.n_readings} readings conditioned on"
        )
        cross = between_tasks(own, matrices(heard, block.x, new)).reshape(-1, n * M)
        cross = cross * block.seen.reshape(-1, 1)
        half = L.half_solve(namespace(cross).concat([cross, block.stacked[:, None]], axis=1))
        half, target = half[:, :-1], half[:, -1]
        mean[tasks] = fetch(half.T @ target).reshape(n, M)
        cov[at] -= fetch(half.T @ half).reshape(n, M, n, M)
    return mean, cov


def draw(
    mean: Float[Array, " m"], cov: Float[Array, "m m"], n: int, rng: np.random.Generator
) -> Float[Array, "n m"]:
    """Draws from N(mean, cov), which may be singular."""
    values, vectors = np.linalg.eigh(cov)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return mean + rng.normal(size=(n, len(mean))) @ root.T


def of_sites(cov: Float[Array, "DM DM"], M: int) -> Float[Array, "M D D"]:
    """The covariance of the outputs of each site, from that of all."""
    D = len(cov) // M
    return np.einsum("imjm->mij", cov.reshape(D, M, D, M))


def map_between(S: Float[Array, "M D D"], C: Float[Array, "M D D"]) -> Float[Array, "M D D"]:
    """The symmetric A with A S A = C: it turns draws as little as can be, alike at like sites."""
    values, vectors = np.linalg.eigh(S)
    kept = values > 1e-10 * np.maximum(values[:, -1:], np.finfo(float).tiny)
    root = np.sqrt(np.where(kept, values, 0.0))
    back = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1.0)), 0.0)
    half = (vectors * root[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    inverse = (vectors * back[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    values, vectors = np.linalg.eigh(half @ C @ half)
    middle = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return inverse @ middle @ inverse


def draw_each(
    covs: Float[Array, "M D D"], n: int, rng: np.random.Generator
) -> Float[Array, "n M D"]:
    """n draws from N(0, cov) at each site, independent between sites."""
    values, vectors = np.linalg.eigh(covs)
    root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return np.einsum("mde,nme->nmd", root, rng.normal(size=(n, *covs.shape[:2])))
