"""The posterior of the latent processes.

Latent process q of rank k consists of k independent processes f_qj with the same kernel. Output d
is Σ_qj W_q[d, j] f_qj plus noise. Therefore cov(f_qj(x), y_d(x')) = W_q[d, j] k_q(x, x').
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from emgpr.arrays import chunk_bytes, namespace, to_device, to_numpy
from emgpr.kernels import kernel_matrices
from emgpr.observations import Observations
from emgpr.prediction.exact import CoupledOutputs, LMCModel, factor_readings
from emgpr.prediction.neighbours import neighbouring_sites

Array = np.ndarray

LOCATIONS_PER_TILE = 32  # number of locations that use the same neighbours


def condition_latents(
    observations: Observations,
    x: Float[Array, "M P"],
    model: LMCModel,
    *,
    n_neighbours: int | None = None,
    device: str = "cpu",
) -> tuple[Float[Array, "M Q k"], Float[Array, "M Q k"]]:
    """Return the mean and variance of every latent process at x, for a model with one member.

    If `n_neighbours` is given, the locations are divided into tiles. All predictions in a tile
    are then conditioned on the readings that are nearest to any of them. The posterior of a latent
    process whose weights are zero equals its prior.
    """
    (W,) = model.weights
    Q, _, k = W.shape
    mean = np.zeros((len(x), Q, k))
    prior = np.stack([kernel.diag(x) for kernel in model.kernels], axis=1)
    var = np.repeat(prior[..., None], k, axis=2)
    for rows in _tiles(x, len(x) if n_neighbours is None else LOCATIONS_PER_TILE):
        neighbours = observations
        if n_neighbours is not None:
            sites = neighbouring_sites(observations, x[rows], model.kernels, n_neighbours)
            neighbours = observations.at(sites)
        for group in model.coupled_outputs():
            table = group.readings(neighbours)
            if not group.kernels or not table.n_sites:
                continue
            weights = W[np.ix_(group.latents, group.outputs)]
            at = np.ix_(rows, group.latents)
            mean[at], reduction = _condition(table, x[rows], group, weights, device)
            var[at] -= reduction
    return mean, np.maximum(var, 0.0)


def _condition(
    observations: Observations,
    x: Float[Array, "m P"],
    group: CoupledOutputs,
    W: Float[Array, "q d k"],
    device: str,
) -> tuple[Float[Array, "m q k"], Float[Array, "m q k"]]:
    """Return the posterior means, and the amounts by which the readings reduce the variances."""
    table, weights = observations.to(device), to_device(W, device)
    (B,), noise = group.to(device)
    xp, (Q, D, k), N = namespace(weights), W.shape, table.n_sites
    L = factor_readings(table, B, noise, kernel_matrices(group.kernels, table.x))
    target = L.half_solve(table.stacked[:, None])
    mean, reduction = np.empty((len(x), Q, k)), np.empty((len(x), Q, k))
    step = max(1, int(chunk_bytes(device) // (16 * D * N * Q * k)))
    for start in range(0, len(x), step):
        at = slice(start, start + step)
        Kx = kernel_matrices(group.kernels, table.x, to_device(x[at], device))
        cross = xp.einsum("qdj,qnm->dnmqj", weights, Kx)
        half = L.half_solve(cross.reshape(D * N, -1) * table.observed.reshape(-1, 1))
        mean[at] = to_numpy(half.T @ target).reshape(-1, Q, k)
        reduction[at] = to_numpy(xp.sum(half**2, axis=0)).reshape(-1, Q, k)
    return mean, reduction


def _tiles(x: Float[Array, "M P"], size: int) -> Iterator[Array]:
    """Yield the row numbers of x in lexicographic order of the rows, `size` at a time."""
    order = np.lexsort(x.T[::-1])
    return (order[start : start + size] for start in range(0, len(x), max(size, 1)))
