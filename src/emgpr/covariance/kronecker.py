"""One latent process and complete tables: two eigendecompositions, O(N³ + D³).

With K = UΛUᵀ, Σ = LLᵀ and L⁻¹BL⁻ᵀ = VMVᵀ, cov = T⁻ᵀ(M ⊗ Λ + I)T⁻¹ in the basis
T = L⁻ᵀV over tasks and U over sites, so every quantity is a D × N table.
"""

from jaxtyping import Float

from emgpr.arrays import JITTERS, Array, diagonal, namespace
from emgpr.covariance.dense import LOG_2PI, coregionalization
from emgpr.observations import Observations


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
    xp = namespace(K)
    fine = xp.all(xp.isfinite(K), axis=(-3, -2, -1), keepdims=True)
    lam, U = xp.linalg.eigh(xp.where(fine, K, 0.0)[..., 0, :, :])
    # Beyond what the jitter policy forgives, K is no covariance.
    fine = fine[..., 0, 0, 0] & (lam[..., 0] >= -JITTERS[-1] * lam[..., -1])
    root = xp.linalg.inv(xp.linalg.cholesky(noise))  # L⁻¹
    mu, V = xp.linalg.eigh(root @ coregionalization(W)[..., 0, :, :] @ _T(root))
    lam, mu = xp.clip(lam, min=0.0)[..., None, :], xp.clip(mu, min=0.0)[..., :, None]
    T = _T(root) @ V
    A = 1 / (mu * lam + 1)

    Y = _T(T) @ table.y @ U
    gamma = Y * A
    D, N = table.y.shape[-2:]
    logdet = -2 * xp.sum(xp.log(diagonal(root)), axis=-1)
    fits = xp.sum(Y * gamma - xp.log(A), axis=(-2, -1))
    value = -0.5 * (fits + N * logdet + D * N * LOG_2PI)
    of_B = 0.5 * T @ _less((gamma * lam) @ _T(gamma), xp.sum(A * lam, axis=-1)) @ _T(T)
    of_noise = 0.5 * T @ _less(gamma @ _T(gamma), xp.sum(A, axis=-1)) @ _T(T)
    of_K = 0.5 * U @ _less(_T(gamma * mu) @ gamma, xp.sum(A * mu, axis=-2)) @ _T(U)
    value = xp.where(fine, value, -float("inf"))
    return value, of_B[..., None, :, :], of_noise, of_K[..., None, :, :]


def _T(A: Float[Array, "*b n m"]) -> Float[Array, "*b m n"]:
    return namespace(A).matrix_transpose(A)


def _less(A: Float[Array, "*b n n"], values: Float[Array, "*b n"]) -> Float[Array, "*b n n"]:
    """A without these values on its diagonal; overwrites A."""
    there = diagonal(A)
    there -= values
    return A
