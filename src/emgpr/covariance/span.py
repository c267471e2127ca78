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

from emgpr.arrays import factor
from emgpr.covariance.dense import LOG_2PI
from emgpr.observations import Observations

Array = np.ndarray

TOLERANCE = 1e-6  # of the least noise variance: smaller eigenvalues are left out
WORTH = 0.9  # of the dense size; beyond that the dense form is as cheap, and exact


@dataclass(frozen=True)
class Span:
    """What step 2 needs of a table, however many sites it has."""

    blocks: tuple[slice, ...]  # the columns of Φ that belong to each latent (and rank)
    G: Float[Array, "R R"]
    projected: Float[Array, "R D"]  # Φᵀ y_l
    power: Float[Array, "D D"]  # Σ_i y_l(x_i) y_m(x_i)
    n_sites: int


def span_of(
    table: Observations, noise: Float[Array, "D D"], K: Float[Array, "Q N N"], rank: int
) -> Span | None:
    """The span of a table's latents; None where the dense form is as cheap or the only one."""
    if not table.complete:
        return None
    least = TOLERANCE * float(np.linalg.eigvalsh(noise)[0])
    Phi = []
    for matrix in K:
        values, vectors = np.linalg.eigh(matrix)
        kept = values > least
        Phi += [vectors[:, kept] * np.sqrt(values[kept])] * rank
    ends = np.cumsum([columns.shape[1] for columns in Phi]).tolist()
    if ends[-1] > WORTH * table.y.size:
        return None
    features = np.concatenate(Phi, axis=1)
    return Span(
        tuple(slice(start, end) for start, end in zip([0, *ends], ends, strict=False)),
        features.T @ features,
        features.T @ table.y.T,
        table.y @ table.y.T,
        table.n_sites,
    )


def log_likelihood_in_span(
    span: Span, W: Float[Array, "Q D k"], noise: Float[Array, "D D"]
) -> tuple[float, Float[Array, "Q D k"]]:
    """log p(y) and its gradient with respect to the weights."""
    Q, D, rank = W.shape
    heard = np.swapaxes(W, 1, 2).reshape(Q * rank, D)  # a row for each block
    precision = np.linalg.inv(noise)
    scaled = heard @ precision
    C = scaled @ heard.T
    blocks = list(enumerate(span.blocks))
    B = np.empty_like(span.G)
    b = np.empty(len(B))
    for p, rows in blocks:
        b[rows] = span.projected[rows] @ scaled[p]
        for q, columns in blocks:
            np.multiply(span.G[rows, columns], C[p, q], out=B[rows, columns])
    B.reshape(-1)[:: len(B) + 1] += 1.0
    L = factor(B)
    if np.isnan(L.jitter):
        return -np.inf, np.zeros_like(W)
    a = L.solve(b[:, None])[:, 0]
    value = -0.5 * (
        np.vdot(span.power, precision)
        - b @ a
        + float(L.logdet())
        + span.n_sites * (np.linalg.slogdet(noise)[1] + D * LOG_2PI)
    )
    # The slope along C[p, q] is −½ E[p, q], with E the sums of (a aᵀ + B⁻¹) ∘ G over blocks. B⁻¹
    # is there in its lower triangle only: whole below the diagonal blocks, half in them.
    inverse = L.inverse_triangle()
    E = np.empty_like(C)
    pulled = np.empty_like(heard)
    for p, rows in blocks:
        pulled[p] = a[rows] @ span.projected[rows]
        for q, columns in blocks[: p + 1]:
            G, part = span.G[rows, columns], inverse[rows, columns]
            E[p, q] = E[q, p] = np.vdot(part, G) + a[rows] @ G @ a[columns]
        E[p, p] += np.vdot(part, G) - np.diagonal(part) @ np.diagonal(G)
    gradient = (pulled - E @ heard) @ precision
    return float(value), np.swapaxes(gradient.reshape(Q, rank, D), 1, 2)
