"""A table in the span of its latents: R columns in place of its readings.

While the kernels are held, K_q = Φ_q Φ_qᵀ with as many columns as K_q has
eigenvalues that matter beside the noise. With all columns side by side in Φ,
column i of latent `of[i]`, C = W Σ⁻¹ Wᵀ between latents and G = ΦᵀΦ,

    B = I + C[of, of] ∘ G,   b_i = Σ_l (W Σ⁻¹)[of_i, l] (Φᵀ y_l)_i
    log p(y) = −½ (tr Σ⁻¹yyᵀ − bᵀB⁻¹b + log|B| + N log|Σ| + n log 2π)

so a step costs R³, not (D·N)³, and nothing in it depends on N. Where outputs are missing, sites
at which the same ones were measured make a term of these sums, with the Σ of those outputs; if
the noises are independent, so may the sites of each output.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float, Int

from emgpr.arrays import Array, diagonal, empty, factor, fetch, like, namespace
from emgpr.covariance.dense import LOG_2PI
from emgpr.observations import Observations

logger = logging.getLogger(__name__)

TOLERANCE = 1e-6  # of the least noise variance: smaller eigenvalues are left out
WORTH = 0.8  # of the readings; with more columns the dense form, which curves, takes less in all
PASSES = 20  # over the columns' products, for each term, in the time of a multiplication by them


@dataclass(frozen=True)
class Term:
    """Sites at which the same outputs are counted."""

    outputs: tuple[int, ...]
    G: Float[Array, "R R"]  # ΦᵀΦ over these sites
    projected: Float[Array, "R D"]  # Φᵀ y_l
    power: Float[np.ndarray, "D D"]  # Σ_i y_l(x_i) y_m(x_i)
    n_sites: int

    def precision(self, noise: Float[np.ndarray, "D D"]) -> Float[np.ndarray, "D D"]:
        """Σ⁻¹ of the outputs counted here, zero for the others."""
        at = np.ix_(self.outputs, self.outputs)
        whole = np.zeros_like(noise)
        whole[at] = np.linalg.inv(noise[at])
        return whole

    def log_density_of_nothing(self, noise: Float[np.ndarray, "D D"]) -> float:
        """−2 log p(0) of these sites' noise."""
        at = np.ix_(self.outputs, self.outputs)
        per_site = np.linalg.slogdet(noise[at])[1] + len(self.outputs) * LOG_2PI
        return float(self.n_sites * per_site)


@dataclass(frozen=True)
class Span:
    """What step 2 needs of a table, however many sites it has."""

    blocks: tuple[slice, ...]  # the columns of Φ that belong to each latent (and rank)
    members: Float[Array, "R QK"]  # 1 where a column is of a block, else 0
    terms: tuple[Term, ...]

    @property
    def n_columns(self) -> int:
        """R."""
        return int(self.members.shape[0])


def span_of(
    table: Observations, noise: Float[np.ndarray, "D D"], K: Float[Array, "Q N N"], rank: int
) -> Span | None:
    """The span of a table's latents; None where the dense form is as cheap.

    It is where the table and K are; noise and weights are small, and NumPy's.
    """
    xp = namespace(K)
    least = TOLERANCE * float(np.linalg.eigvalsh(noise)[0])
    n_kept = (fetch(xp.linalg.eigvalsh(K)) > least).sum(axis=1)  # without vectors: a third of it
    sizes = np.repeat(n_kept, rank).tolist()
    R, n = sum(sizes), table.n_readings
    groups = _counted_together(table, noise)
    if R**3 + PASSES * len(groups) * R**2 > (WORTH * n) ** 3:
        logger.debug("Step 2 in full: %d columns, %d terms, %d readings", R, len(groups), n)
        return None
    Phi = []
    for matrix, size in zip(K, sizes[::rank], strict=True):
        lam, vectors = xp.linalg.eigh(matrix)
        largest = slice(len(lam) - size, None)
        Phi += [vectors[:, largest] * xp.sqrt(lam[largest])] * rank
    features = xp.concat(Phi, axis=1)
    ends = np.cumsum(sizes).tolist()
    return Span(
        tuple(slice(end - size, end) for size, end in zip(sizes, ends, strict=True)),
        like(np.repeat(np.eye(len(sizes)), sizes, axis=0), K),
        tuple(_term(table, features, outputs, sites) for outputs, sites in groups),
    )


