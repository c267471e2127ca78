"""One latent process and complete tables: two eigendecompositions, O(N³ + D³).

With K = UΛUᵀ, Σ = LLᵀ and L⁻¹BL⁻ᵀ = VMVᵀ, cov = T⁻ᵀ(M ⊗ Λ + I)T⁻¹ in the basis
T = L⁻ᵀV over tasks and U over sites, so every quantity is a D × N table.
"""

import numpy as np
from jaxtyping import Float

from emgpr.arrays import JITTERS
from emgpr.covariance.dense import LOG_2PI, coregionalization
from emgpr.observations import Observations

Array = np.ndarray


def likelihood_and_contractions(
    table: Observations,
    W: Float[Array, "*b 1 D k"],
    noise: Float[Array, "*s D D"],
    K: Float[Array, "*b 1 N N"],
) -> tuple[
    Float[Array, "*b"],
    Float[Array, "*b 1 D D"],
    Float[Array, "*b D D"],
    Float[Array, "*b 1 N N"] | None,
]:
    """The dense form's answer, without the dense matrix."""
    fine = np.isfinite(K).all((-3, -2, -1), keepdims=True)
    lam, U = np.linalg.eigh(np.where(fine, K, 0.0)[..., 0, :, :])
    # Beyond what the jitter policy forgives, K is no covariance.
    fine = fine[..., 0, 0, 0] & (lam[..., 0] >= -JITTERS[-1] * lam[..., -1])
    root = np.linalg.inv(np.linalg.cholesky(noise))  # L⁻¹
    mu, V = np.linalg.eigh(root @ coregionalization(W)[..., 0, :, :] @ _T(root))
    lam, mu = np.maximum(lam, 0.0)[..., None, :], np.maximum(mu, 0.0)[..., :, None]
    T = _T(root) @ V
    A = 1 / (mu * lam + 1)

    Y = _T(T) @ table.y @ U
    gamma = Y * A
    D, N = table.y.shape[-2:]
    logdet = -2 * np.log(np.einsum("...dd->...d", root)).sum(-1)
    value = -0.5 * ((Y * gamma - np.log(A)).sum((-2, -1)) + N * logdet + D * N * LOG_2PI)
    of_B = 0.5 * T @ ((gamma * lam) @ _T(gamma) - _diagonal((A * lam).sum(-1))) @ _T(T)
    of_noise = 0.5 * T @ (gamma @ _T(gamma) - _diagonal(A.sum(-1))) @ _T(T)
    of_K = 0.5 * U @ (_T(gamma * mu) @ gamma - _diagonal((A * mu).sum(-2))) @ _T(U)
    value = np.where(fine, value, -np.inf)
    return value, of_B[..., None, :, :], of_noise, of_K[..., None, :, :]


def _T(A: Float[Array, "*b n m"]) -> Float[Array, "*b m n"]:
    return np.swapaxes(A, -1, -2)


def _diagonal(values: Float[Array, "*b n"]) -> Float[Array, "*b n n"]:
    return values[..., None] * np.eye(values.shape[-1])
