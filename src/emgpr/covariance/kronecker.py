"""One latent process and a complete table: two eigendecompositions, O(N³ + D³).

With K = UΛUᵀ and Σ^-½ B Σ^-½ = VMVᵀ, cov = T⁻ᵀ(M ⊗ Λ + I)T⁻¹ in the basis
T = Σ^-½V over tasks and U over sites, so every quantity is a D × N table.
"""

import numpy as np
from jaxtyping import Float

from emgpr.covariance.dense import LOG_2PI, coregionalization
from emgpr.observations import Observations

Array = np.ndarray


def likelihood_and_contractions(
    table: Observations,
    W: Float[Array, "1 D k"],
    noise: Float[Array, " D"],
    K: Float[Array, "1 N N"],
) -> tuple[
    Float[Array, ""], Float[Array, "1 D D"], Float[Array, " D"], Float[Array, "1 N N"] | None
]:
    """The dense form's answer, without the dense matrix."""
    lam, U = np.linalg.eigh(K[0])
    root = np.sqrt(noise)
    mu, V = np.linalg.eigh(coregionalization(W)[0] / np.outer(root, root))
    lam, mu = np.maximum(lam, 0.0), np.maximum(mu, 0.0)
    T = V / root[:, None]
    A = 1 / (np.outer(mu, lam) + 1)

    Y = T.T @ table.y @ U
    gamma = Y * A
    D, N = table.y.shape
    value = -0.5 * ((Y * gamma).sum() - np.log(A).sum() + N * np.log(noise).sum() + D * N * LOG_2PI)
    of_B = 0.5 * T @ ((gamma * lam) @ gamma.T - np.diag(A @ lam)) @ T.T
    of_noise = 0.5 * np.einsum("de,ef,df->d", T, gamma @ gamma.T - np.diag(A.sum(1)), T)
    of_K = 0.5 * U @ ((gamma.T * mu) @ gamma - np.diag(mu @ A)) @ U.T
    return np.asarray(value), of_B[None], of_noise, of_K[None]