def _counted_together(
    table: Observations, noise: Float[np.ndarray, "D D"]
) -> list[tuple[tuple[int, ...], Int[np.ndarray, " _"]]]:
    """Outputs, and sites at which they were measured and others were not, or count elsewhere."""
    seen = fetch(table.seen)
    patterns, own = np.unique(seen, axis=1, return_inverse=True)
    independent = not np.count_nonzero(noise - np.diag(np.diagonal(noise)))
    if independent and patterns.shape[1] > len(seen):
        return [((d,), np.flatnonzero(row)) for d, row in enumerate(seen) if row.any()]
    return [
        (tuple(np.flatnonzero(pattern).tolist()), np.flatnonzero(own.ravel() == label))
        for label, pattern in enumerate(patterns.T)
        if pattern.any()
    ]


def _term(
    table: Observations,
    features: Float[Array, "N R"],
    outputs: tuple[int, ...],
    sites: Int[np.ndarray, " m"],
) -> Term:
    at = like(sites, features)
    Phi, y = features[at], table.y[:, at]
    return Term(outputs, Phi.T @ Phi, Phi.T @ y.T, fetch(y @ y.T), len(sites))


def log_likelihood_in_span(
    span: Span, W: Float[np.ndarray, "Q D k"], noise: Float[np.ndarray, "D D"]
) -> tuple[float, Float[np.ndarray, "Q D k"]]:
    """log p(y) and its gradient with respect to the weights."""
    xp = namespace(span.members)
    Q, D, rank = W.shape
    heard = np.swapaxes(W, 1, 2).reshape(Q * rank, D)  # a row for each block
    precisions = [term.precision(noise) for term in span.terms]
    b = xp.zeros_like(span.members[:, 0])
    for term, precision in zip(span.terms, precisions, strict=True):
        b += xp.sum(term.projected * (span.members @ like(heard @ precision, b)), axis=1)
    L = factor(partial(_lower, span, [heard @ P @ heard.T for P in precisions]))
    if bool(xp.isnan(L.jitter)):
        return -np.inf, np.zeros_like(W)
    a = L.solve(b[:, None])[:, 0]
    value = float(b @ a) - float(L.logdet())
    inverse = _below(span, L.inverse_triangle())
    gradient = np.zeros_like(heard)
    for term, precision in zip(span.terms, precisions, strict=True):
        value -= np.vdot(term.power, precision) + term.log_density_of_nothing(noise)
        # The slope along C[p, q] is −½ E[p, q], with E the sums of (a aᵀ + B⁻¹) ∘ G over blocks.
        E = fetch(_sums_below(span, term.G, a, inverse))
        E = E + E.T - np.diag(np.diagonal(E))
        pulled = fetch(span.members.T @ (a[:, None] * term.projected))
        gradient += (pulled - E @ heard) @ precision
    return 0.5 * float(value), np.swapaxes(gradient.reshape(Q, rank, D), 1, 2)


def _lower(span: Span, C: Sequence[Float[np.ndarray, "QK QK"]]) -> Float[Array, "R R"]:
    """B on and below its diagonal, from the C of every term."""
    B = empty(span.members, span.n_columns, span.n_columns)
    for columns, of_block in zip(span.blocks, np.stack(C, axis=-1), strict=True):
        rows = slice(columns.start, None)
        scale = span.members[rows] @ like(of_block, B)  # C[of_i, q], a column a term
        part = B[rows, columns]
        part[...] = span.terms[0].G[rows, columns] * scale[:, :1]
        for t, term in enumerate(span.terms[1:], start=1):
            part += term.G[rows, columns] * scale[:, t, None]
    variances = diagonal(B)
    variances += 1.0
    return B


def _below(span: Span, inverse: Float[Array, "R R"]) -> Float[Array, "R R"]:
    """B⁻¹, there in its lower triangle: with its diagonal blocks whole, in its place."""
    xp = namespace(inverse)
    for rows in span.blocks:
        corner = inverse[rows, rows]
        corner[...] = xp.tril(corner, k=-1) + xp.tril(corner).T
    return inverse


def _sums_below(
    span: Span, G: Float[Array, "R R"], a: Float[Array, " R"], inverse: Float[Array, "R R"]
) -> Float[Array, "QK QK"]:
    """Sums of (a aᵀ + B⁻¹) ∘ G over the blocks on and below the diagonal, zero above."""
    xp = namespace(inverse)
    E = xp.zeros_like(span.members[: len(span.blocks)])
    for p, rows in enumerate(span.blocks):
        so_far = slice(rows.stop)
        part = G[rows, so_far]
        sums = xp.sum(inverse[rows, so_far] * part, axis=0) + (a[rows] @ part) * a[so_far]
        E[p] = sums @ span.members[so_far]
    return E
