"""A complete table in the span of its latents: R columns in place of D·N readings.

While the kernels are held, K_q = Φ_q Φ_qᵀ with as many columns as K_q has
eigenvalues that matter beside the noise. With all columns side by side in Φ,
each belonging to a latent `of[i]`, C = W Σ⁻¹ Wᵀ between latents and G = ΦᵀΦ,

    B = I + C[of, of] ∘ G,   b_i = Σ_l w[of_i, l] (Φᵀ y_l)_i / σ_l²
    log p(y) = −½ (Σ y²/σ² − bᵀB⁻¹b + log|B| + N Σ log σ² + n log 2π)

so a step costs R³, not (D·N)³, and nothing in it depends on N.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from emgpr.arrays import factor
from emgpr.covariance.dense import LOG_2PI
from emgpr.observations import Observations

Array = np.ndarray

TOLERANCE = 1e-6  # of the least noise variance: smaller eigenvalues are left out
WORTH = 0.9  # of the dense size; beyond that the dense form is as cheap, and exact


@dataclass(frozen=True)
class Span:
    """What step 2 needs of a table, however many sites it has."""

    of: Int[Array, " R"]  # the latent (and the column of its rank) that a column belongs to
    starts: Int[Array, " Qk"]  # where the columns of each begin
    G: Float[Array, "R R"]
    projected: Float[Array, "R D"]  # Φᵀ y_l
    power: Float[Array, " D"]  # Σ_i y_l(x_i)²
    n_sites: int


def span_of(
    table: Observations, noise: Float[Array, " D"], K: Float[Array, "Q N N"], rank: int
) -> Span | None:
    """The span of a table's latents; None where the dense form is as cheap or the only one."""
    if not table.complete:
        return None
    Phi, sizes = [], []
    for matrix in K:
        values, vectors = np.linalg.eigh(matrix)
        kept = values > TOLERANCE * noise.min()
        columns = vectors[:, kept] * np.sqrt(values[kept])
        Phi += [columns] * rank
        sizes += [columns.shape[1]] * rank
    R = sum(sizes)
    if WORTH * table.y.size < R or not all(sizes):
        return None
    features = np.concatenate(Phi, axis=1)
    return Span(
        np.repeat(np.arange(len(sizes)), sizes),
        np.concatenate([[0], np.cumsum(sizes)[:-1]]),
        features.T @ features,
        features.T @ table.y.T,
        (table.y**2).sum(axis=1),
        table.n_sites,
    )


def log_likelihood_in_span(
    span: Span, W: Float[Array, "Q D k"], noise: Float[Array, " D"]
) -> tuple[float, Float[Array, "Q D k"]]:
    """log p(y) and its gradient with respect to the weights."""
    Q, D, rank = W.shape
    heard = np.swapaxes(W, 1, 2).reshape(Q * rank, D)  # a row for each column of each latent
    scaled = heard / noise
    C = scaled @ heard.T
    B = C[span.of[:, None], span.of] * span.G
    B.reshape(-1)[:: len(B) + 1] += 1.0
    L = factor(B)
    if np.isnan(L.jitter):
        return -np.inf, np.zeros_like(W)
    b = (span.projected * scaled[span.of]).sum(axis=1)
    a = L.solve(b[:, None])[:, 0]
    n = span.n_sites * D
    value = -0.5 * (
        (span.power / noise).sum()
        - b @ a
        + float(L.logdet())
        + span.n_sites * np.log(noise).sum()
        + n * LOG_2PI
    )
    # −½ Σ (a aᵀ + B⁻¹) ∘ G over the columns of two latents is the slope along their C.
    E = L.inverse()
    E += a[:, None] * a
    E *= span.G
    E = np.add.reduceat(np.add.reduceat(E, span.starts, axis=0), span.starts, axis=1)
    pulled = np.add.reduceat(a[:, None] * span.projected, span.starts, axis=0)
    gradient = (pulled - E @ heard) / noise
    return float(value), np.swapaxes(gradient.reshape(Q, rank, D), 1, 2)
