"""The variational posterior of the nodes: all latent processes at all sites, jointly Gaussian.

With the prior covariance K, which is block diagonal over the Q nodes, and the likelihood terms of
the sites, Q × Q matrices Λ_i = R_i R_iᵀ and vectors b_i = R_i c_i, the posterior has the precision
K⁻¹ + Λ. With B = I + Rᵀ K R, whose eigenvalues are at least 1,

    M = (K + Λ⁻¹)⁻¹ = R B⁻¹ Rᵀ,    covariance = K − K M K,    mean = K α,    α = R B⁻¹ c

so that neither K nor Λ is inverted. With little noise, Λ and b are large, and the results remain
accurate: α is not a difference of large numbers, and covariances are computed with the Cholesky
factor of B. Arrays with the axes Q N are ordered by node, then by site.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from emgpr.arrays import CholeskyFactor, cholesky, eigh
from emgpr.regression_network.terms import Moments, SiteTerms

Array = np.ndarray

# Eigenvalues of a site's Λ that are smaller than this, relative to the largest one, are zero.
SMALLEST_EIGENVALUE = 1e-14


@dataclass(frozen=True)
class NodePosterior:
    """The posterior of the nodes, and `log_z`, the logarithm of the integral over them.

    log_z = log ∫ exp(Σ_i b_iᵀ f_i − ½ f_iᵀ Λ_i f_i) p(f) df
    """

    K: Float[Array, "Q N N"]
    terms: SiteTerms
    root: Float[Array, "Q N Q"]  # R, as [q, i, p]
    factor: CholeskyFactor  # of B
    alpha: Float[Array, "N Q"]  # inverse prior covariance, multiplied by the mean
    log_z: float

    @classmethod
    def solve(cls, K: Float[Array, "Q N N"], terms: SiteTerms) -> "NodePosterior":
        """Compute the posterior for these prior covariances and likelihood terms."""
        Q, N = K.shape[:2]
        values, vectors = eigh(terms.precision)
        positive = values > SMALLEST_EIGENVALUE * values.max(axis=1, keepdims=True)
        scale = np.sqrt(np.where(positive, values, 0.0))
        R = np.moveaxis(vectors * scale[:, None, :], 0, 1)
        projected = np.einsum("nqp,nq->np", vectors, terms.linear)
        c = np.divide(projected, scale, out=np.zeros((N, Q)), where=positive)

        def matrix() -> Array:
            blocks = np.zeros((Q, N, Q, N))
            for p in range(Q):
                for o in range(p + 1):  # only the lower triangle is read
                    for q in range(Q):
                        blocks[p, :, o] += R[q, :, p, None] * K[q] * R[q, :, o]
            B = blocks.reshape(Q * N, Q * N)
            B[np.diag_indices_from(B)] += 1.0
            return B

        factor = cholesky(matrix).checked("precision of the nodes")
        half = factor.half_solve(c.T.reshape(Q * N, 1))
        solved = factor.back_solve(half).reshape(Q, N)
        alpha = np.einsum("qnp,pn->nq", R, solved)
        log_z = 0.5 * float((c**2).sum() - (half**2).sum() - factor.logdet())
        return cls(K, terms, R, factor, alpha, log_z)

    @cached_property
    def mean(self) -> Float[Array, "N Q"]:
        """Mean of the nodes at each site."""
        return self.mean_at(self.K)

    @cached_property
    def inverse(self) -> Float[Array, "Q N Q N"]:
        """Inverse of B."""
        Q, N = self.K.shape[:2]
        return self.factor.inverse().reshape(Q, N, Q, N)

    def M(self, q: int) -> Float[Array, "N N"]:
        """Return the diagonal block of M for node q."""
        block, R = np.zeros(self.K.shape[1:]), self.root[q]
        for o in range(len(self.K)):
            for s in range(len(self.K)):
                block += R[:, o, None] * self.inverse[o, :, s] * R[:, s]
        return block

    @cached_property
    def moments(self) -> Moments:
        """Moments of the nodes at each site."""
        return Moments(self.mean, self.covariances_at(self.K, np.ones(self.K.shape[1])))

    def gradients(self) -> Float[Array, "Q N N"]:
        """Return the derivatives of log_z with respect to the prior covariance of each node."""
        alpha = self.alpha.T
        squares = alpha[:, :, None] * alpha[:, None, :]
        return 0.5 * (squares - np.stack([self.M(q) for q in range(len(self.K))]))

    def roughness(self) -> Float[Array, " Q"]:
        """Return the expected value of fᵀ K⁻¹ f for each node; it is N under the prior."""
        N = self.K.shape[1]
        # N − trace(M K) is the trace of K⁻¹ times the posterior covariance.
        traces = np.array([N - (self.K[q] * self.M(q)).sum() for q in range(len(self.K))])
        return (self.mean * self.alpha).sum(axis=0) + traces

    def divergence(self) -> float:
        """Return the Kullback-Leibler divergence of the posterior from the prior."""
        return self.terms.expected(self.moments) - self.log_z

    def mean_at(self, cross: Float[Array, "Q N M"]) -> Float[Array, "M Q"]:
        """Return the means at locations whose prior covariances with the sites are `cross`."""
        return np.einsum("qnm,nq->mq", cross, self.alpha)

    def covariances_at(
        self, cross: Float[Array, "Q N M"], variance: Float[Array, " M"]
    ) -> Float[Array, "M Q Q"]:
        """Return the covariance of the nodes at each of these locations."""
        half, Q = self._half(cross), len(cross)
        cov = np.empty((cross.shape[2], Q, Q))
        for q in range(Q):
            for p in range(q + 1):
                explained = (half[q] * half[p]).sum(axis=0)
                cov[:, q, p] = cov[:, p, q] = (variance if q == p else 0.0) - explained
        return cov

    def joint_covariance(
        self, cross: Float[Array, "Q N M"], prior: Float[Array, "Q M M"]
    ) -> Float[Array, "Q M Q M"]:
        """Return the covariance of all nodes at all of these locations."""
        half, (Q, _, M) = self._half(cross), cross.shape
        cov = np.empty((Q, M, Q, M))
        for q in range(Q):
            for p in range(Q):
                cov[q, :, p] = (prior[q] if q == p else 0.0) - half[q].T @ half[p]
        return cov

    def _half(self, cross: Float[Array, "Q N M"]) -> Float[Array, "Q QN M"]:
        """Return L⁻¹ Rᵀ times the covariances of each node, where B = L Lᵀ."""
        Q, N, M = cross.shape
        columns = np.einsum("qnp,qnm->pnqm", self.root, cross).reshape(Q * N, Q * M)
        return np.moveaxis(self.factor.half_solve(columns).reshape(Q * N, Q, M), 1, 0)
