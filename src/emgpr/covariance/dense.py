"""The covariance formed in full, its likelihood, and the gradients by contraction.

A matrix over all readings, n = D·N on a side, is the largest thing there is. One is formed, of a
single table only its lower triangle; its factor and its inverse take its place, and what else
has that size goes by in panels, the rows of some tasks at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float, Int

from emgpr.arrays import (
    Array,
    Factor,
    diagonal,
    empty,
    factor,
    fetch,
    like,
    namespace,
    panel,
    zeros,
)
from emgpr.observations import Observations

LOG_2PI = float(np.log(2 * np.pi))


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

    def rows(tasks: slice) -> Array:  # (*d, l, N, D, M)
        mixed = xp.matrix_transpose(_side_by_side(B[..., tasks, :])) @ flat
        return xp.moveaxis(mixed.reshape(*batch, -1, D, N, M), -2, -3)

    first, *others = _panels(D, int(np.prod(batch)) * N * D * M, panel(K))
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
    information: bool = False,
) -> tuple[
    Float[Array, "*b"],
    Float[Array, "*b Q D D"],
    Float[Array, "*b D D"],
    Float[Array, "*b Q N N"] | None,
    Float[Array, "*b p p"] | None,
]:
    """Log-likelihood and its derivatives with respect to B_q, Σ, and K_q if asked for; and, if
    that is, the information about W.

    All from G = γγᵀ − cov⁻¹ (the paper's gradient), contracted against what is
    fixed: one matrix product of (D², N²) by (N², Q), never ∂cov/∂θ itself. Of the derivative
    with respect to K_q only the symmetric part means anything: K_q moves as a symmetric matrix.
    """
    xp = namespace(K)
    *batch, Q, N, _ = K.shape
    B, D, alone = coregionalization(W), noise.shape[-1], not batch
    rows = _rows_of(table)
    read = None  # of the rows' places, those read; None: all
    if alone and not table.complete and rows[-1].place.stop == D * N:
        (read,) = xp.nonzero(table.seen.reshape(D * N))
    if alone:
        y = (table.stacked if table.complete else table.y[table.seen])[:, None]
        L = factor(partial(_lower, rows, B, noise, K, read))
    else:
        L, y = factor(partial(readings, table, B, noise, K)), table.stacked[..., None]
    gamma = L.solve(y)
    value = -0.5 * (xp.sum(y * gamma, axis=(-2, -1)) + L.logdet() + _seen(table) * LOG_2PI)
    value = xp.where(xp.isnan(L.jitter), -float("inf"), value)

    told = _average_information(table, W, K, L, gamma) if information else None
    # cov⁻¹ − γγᵀ is the paper's G, less its sign. K and B are symmetric: half of it will do.
    G = L.inverse_less_square(gamma)
    if read is not None:
        G, picked = zeros(K, D * N, D * N), G
        G[read[:, None], read] = picked
    if not (alone or table.complete):  # readings that were not made say nothing of K_q
        diagonal(G)[~table.seen.reshape(*table.seen.shape[:-2], D * N)] = 0.0
    of_B, of_noise = zeros(K, *batch, Q, D, D), zeros(K, *batch, D, D)
    of_K = None
    for i, own in enumerate(rows):
        M = _half(G, rows[: i + 1], N)
        per_pair = (own.shape[0], own.tasks.stop)
        at_one_site = xp.sum(M[..., own.at_one_site], axis=-1)
        of_noise[own.pairs] = -at_one_site.reshape(*batch, *per_pair)
        by_latent = own.of(K).reshape(*batch, Q, -1) @ xp.matrix_transpose(M)
        of_B[own.pairs] = -by_latent.reshape(*batch, Q, *per_pair)
        if of_kernels:
            slope = (-_side_by_side(B[own.pairs]) @ M).reshape(*batch, Q, -1, N)
            of_K = own.added(slope, of_K)
    return value, _symmetric(of_B), _symmetric(of_noise), of_K, told


def _average_information(
    table: Observations,
    W: Float[Array, "*b Q D k"],
    K: Float[Array, "*b Q N N"],
    L: Factor,
    gamma: Float[Array, "*b n 1"],
) -> Float[Array, "*b p p"]:
    """½ γᵀ ∂cov cov⁻¹ ∂cov γ for every pair of weights, of which there are p = Q·D·k.

    Where cov is linear in parameters this is the mean of their observed and their expected
    information, and costs no more than a solution for each: neither is as cheap alone.
    """
    xp = namespace(K)
    *batch, Q, D, k = W.shape
    N = K.shape[-1]
    gaps = not (batch or table.complete)  # rows of cov are of what was read alone
    if gaps:
        by_task = zeros(K, D, N)
        by_task[table.seen] = gamma[:, 0]
    else:
        by_task = gamma.reshape(*batch, D, N)
    heard, pulled = xp.matrix_transpose(W), by_task[..., None, :, :] @ K
    # ∂cov γ for w_q[d]: all tasks hear what is pulled at d, and d what is pulled at all.
    moved = pulled[..., :, None, None, :] * heard[..., None, :, :, None]  # Q d k D N
    own = diagonal(moved, -4, -2)  # Q k N d
    own += (heard @ pulled)[..., None]
    moved = moved.reshape(*batch, Q * D * k, D, N)
    if gaps:
        moved = moved[:, table.seen]
    elif not table.complete:
        moved = moved * table.seen[..., None, :, :]
    half = L.half_solve(xp.matrix_transpose(moved.reshape(*batch, Q * D * k, -1)))
    return 0.5 * xp.matrix_transpose(half) @ half


@dataclass(frozen=True)
class _Rows:
    """Rows of a covariance: some tasks' at all sites, or one task's where it was read."""

    tasks: slice
    sites: Int[Array, " m"] | None  # None: all
    place: slice  # in the covariance
    at_one_site: Int[Array, " m"] | slice  # of these sites' pairs with all: with themselves

    @property
    def shape(self) -> tuple[int, int]:
        """How many tasks, and sites of each."""
        n_tasks = self.tasks.stop - self.tasks.start
        return n_tasks, (self.place.stop - self.place.start) // n_tasks

    @property
    def pairs(self) -> tuple:
        """Of an array over pairs of tasks: these tasks' with all up to them."""
        return ..., self.tasks, slice(self.tasks.stop)

    def of(self, K: Float[Array, "*b N M"]) -> Float[Array, "*b m M"]:
        """Of a matrix over all sites: the rows of these."""
        return K if self.sites is None else K[..., self.sites, :]

    def added(
        self, slope: Float[Array, "*b m N"], total: Float[Array, "*b N N"] | None
    ) -> Float[Array, "*b N N"]:
        """A total over all sites, which may have to be begun, with that of these rows."""
        if total is None:
            if self.sites is None:
                return slope
            *batch, _, N = slope.shape
            total = zeros(slope, *batch, N, N)
        total[..., slice(None) if self.sites is None else self.sites, :] += slope
        return total


def _rows_of(table: Observations) -> list[_Rows]:
    """The rows of what was read in a table; of all that might have been in a batch of tables.

    So it is in a table of one panel: leaving out a task's gaps at a time takes more calls.
    """
    *batch, D, N = table.seen.shape
    if batch or table.complete or panel(table.y) >= (D * N) ** 2:
        return [
            _Rows(tasks, None, slice(tasks.start * N, tasks.stop * N), slice(None, None, N + 1))
            for tasks in _panels(D, int(np.prod(batch)) * N * D * N, panel(table.y))
        ]
    rows, start = [], 0
    for d, seen in enumerate(fetch(table.seen)):
        (sites,) = np.nonzero(seen)
        place = slice(start, start + len(sites))
        own = None if len(sites) == N else like(sites, table.y)
        pairs = like(np.arange(len(sites)) * N + sites, table.y)
        rows.append(_Rows(slice(d, d + 1), own, place, pairs))
        start = place.stop
    return rows


def _lower(
    rows: list[_Rows],
    B: Float[Array, "Q D D"],
    noise: Float[Array, "D D"],
    K: Float[Array, "Q N N"],
    read: Int[Array, " m"] | None,
) -> Float[Array, "m m"]:
    """The covariance of one table's rows, or of those read, on and below its diagonal."""
    xp, (Q, _, N), n = namespace(K), K.shape, rows[-1].place.stop
    cov = empty(K, n, n)
    for i, own in enumerate(rows):
        mixed = _side_by_side(B[own.pairs]).T @ own.of(K).reshape(Q, -1)
        mixed[:, own.at_one_site] += noise[own.pairs].reshape(-1, 1)
        mixed = mixed.reshape(own.shape[0], own.tasks.stop, own.shape[1], N)
        for other in rows[: i + 1]:
            block = mixed[:, other.tasks]
            block = block if other.sites is None else block[..., other.sites]
            part = cov[own.place, other.place].reshape(*own.shape, *other.shape)  # a view
            part[...] = xp.moveaxis(block, 1, 2)
    return cov if read is None else cov[read[:, None], read]


def _half(
    G: Float[Array, "*b n n"], rows: list[_Rows], N: int
) -> Float[Array, "*b task_pairs site_pairs"]:
    """Of M + Mᵀ = G, M below the diagonal: the last of these rows, pairs of tasks with all."""
    xp, own = namespace(G), rows[-1]
    *batch, _, _ = G.shape
    tasks, sites = own.shape
    parts = []
    for other in rows:
        block = G[..., own.place, other.place]
        if other is own:
            block = xp.tril(block)
            diagonal(block)[...] *= 0.5
        block = xp.moveaxis(block.reshape(*batch, tasks, sites, *other.shape), -3, -2)
        if other.sites is not None:
            whole = zeros(G, tasks, other.shape[0], sites, N)
            whole[..., other.sites] = block
            block = whole
        parts.append(block)
    M = parts[0] if len(parts) == 1 else xp.concat(parts, axis=-3)
    return M.reshape(*batch, tasks * own.tasks.stop, sites * N)


def _symmetric(A: Float[Array, "*b D D"]) -> Float[Array, "*b D D"]:
    """The symmetric part."""
    return 0.5 * (A + namespace(A).matrix_transpose(A))


def _panels(D: int, size: int, most: int) -> Iterator[slice]:
    """The tasks, as many at a time as need at most so many numbers, or one; each needs `size`."""
    step = max(1, most // max(size, 1))
    return (slice(start, min(start + step, D)) for start in range(0, D, step))


def _side_by_side(B: Float[Array, "*b Q l D"]) -> Float[Array, "*b Q lD"]:
    """A row for each latent, a column for each pair of tasks."""
    return B.reshape(*B.shape[:-2], B.shape[-2] * B.shape[-1])


def _seen(table: Observations) -> Float[Array, "*b"]:
    """How many readings each table holds."""
    xp = namespace(table.seen)
    return xp.sum(table.seen, axis=(-2, -1), dtype=table.y.dtype)
