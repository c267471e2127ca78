"""The likelihood for fixed kernels, computed from low-rank factors of the kernel matrices.

If the kernels are fixed, K_q = Φ_q Φ_qᵀ is computed once, with one column of Φ_q for each
eigenvalue of K_q that is not negligible compared with the noise. Φ consists of the columns of all
Φ_q, R in total. Column i belongs to latent q_i. With G = ΦᵀΦ and C = W Σ⁻¹ Wᵀ, which has one row
and one column for each latent,

    B = I + C[q, q] ∘ G,   b_i = Σ_l (W Σ⁻¹)[q_i, l] (Φᵀ y_l)_i
    log p(y) = −½ (tr Σ⁻¹yyᵀ − bᵀB⁻¹b + log|B| + N log|Σ| + n log 2π)

An evaluation takes O(R³) instead of O((D·N)³) operations. If readings are missing, the sites are
grouped by the outputs measured there. Each group contributes a term to these sums, with the part of
Σ that belongs to the outputs of the group. If the noise is uncorrelated between outputs, there can
instead be one term for each output, with the sites where this output was measured.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float, Int

from emgpr.arrays import (
    Array,
    cholesky,
    diagonal,
    eigh,
    eigvalsh,
    empty,
    inv,
    namespace,
    to_device_of,
    to_numpy,
)
from emgpr.covariance.lmc import LOG_2PI
from emgpr.observations import Observations

logger = logging.getLogger(__name__)

# Eigenvalues of K that are smaller, relative to the smallest eigenvalue of Σ, are dropped.
MIN_EIGENVALUE = 1e-6
# Largest ratio of columns to readings for the low-rank form. Above it, the dense form takes less
# time in total, because it provides a curvature.
MAX_COLUMN_SHARE = 0.8
# Time needed for one term, in multiples of R², if the factorisation takes R³.
PASSES_PER_TERM = 20


@dataclass(frozen=True)
class Term:
    """A term of the likelihood: sums over a group of sites for the outputs measured there."""

    outputs: tuple[int, ...]
    G: Float[Array, "R R"]  # ΦᵀΦ over these sites
    projected: Float[Array, "R D"]  # Φᵀ y_l
    power: Float[np.ndarray, "D D"]  # Σ_i y_l(x_i) y_m(x_i)
    n_sites: int

    def precision(self, noise: Float[np.ndarray, "D D"]) -> Float[np.ndarray, "D D"]:
        """Return the inverse of Σ restricted to this term's outputs, with zeros elsewhere."""
        counted = np.ix_(self.outputs, self.outputs)
        precision = np.zeros_like(noise)
        precision[counted] = inv(noise[counted])
        return precision

    def normalisation(self, noise: Float[np.ndarray, "D D"]) -> float:
        """Return N log|Σ| + n log 2π for the outputs and sites of this term."""
        counted = np.ix_(self.outputs, self.outputs)
        per_site = np.linalg.slogdet(noise[counted])[1] + len(self.outputs) * LOG_2PI
        return float(self.n_sites * per_site)


@dataclass(frozen=True)
class LowRankTable:
    """Low-rank form of the data for step 2; its size depends on R, not on the number of sites."""

    blocks: tuple[slice, ...]  # columns of Φ for each latent and each column of its weights
    indicator: Float[Array, "R QK"]  # 1 where a column belongs to a block, else 0
    terms: tuple[Term, ...]

    @property
    def n_columns(self) -> int:
        """Number of columns, R."""
        return int(self.indicator.shape[0])


def low_rank_table(
    table: Observations, noise: Float[np.ndarray, "D D"], K: Float[Array, "Q N N"], rank: int
) -> LowRankTable | None:
    """Return the low-rank form of a table, or None if the dense form is at least as fast.

    Its arrays are on the same device as the table and K; noise and weights stay in NumPy.
    """
    xp = namespace(K)
    min_eigenvalue = MIN_EIGENVALUE * float(eigvalsh(noise)[0])
    # Computing only the eigenvalues takes a third of the time of an eigendecomposition.
    n_kept = (to_numpy(eigvalsh(K)) > min_eigenvalue).sum(axis=1)
    sizes = np.repeat(n_kept, rank).tolist()
    R, n = sum(sizes), table.n_readings
    groups = _site_groups(table, noise)
    if R**3 + PASSES_PER_TERM * len(groups) * R**2 > (MAX_COLUMN_SHARE * n) ** 3:
        logger.debug(
            "Step 2 uses the dense form: %d columns, %d terms, %d readings", R, len(groups), n
        )
        return None
    Phi = []
    for matrix, size in zip(K, sizes[::rank], strict=True):
        lam, vectors = eigh(matrix)
        largest = slice(len(lam) - size, None)
        Phi += [vectors[:, largest] * xp.sqrt(lam[largest])] * rank
    features = xp.concat(Phi, axis=1)
    ends = np.cumsum(sizes).tolist()
    return LowRankTable(
        tuple(slice(end - size, end) for size, end in zip(sizes, ends, strict=True)),
        to_device_of(np.repeat(np.eye(len(sizes)), sizes, axis=0), K),
        tuple(_term(table, features, outputs, sites) for outputs, sites in groups),
    )


