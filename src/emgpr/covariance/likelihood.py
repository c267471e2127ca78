"""The log marginal likelihood and its derivatives, computed in Kronecker or dense form."""

from dataclasses import dataclass

from jaxtyping import Float

from emgpr.arrays import Array, diagonal, eigvalsh, namespace
from emgpr.covariance.kronecker import kronecker_log_likelihood
from emgpr.covariance.lmc import dense_log_likelihood
from emgpr.observations import Observations

# Σ counts as invertible if its smallest eigenvalue is more than this fraction of its largest one.
MIN_NOISE_RATIO = 1e-13


@dataclass(frozen=True)
class Likelihood:
    """The log-likelihood log p(y) of each table in a batch, and its derivatives.

    `of_kernels`, the derivative with respect to K_q, is valid only for symmetric changes of K_q.
    `curvature` approximates the second derivatives of −log p(y) with respect to the weights by the
    mean of their actual and their expected values. The Kronecker form provides no curvature.
    """

    value: Float[Array, "*b"]
    of_weights: Float[Array, "*b Q D k"]
    of_noise: Float[Array, "*b D D"]
    of_kernels: Float[Array, "*b Q N N"] | None
    curvature: Float[Array, "*b p p"] | None


def log_likelihood(
    table: Observations,
    W: Float[Array, "*b Q D k"],
    noise: Float[Array, "*s D D"],
    K: Float[Array, "*b Q N N"],
    *,
    of_kernels: bool = False,
    curvature: bool = False,
) -> Likelihood:
    """Return the log marginal likelihood (eq. 7) and its gradients.

    The value is −inf if the covariance has no Cholesky factor. The gradient with respect to K is
    computed only if `of_kernels` is set, and the curvature only if `curvature` is set.
    """
    Q, D, k = W.shape[-3:]
    information = None
    if Q == 1 and D > 1 and not curvature and table.complete and _is_invertible(noise):
        value, of_B, of_noise, of_K = kronecker_log_likelihood(table, W, noise, K)
    else:
        value, of_B, of_noise, of_K, information = dense_log_likelihood(
            table, W, noise, K, of_kernels=of_kernels, information=curvature
        )
    if information is not None:
        # Because B is quadratic in W, −2 ∂/∂B is added for weights in the same column of W_q.
        second = diagonal(information.reshape(*of_B.shape[:-3], Q, D, k, Q, D, k), -6, -3)
        second = diagonal(second, -4, -2)  # D D Q k
        second -= 2 * namespace(K).moveaxis(of_B, -3, -1)[..., None]
    # B = WWᵀ and ∂/∂B is symmetric, so ∂/∂W = 2 (∂/∂B) W.
    return Likelihood(value, 2 * of_B @ W, of_noise, of_K, information)


def _is_invertible(noise: Float[Array, "*s D D"]) -> bool:
    """Tell whether every Σ is invertible to working precision."""
    values = eigvalsh(noise)
    return bool((values[..., 0] > MIN_NOISE_RATIO * values[..., -1]).all())
