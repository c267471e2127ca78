"""The likelihood for one latent process and no missing readings, in O(N³ + D³) operations.

With K = UΛUᵀ, Σ = LLᵀ, L⁻¹BL⁻ᵀ = VMVᵀ and T = L⁻ᵀV, the covariance of all readings is
(T⁻ᵀ ⊗ U)(M ⊗ Λ + I)(T⁻¹ ⊗ Uᵀ). The matrix in the middle is diagonal, so its inverse and its
determinant are computed from its D·N diagonal elements alone.
"""

from jaxtyping import Float

from emgpr.arrays import JITTERS, Array, diagonal, eigh, inverse_root, namespace
from emgpr.covariance.lmc import LOG_2PI, coregionalization
from emgpr.observations import Observations


def kronecker_log_likelihood(
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
    """Return the log-likelihood and its derivatives with respect to B, Σ and K."""
    xp = namespace(K)
    valid = xp.all(xp.isfinite(K), axis=(-3, -2, -1), keepdims=True)
    lam, U = eigh(xp.where(valid, K, 0.0)[..., 0, :, :])
    # K is not a covariance if an eigenvalue is too negative to be corrected by the largest jitter.
    valid = valid[..., 0, 0, 0] & (lam[..., 0] >= -JITTERS[-1] * lam[..., -1])
    root = inverse_root(noise)  # L⁻¹
    mu, V = eigh(root @ coregionalization(W)[..., 0, :, :] @ _T(root))
    lam, mu = xp.clip(lam, min=0.0)[..., None, :], xp.clip(mu, min=0.0)[..., :, None]
    T = _T(root) @ V
    A = 1 / (mu * lam + 1)

    Y = _T(T) @ table.y @ U
    gamma = Y * A
    D, N = table.y.shape[-2:]
    logdet_noise = -2 * xp.sum(xp.log(diagonal(root)), axis=-1)
    terms = xp.sum(Y * gamma - xp.log(A), axis=(-2, -1))
    value = -0.5 * (terms + N * logdet_noise + D * N * LOG_2PI)
    of_B = 0.5 * T @ _subtract_diagonal((gamma * lam) @ _T(gamma), xp.sum(A * lam, axis=-1)) @ _T(T)
    of_noise = 0.5 * T @ _subtract_diagonal(gamma @ _T(gamma), xp.sum(A, axis=-1)) @ _T(T)
    of_K = 0.5 * U @ _subtract_diagonal(_T(gamma * mu) @ gamma, xp.sum(A * mu, axis=-2)) @ _T(U)
    value = xp.where(valid, value, -float("inf"))
    return value, of_B[..., None, :, :], of_noise, of_K[..., None, :, :]


def _T(A: Float[Array, "*b n m"]) -> Float[Array, "*b m n"]:
    return namespace(A).matrix_transpose(A)


def _subtract_diagonal(
    A: Float[Array, "*b n n"], values: Float[Array, "*b n"]
) -> Float[Array, "*b n n"]:
    """Subtract values from the diagonal of A, in place."""
    entries = diagonal(A)
    entries -= values
    return A
