"""The covariance formed in full, its likelihood, and the gradients by contraction.

A matrix over all readings, n = D·N on a side, is the largest thing there is. One is formed; its
factor and its inverse take its place, and what else has that size goes by in panels, the rows of
some tasks at a time.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from emgpr.arrays import Array, diagonal, empty, factor, namespace
from emgpr.observations import Observations

LOG_2PI = float(np.log(2 * np.pi))
PANEL = 1.5e5  # numbers in a panel, if it is of several tasks
GAPS = 0.85  # share of readings made, below which one table is worked on without the others


def coregionalization(W: Float[Array, "*b Q D k"]) -> Float[Array, "*b Q D D"]:
    """B_q = W_q W_qᵀ."""
    return W @ namespace(W).matrix_transpose(W)


def between_tasks(
    B: Float[Array, "*b Q D D"], K: Float[Array, "*c Q N M"]
) -> Float[Array, "*d D N D M"]:
    """Covariance of every task with every other, Σ_q B_q ⊗ K_q."""
    xp = namespace(K)
    *_, D, _ = B.shape
    *_, Q, N, M = K.shape
    batch = np.broadcast_shapes(B.shape[:-3], K.shape[:-3])
    flat = K.reshape(*K.shape[:-3], Q, N * M)

    def rows(tasks: slice) -> Float[Array, "*d l N D M"]:
        mixed = xp.matrix_transpose(_side_by_side(B[..., tasks, :])) @ flat
        return xp.moveaxis(mixed.reshape(*batch, -1, D, N, M), -2, -3)

    first, *others = _panels(D, int(np.prod(batch)) * N * D * M)
    if not others:
        return rows(first)
    cov = empty(K, *batch, D, N, D, M)
    for tasks in (first, *others):
        cov[..., tasks, :, :, :] = rows(tasks)
    return cov


def prior(
    B: Float[Array, "*b Q D D"], diagonals: Float[Array, "*c Q M"]
) -> Float[Array, "*d M D D"]:
    """Covariance of the tasks at one site, before any reading: Σ_q B_q k_q(x, x)."""
    return np.einsum("...qlm,...qi->...ilm", B, diagonals)


def readings(
    table: Observations,
    B: Float[Array, "*m Q D D"],
    noise: Float[Array, "*s D D"],
    K: Float[Array, "*b Q N N"],
) -> Float[Array, "*b DN DN"]:
    """Covariance of what was read: signal and noise, unseen readings decoupled."""
    cov = between_tasks(B, K)
    at_one_site = diagonal(cov, -3, -1)
    at_one_site += noise[..., None]
    return table.only_seen(cov)


def likelihood_and_contractions(
    table: Observations,
    W: Float[Array, "*b Q D k"],
    noise: Float[Array, "*s D D"],
    K: Float[Array, "*b Q N N"],
    *,
    of_kernels: bool,
) -> tuple[
    Float[Array, "*b"],
    Float[Array, "*b Q D D"],
    Float[Array, "*b D D"],
    Float[Array, "*b Q N N"] | None,
]:
    """Log-likelihood and its derivatives with respect to B_q, Σ, and K_q if asked for.

    All from G = γγᵀ − cov⁻¹ (the paper's gradient), contracted against what is
    fixed: one matrix product of (D², N²) by (N², Q), never ∂cov/∂θ itself. Of the derivative
    with respect to K_q only the symmetric part means anything: K_q moves as a symmetric matrix.
    """
    xp = namespace(K)
    B = coregionalization(W)
    cov, y = readings(table, B, noise, K), table.stacked[..., None]
    read = None
    if cov.ndim == 2 and table.n_readings < GAPS * len(cov):
        (read,) = xp.nonzero(table.seen.reshape(-1))
        cov, y = cov[read[:, None], read], y[read]
    L = factor(cov, overwrite=True)
    gamma = L.solve(y)
    value = -0.5 * (xp.sum(y * gamma, axis=(-2, -1)) + L.logdet() + _seen(table) * LOG_2PI)
    value = xp.where(xp.isnan(L.jitter), -float("inf"), value)

    *batch, Q, N, _ = K.shape
    D = noise.shape[-1]
    # cov⁻¹ − γγᵀ = M + Mᵀ is the paper's G, less its sign. K and B are symmetric: M will do.
    M = L.half_of_inverse_less_square(gamma)
    if read is not None:
        of_all = empty(K, D * N, D * N)
        of_all[...] = 0.0
        of_all[read[:, None], read] = M
        M = of_all
    elif not table.complete:  # readings that were not made have unit rows, and say nothing of K_q
        diagonal(M)[~table.seen.reshape(*table.seen.shape[:-2], D * N)] = 0.0
    M = xp.moveaxis(M.reshape(*batch, D, N, D, N), -3, -2)
    of_noise = -xp.sum(diagonal(M), axis=-1)
    of_B = empty(K, *batch, D, D, Q)
    flat = xp.matrix_transpose(K.reshape(*batch, Q, N * N))
    of_K = None
    for tasks in _panels(D, int(np.prod(batch)) * N * D * N):
        panel = M[..., tasks, :, :, :].reshape(*batch, -1, N * N)
        of_B[..., tasks, :, :] = -(panel @ flat).reshape(*batch, -1, D, Q)
        if of_kernels:
            slope = -_side_by_side(B[..., tasks, :]) @ panel
            if of_K is None:
                of_K = slope.reshape(*batch, Q, N, N)
            else:
                of_K += slope.reshape(*batch, Q, N, N)
    return value, _symmetric(xp.moveaxis(of_B, -1, -3)), _symmetric(of_noise), of_K


def _symmetric(A: Float[Array, "*b D D"]) -> Float[Array, "*b D D"]:
    """The symmetric part."""
    return 0.5 * (A + namespace(A).matrix_transpose(A))


def _panels(D: int, size: int) -> Iterator[slice]:
    """The tasks, as many at a time as `size` numbers for each allow."""
    step = max(1, int(PANEL // max(size, 1)))
    return (slice(start, start + step) for start in range(0, D, step))


def _side_by_side(B: Float[Array, "*b Q l D"]) -> Float[Array, "*b Q lD"]:
    """A row for each latent, a column for each pair of tasks."""
    return B.reshape(*B.shape[:-2], B.shape[-2] * B.shape[-1])


def _seen(table: Observations) -> Float[Array, "*b"]:
    """How many readings each table holds."""
    xp = namespace(table.seen)
    return xp.sum(table.seen, axis=(-2, -1), dtype=table.y.dtype)
