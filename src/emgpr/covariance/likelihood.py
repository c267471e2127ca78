"""One question, two ways to answer it: how likely is this table, and which way is up."""

from dataclasses import dataclass

from jaxtyping import Float

from emgpr.arrays import Array, diagonal, namespace
from emgpr.covariance import dense, kronecker
from emgpr.observations import Observations


@dataclass(frozen=True)
class Likelihood:
    """log p(y) of each table of a batch, and its derivatives.

    K_q is symmetric, and so `of_kernels` is to be contracted with symmetric matrices only.
    `curvature` is how −log p(y) curves along the weights: the mean of its second derivatives and
    of what is expected of them. The structured form does not tell it, and is not taken then.
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
    """The log marginal likelihood (eq. 7) and its gradients; −inf where cov has no factor."""
    Q, D, k = W.shape[-3:]
    information = None
    if Q == 1 and D > 1 and not curvature and table.complete and _definite(noise):
        value, of_B, of_noise, of_K = kronecker.likelihood_and_contractions(table, W, noise, K)
    else:
        value, of_B, of_noise, of_K, information = dense.likelihood_and_contractions(
            table, W, noise, K, of_kernels=of_kernels, information=curvature
        )
    if information is not None:  # B is not linear in W: twice ∂/∂B between weights of one column
        along = diagonal(information.reshape(*of_B.shape[:-3], Q, D, k, Q, D, k), -6, -3)
        along = diagonal(along, -4, -2)  # d e q j
        along -= 2 * namespace(K).moveaxis(of_B, -3, -1)[..., None]
    # B = WWᵀ and ∂/∂B is symmetric, so ∂/∂W = 2 (∂/∂B) W.
    return Likelihood(value, 2 * of_B @ W, of_noise, of_K, information)


def _definite(noise: Float[Array, "*s D D"]) -> bool:
    """Whether every Σ has an inverse to speak of, which the structured form needs."""
    values = namespace(noise).linalg.eigvalsh(noise)
    return bool((values[..., 0] > 1e-13 * values[..., -1]).all())