def _site_groups(
    table: Observations, noise: Float[np.ndarray, "D D"]
) -> list[tuple[tuple[int, ...], Int[np.ndarray, " _"]]]:
    """Return the outputs and the sites of each term of the likelihood."""
    observed = to_numpy(table.observed)
    patterns, group = np.unique(observed, axis=1, return_inverse=True)
    independent = not np.count_nonzero(noise - np.diag(np.diagonal(noise)))
    if independent and patterns.shape[1] > len(observed):
        return [((d,), np.flatnonzero(row)) for d, row in enumerate(observed) if row.any()]
    return [
        (tuple(np.flatnonzero(pattern).tolist()), np.flatnonzero(group.ravel() == label))
        for label, pattern in enumerate(patterns.T)
        if pattern.any()
    ]


def _term(
    table: Observations,
    features: Float[Array, "N R"],
    outputs: tuple[int, ...],
    sites: Int[np.ndarray, " m"],
) -> Term:
    at = to_device_of(sites, features)
    Phi, y = features[at], table.y[:, at]
    return Term(outputs, Phi.T @ Phi, Phi.T @ y.T, to_numpy(y @ y.T), len(sites))


def low_rank_log_likelihood(
    table: LowRankTable, W: Float[np.ndarray, "Q D k"], noise: Float[np.ndarray, "D D"]
) -> tuple[float, Float[np.ndarray, "Q D k"]]:
    """Return log p(y) and its gradient with respect to the weights."""
    indicator = table.indicator
    xp = namespace(indicator)
    Q, D, rank = W.shape
    weights = np.swapaxes(W, 1, 2).reshape(Q * rank, D)  # one row for each block
    precisions = [term.precision(noise) for term in table.terms]
    b = xp.zeros_like(indicator[:, 0])
    for term, precision in zip(table.terms, precisions, strict=True):
        b += xp.sum(term.projected * (indicator @ to_device_of(weights @ precision, b)), axis=1)
    L = cholesky(partial(_lower_triangle, table, [weights @ P @ weights.T for P in precisions]))
    if bool(xp.isnan(L.jitter)):
        return -np.inf, np.zeros_like(W)
    a = L.solve(b[:, None])[:, 0]
    value = float(b @ a) - float(L.logdet())
    inverse = _complete_diagonal_blocks(table, L.inverse_triangle())
    gradient = np.zeros_like(weights)
    for term, precision in zip(table.terms, precisions, strict=True):
        value -= np.vdot(term.power, precision) + term.normalisation(noise)
        # ∂/∂C[p, q] is −½ E[p, q], where E holds the sums of (a aᵀ + B⁻¹) ∘ G over blocks.
        E = to_numpy(_block_sums(table, term.G, a, inverse))
        E = E + E.T - np.diag(np.diagonal(E))
        projected = to_numpy(indicator.T @ (a[:, None] * term.projected))
        gradient += (projected - E @ weights) @ precision
    return 0.5 * float(value), np.swapaxes(gradient.reshape(Q, rank, D), 1, 2)


def _lower_triangle(
    table: LowRankTable, C: Sequence[Float[np.ndarray, "QK QK"]]
) -> Float[Array, "R R"]:
    """Return the lower triangle of B, given the matrix C of every term."""
    B = empty(table.indicator, table.n_columns, table.n_columns)
    for columns, of_block in zip(table.blocks, np.stack(C, axis=-1), strict=True):
        rows = slice(columns.start, None)
        # C[q_i, q], one column for each term.
        scale = table.indicator[rows] @ to_device_of(of_block, B)
        part = B[rows, columns]
        part[...] = table.terms[0].G[rows, columns] * scale[:, :1]
        for t, term in enumerate(table.terms[1:], start=1):
            part += term.G[rows, columns] * scale[:, t, None]
    variances = diagonal(B)
    variances += 1.0
    return B


def _complete_diagonal_blocks(
    table: LowRankTable, inverse: Float[Array, "R R"]
) -> Float[Array, "R R"]:
    """Copy the lower triangle of each diagonal block to its upper triangle, in place."""
    xp = namespace(inverse)
    for rows in table.blocks:
        corner = inverse[rows, rows]
        corner[...] = xp.tril(corner, k=-1) + xp.tril(corner).T
    return inverse


def _block_sums(
    table: LowRankTable,
    G: Float[Array, "R R"],
    a: Float[Array, " R"],
    inverse: Float[Array, "R R"],
) -> Float[Array, "QK QK"]:
    """Return the sum of (a aᵀ + B⁻¹) ∘ G over each block, or 0 for blocks above the diagonal."""
    xp = namespace(inverse)
    E = xp.zeros_like(table.indicator[: len(table.blocks)])
    for p, rows in enumerate(table.blocks):
        columns = slice(rows.stop)
        part = G[rows, columns]
        sums = xp.sum(inverse[rows, columns] * part, axis=0) + (a[rows] @ part) * a[columns]
        E[p] = sums @ table.indicator[columns]
    return E
