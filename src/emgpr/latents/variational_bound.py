"""The evidence lower bound for inducing points, from mini-batches (Hensman, Fusi & Lawrence 2013).

The signal at the inducing points has a Gaussian distribution q(u) = N(m, S). For any q(u), the
log-likelihood of the n readings is not below

    Σ_i [log N(y_i | p_iᵀm, σ²) − (k_ii − p_iᵀK_mm p_i + p_iᵀS p_i) / 2σ²] − KL(q(u) ‖ p(u))

where p_i = K_mm⁻¹k_m(x_i). The sum over a random batch, multiplied by n divided by the number of
readings in the batch, is an unbiased estimate of the sum over all readings.

The bound is highest for q(u) ∝ p(u) exp(bᵀu/σ² − uᵀAu/2σ²), with A = Σ_i p_i p_iᵀ and b = Σ_i y_i
p_i. Here A and b are weighted means of the estimates from batches. A step of length ρ of the
natural gradient moves both by ρ times their distance from the new estimate. The prior p(u) and the
noise in q(u) are always those of the current hyper-parameters, so that q(u) follows their changes
(Adam, Chang, Khan & Solin 2021).

In the code, u = Lv with LLᵀ = K_mm, so that p(v) = N(0, I), and φ_i = L⁻¹k_m(x_i) are the rows
of Φ.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from emgpr.arrays import cholesky
from emgpr.covariance.lmc import LOG_2PI
from emgpr.latents.inducing_sums import InnerMatrix

Array = np.ndarray


@dataclass(frozen=True)
class Sites:
    """Natural parameters of the likelihood of u, multiplied by the noise variance.

    >>> nothing = Sites.empty(2)
    >>> half = nothing.towards(Sites(np.eye(2), np.ones(2)), 0.5)
    >>> half.b
    array([0.5, 0.5])
    """

    A: Float[Array, "m m"]
    b: Float[Array, " m"]

    @classmethod
    def empty(cls, m: int) -> "Sites":
        """Return the parameters without any readings."""
        return cls(np.zeros((m, m)), np.zeros(m))

    def towards(self, other: "Sites", rho: float) -> "Sites":
        """Return the result of a natural-gradient step of length rho."""
        return Sites(self.A + rho * (other.A - self.A), self.b + rho * (other.b - self.b))


class Whitened(NamedTuple):
    """The distribution q(v) = N(mu, S) of v = L⁻¹u, and its divergence from p(v)."""

    mu: Float[Array, " m"]
    S: Float[Array, "m m"]
    divergence: float


@dataclass(frozen=True)
class BatchBound:
    """Estimates from a batch: the bound, its gradient and the parameters of the likelihood of u.

    The gradient with respect to the log hyper-parameters and the log noise variance is that for a
    fixed q(u). For the best q(u), it is also the gradient of the highest bound.
    """

    value: float
    gradient: Float[Array, " p"]
    sites: Sites


def whitened_posterior(inner: InnerMatrix, sites: Sites) -> Whitened | None:
    """Return q(v) for the parameters of the likelihood of u; None if it is not defined."""
    L, noise = inner.L, inner.points.noise
    precision = L.T @ sites.A @ L / noise
    precision.flat[:: len(L) + 1] += 1.0
    factor = cholesky(precision)
    if np.isnan(factor.jitter):
        return None
    S = factor.inverse()
    mu = S @ (L.T @ sites.b) / noise
    divergence = 0.5 * (np.trace(S) + mu @ mu - len(mu) + float(factor.logdet()))
    return Whitened(mu, S, float(divergence))


def batch_bound(
    inner: InnerMatrix, q: Whitened, x: Float[Array, "c P"], y: Float[Array, " c"], n: int
) -> BatchBound:
    """Return estimates from a batch of c of the n readings."""
    points, noise, growth = inner.points, inner.points.noise, n / len(y)
    block = points.block(x)
    phi, L_inverse = block.features, points.L_inverse
    squares = phi.T @ phi
    residual, phi_S = y - phi @ q.mu, phi @ q.S
    variances, pull_variances = block.variances
    error = residual @ residual + np.sum(variances - block.explained + (phi_S * phi).sum(axis=1))
    value = -0.5 * growth * (len(y) * (LOG_2PI + np.log(noise)) + error / noise) - q.divergence

    weight = growth / noise
    T = np.outer(residual, q.mu) + phi - phi_S
    prior = np.eye(len(q.mu)) - q.S - np.outer(q.mu, q.mu)
    of_inner = weight * (0.5 * squares - phi.T @ T) - 0.5 * prior
    of_theta = (
        block.pull(weight * T @ L_inverse)
        + inner.pull(L_inverse.T @ of_inner @ L_inverse)
        + pull_variances(np.full(len(y), -0.5 * weight))
    )
    of_log_noise = 0.5 * growth * (error / noise - len(y))
    sites = Sites(growth * L_inverse.T @ squares @ L_inverse, growth * L_inverse.T @ (phi.T @ y))
    return BatchBound(float(value), np.append(of_theta, of_log_noise), sites)
