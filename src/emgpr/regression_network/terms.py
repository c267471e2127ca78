"""Moments of nodes and weights at the sites, and the likelihood terms that follow from them.

The expected log-likelihood of the readings under q(W) is a quadratic function of the nodes at each
site, and that under q(f) is a quadratic function of the weights of each output at each site. The
coefficients of these functions, a precision matrix and a linear term, are the data of the two
blocks of the variational approximation. A missing reading contributes nothing.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from emgpr.observations import Observations

Array = np.ndarray


@dataclass(frozen=True)
class Moments:
    """Means and covariances of Q variables at each site, possibly for each output.

    >>> Moments(np.array([[2.0]]), np.array([[[1.0]]])).second
    array([[[5.]]])
    """

    mean: Float[Array, "*D N Q"]
    cov: Float[Array, "*D N Q Q"]

    @property
    def second(self) -> Float[Array, "*D N Q Q"]:
        """Second moments, the covariances plus the products of the means."""
        return self.mean[..., :, None] * self.mean[..., None, :] + self.cov

    def scaled(self, factors: Float[Array, " Q"]) -> "Moments":
        """Return the moments of the variables multiplied by these factors."""
        return Moments(self.mean * factors, self.cov * factors * factors[:, None])


@dataclass(frozen=True)
class SiteTerms:
    """The function linear · v − ½ vᵀ precision v of the variables v at each site."""

    precision: Float[Array, "*D N Q Q"]
    linear: Float[Array, "*D N Q"]

    def expected(self, moments: Moments) -> float:
        """Return the expected value of the sum over all sites."""
        linear = float((self.linear * moments.mean).sum())
        return linear - 0.5 * float((self.precision * moments.second).sum())


def node_terms(
    observations: Observations, weights: Moments, noise: Float[Array, " D"]
) -> SiteTerms:
    """Return the likelihood terms of the nodes at each site, given the moments of the weights."""
    return SiteTerms(
        np.einsum("dn,dnqp->nqp", observations.observed / noise[:, None], weights.second),
        np.einsum("dn,dnq->nq", observations.y / noise[:, None], weights.mean),
    )


def weight_terms(
    observations: Observations, nodes: Moments, noise: Float[Array, " D"]
) -> SiteTerms:
    """Return the likelihood terms of each output's weights, given the moments of the nodes."""
    measured = observations.observed / noise[:, None]
    return SiteTerms(
        measured[:, :, None, None] * nodes.second,
        (observations.y / noise[:, None])[:, :, None] * nodes.mean,
    )


def squared_errors(
    observations: Observations, nodes: Moments, weights: Moments
) -> Float[Array, " D"]:
    """Return the expected sum of squared differences between readings and signals, by output."""
    signal = np.einsum("dnq,nq->dn", weights.mean, nodes.mean)
    square = np.einsum("dnqp,nqp->dn", weights.second, nodes.second)
    error = observations.y**2 - 2 * observations.y * signal + square
    return (error * observations.observed).sum(axis=1)


def log_density_of_zero_signal(observations: Observations, noise: Float[Array, " D"]) -> float:
    """Return the log density of the readings if all signals were zero."""
    n = observations.observed.sum(axis=1)
    squares = (observations.y**2).sum(axis=1)
    return -0.5 * float((n * np.log(2 * np.pi * noise) + squares / noise).sum())
