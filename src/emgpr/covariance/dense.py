"""The covariance formed in full, its likelihood, and the gradients by contraction."""

import numpy as np
from jaxtyping import Float

from emgpr.arrays import factor
from emgpr.observations import Observations

Array = np.ndarray

LOG_2PI = float(np.log(2 * np.pi))


def coregionalization(W: Float[Array, "*b Q D k"]) -> Float[Array, "*b Q D D"]:
    """B_q = W_q W_qᵀ."""
    return W @ np.swapaxes(W, -1, -2)


def between_tasks(
    B: Float[Array, "*b Q D D"], K: Float[Array, "*c Q N M"]
) -> Float[Array, "*d D N D M"]:
    """Covariance of every task with every other, Σ_q B_q ⊗ K_q."""
    *_, Q, D, _ = B.shape
    *_, N, M = K.shape
    mixed = np.swapaxes(B.reshape(*B.shape[:-3], Q, D * D), -1, -2) @ K.reshape(
        *K.shape[:-3], Q, N * M
    )
    mixed = mixed.reshape(*mixed.shape[:-2], D, D, N, M)
    return np.ascontiguousarray(np.swapaxes(mixed, -3, -2))


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
    np.einsum("...diei->...dei", cov)[...] += noise[..., None]
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
    fixed: one matrix product of (D², N²) by (N², Q), never ∂cov/∂θ itself.
    """
    B = coregionalization(W)
    L = factor(readings(table, B, noise, K))
    y = table.stacked[..., None]
    gamma = L.solve(y)
    value = -0.5 * ((y * gamma).sum((-2, -1)) + L.logdet() + _seen(table) * LOG_2PI)
    value = np.where(np.isnan(L.jitter), -np.inf, value)

    G = gamma * np.swapaxes(gamma, -1, -2)
    G -= L.inverse()
    *batch, Q, N, _ = K.shape
    D = noise.shape[-1]
    G = G.reshape(*G.shape[:-2], D, N, D, N)
    # Unseen readings have unit rows of their own in G; K_q must not see them.
    if not table.complete:
        G *= table.seen[..., :, :, None, None] & table.seen[..., None, None, :, :]
    of_noise = 0.5 * np.einsum("...diei->...de", G)
    G = np.swapaxes(G, -3, -2).reshape(*G.shape[:-4], D * D, N * N)
    flat = K.reshape(*batch, Q, N * N)
    of_B = 0.5 * np.swapaxes(G @ np.swapaxes(flat, -1, -2), -1, -2)
    of_K = None
    if of_kernels:
        of_K = 0.5 * (B.reshape(*B.shape[:-2], D * D) @ G).reshape(*batch, Q, N, N)
    return value, of_B.reshape(*of_B.shape[:-1], D, D), of_noise, of_K


def _seen(table: Observations) -> Float[Array, "*b"]:
    return np.asarray(table.seen.sum((-2, -1)), dtype=float)
