"""One question, two ways to answer it: how likely is this table, and which way is up."""

from dataclasses import dataclass

from jaxtyping import Float

from emgpr.arrays import Array, namespace
from emgpr.covariance import dense, kronecker
from emgpr.observations import Observations


@dataclass(frozen=True)
class Likelihood:
    """log p(y) of each table of a batch, and its derivatives.

    K_q is symmetric, and so `of_kernels` is to be contracted with symmetric matrices only.
    """

    value: Float[Array, "*b"]
    of_weights: Float[Array, "*b Q D k"]
    of_noise: Float[Array, "*b D D"]
    of_kernels: Float[Array, "*b Q N N"] | None


def log_likelihood(
    table: Observations,
    W: Float[Array, "*b Q D k"],
    noise: Float[Array, "*s D D"],
    K: Float[Array, "*b Q N N"],
    *,
    of_kernels: bool = False,
) -> Likelihood:
    """The log marginal likelihood (eq. 7) and its gradients; −inf where cov has no factor."""
    Q, D = W.shape[-3:-1]
    if Q == 1 and D > 1 and table.complete and _definite(noise):
        answer = kronecker.likelihood_and_contractions(table, W, noise, K)
    else:
        answer = dense.likelihood_and_contractions(table, W, noise, K, of_kernels=of_kernels)
    value, of_B, of_noise, of_K = answer
    # B = WWᵀ and ∂/∂B is symmetric, so ∂/∂W = 2 (∂/∂B) W.
    return Likelihood(value, 2 * of_B @ W, of_noise, of_K)


def _definite(noise: Float[Array, "*s D D"]) -> bool:
    """Whether every Σ has an inverse to speak of, which the structured form needs."""
    values = namespace(noise).linalg.eigvalsh(noise)
    return bool((values[..., 0] > 1e-13 * values[..., -1]).all())
