"""A complete table in the span of its latents: R columns in place of D·N readings.

While the kernels are held, K_q = Φ_q Φ_qᵀ with as many columns as K_q has
eigenvalues that matter beside the noise. With all columns side by side in Φ,
column i of latent `of[i]`, C = W Σ⁻¹ Wᵀ between latents and G = ΦᵀΦ,

    B = I + C[of, of] ∘ G,   b_i = Σ_l (W Σ⁻¹)[of_i, l] (Φᵀ y_l)_i
    log p(y) = −½ (tr Σ⁻¹yyᵀ − bᵀB⁻¹b + log|B| + N log|Σ| + n log 2π)

so a step costs R³, not (D·N)³, and nothing in it depends on N.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from emgpr.arrays import Array, diagonal, factor, fetch, like, namespace
from emgpr.covariance.dense import LOG_2PI
from emgpr.observations import Observations

TOLERANCE = 1e-6  # of the least noise variance: smaller eigenvalues are left out
WORTH = 0.9  # of the dense size; beyond that the dense form is as cheap, and exact


@dataclass(frozen=True)
class Span:
    """What step 2 needs of a table, however many sites it has."""

    blocks: tuple[slice, ...]  # the columns of Φ that belong to each latent (and rank)
    members: Float[Array, "R QK"]  # 1 where a column is of a block, else 0
    G: Float[Array, "R R"]
    projected: Float[Array, "R D"]  # Φᵀ y_l
    power: Float[np.ndarray, "D D"]  # Σ_i y_l(x_i) y_m(x_i)
    n_sites: int


def span_of(
    table: Observations, noise: Float[np.ndarray, "D D"], K: Float[Array, "Q N N"], rank: int
) -> Span | None:
    """The span of a table's latents; None where the dense form is as cheap or the only one.

    It is where the table and K are; noise and weights are small, and NumPy's.
    """
    if not table.complete:
        return None
    xp = namespace(K)
    least = TOLERANCE * float(np.linalg.eigvalsh(noise)[0])
    Phi = []
    for matrix in K:
        values, vectors = xp.linalg.eigh(matrix)
        kept = values > least
        Phi += [vectors[:, kept] * xp.sqrt(values[kept])] * rank
    sizes = [columns.shape[1] for columns in Phi]
    if sum(sizes) > WORTH * table.n_tasks * table.n_sites:
        return None
    features = xp.concat(Phi, axis=1)
    ends = np.cumsum(sizes).tolist()
    return Span(
        tuple(slice(end - size, end) for size, end in zip(sizes, ends, strict=True)),
        like(np.repeat(np.eye(len(sizes)), sizes, axis=0), K),
        features.T @ features,
        features.T @ table.y.T,
        fetch(table.y @ table.y.T),
        table.n_sites,
    )


def log_likelihood_in_span(
    span: Span, W: Float[np.ndarray, "Q D k"], noise: Float[np.ndarray, "D D"]
) -> tuple[float, Float[np.ndarray, "Q D k"]]:
    """log p(y) and its gradient with respect to the weights."""
    xp = namespace(span.G)
    Q, D, rank = W.shape
    heard = np.swapaxes(W, 1, 2).reshape(Q * rank, D)  # a row for each block
    precision = np.linalg.inv(noise)
    scaled = heard @ precision
    b = xp.sum(span.projected * (span.members @ like(scaled, span.G)), axis=1)
    C = span.members @ like(scaled @ heard.T, span.G)  # C[of_i, q]
    B = xp.empty_like(span.G)
    for q, columns in enumerate(span.blocks):
        xp.multiply(span.G[:, columns], C[:, q, None], out=B[:, columns])
    variances = diagonal(B)
    variances += 1.0
    L = factor(B, overwrite=True)
    if bool(xp.isnan(L.jitter)):
        return -np.inf, np.zeros_like(W)
    a = L.solve(b[:, None])[:, 0]
    value = -0.5 * (
        np.vdot(span.power, precision)
        - float(b @ a)
        + float(L.logdet())
        + span.n_sites * (np.linalg.slogdet(noise)[1] + D * LOG_2PI)
    )
    # The slope along C[p, q] is −½ E[p, q], with E the sums of (a aᵀ + B⁻¹) ∘ G over blocks.
    E = fetch(_sums_below(span, a, L.inverse_triangle()))
    E = E + E.T - np.diag(np.diagonal(E))
    pulled = fetch(span.members.T @ (a[:, None] * span.projected))
    gradient = (pulled - E @ heard) @ precision
    return float(value), np.swapaxes(gradient.reshape(Q, rank, D), 1, 2)


def _sums_below(
    span: Span, a: Float[Array, " R"], inverse: Float[Array, "R R"]
) -> Float[Array, "QK QK"]:
    """Sums of (a aᵀ + B⁻¹) ∘ G over the blocks on and below the diagonal, zero above.

    B⁻¹ is there in its lower triangle, and is overwritten.
    """
    xp = namespace(inverse)
    E = xp.zeros_like(span.members[: len(span.blocks)])
    for p, rows in enumerate(span.blocks):
        so_far = slice(rows.stop)
        G, part = span.G[rows, so_far], inverse[rows, so_far]
        corner = part[:, rows]
        corner[...] = xp.tril(corner, k=-1) + xp.tril(corner).T
        sums = xp.sum(part * G, axis=0) + (a[rows] @ G) * a[so_far]
        E[p] = sums @ span.members[so_far]
    return E
