"""The variational posterior of the nodes: all latent processes at all sites, jointly Gaussian.

With the prior covariance K, which is block diagonal over the Q nodes, and the likelihood terms Λ_i
of the sites, which are Q × Q matrices, the posterior has the precision K⁻¹ + Λ. With Λ = R Rᵀ and
B = I + Rᵀ K R, whose eigenvalues are at least 1,

    M = (K + Λ⁻¹)⁻¹ = R B⁻¹ Rᵀ,    covariance = K − K M K,    mean = K α,    α = b − Λ mean

so that neither K nor Λ is inverted. Arrays with the axes Q N are ordered by node, then by site.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from emgpr.arrays import cholesky, eigh
from emgpr.regression_network.terms import Moments, SiteTerms

Array = np.ndarray


@dataclass(frozen=True)
class NodePosterior:
    """The posterior of the nodes, and `log_z`, the logarithm of the integral over them.

    log_z = log ∫ exp(Σ_i b_iᵀ f_i − ½ f_iᵀ Λ_i f_i) p(f) df
    """

    K: Float[Array, "Q N N"]
    terms: SiteTerms
    root: Float[Array, "Q N Q"]  # R, as [q, i, p]
    inverse: Float[Array, "Q N Q N"]  # of B
    log_z: float
    mean: Float[Array, "N Q"]

    @classmethod
    def solve(cls, K: Float[Array, "Q N N"], terms: SiteTerms) -> "NodePosterior":
        """Compute the posterior for these prior covariances and likelihood terms."""
        Q, N = K.shape[:2]
        values, vectors = eigh(terms.precision)
        R = np.moveaxis(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :], 0, 1)

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
        log_determinant = float(factor.logdet())
        inverse = factor.inverse().reshape(Q, N, Q, N)
        Kb = (K @ terms.linear.T[:, :, None])[:, :, 0]
        inner = np.tensordot(inverse, np.einsum("qnp,qn->pn", R, Kb))
        MKb = np.einsum("qnp,pn->qn", R, inner)
        mean = (Kb - (K @ MKb[:, :, None])[:, :, 0]).T
        log_z = 0.5 * float((terms.linear * mean).sum()) - 0.5 * log_determinant
        return cls(K, terms, R, inverse, log_z, mean)

    @cached_property
    def alpha(self) -> Float[Array, "N Q"]:
        """Inverse prior covariance, multiplied by the mean."""
        return self.terms.linear - np.einsum("nqp,np->nq", self.terms.precision, self.mean)

    def M(self, q: int, p: int) -> Float[Array, "N N"]:
        """Return the block of M for nodes q and p."""
        block = np.zeros(self.K.shape[1:])
        for o in range(len(self.K)):
            for s in range(len(self.K)):
                block += self.root[q, :, o, None] * self.inverse[o, :, s] * self.root[p, :, s]
        return block

    @cached_property
    def moments(self) -> Moments:
        """Moments of the nodes at each site."""
        return Moments(self.mean, self.covariances_at(self.K, np.ones(self.K.shape[1])))

    def gradients(self) -> Float[Array, "Q N N"]:
        """Return the derivatives of log_z with respect to the prior covariance of each node."""
        alpha = self.alpha.T
        squares = alpha[:, :, None] * alpha[:, None, :]
        return 0.5 * (squares - np.stack([self.M(q, q) for q in range(len(self.K))]))

    def roughness(self) -> Float[Array, " Q"]:
        """Return the expected value of fᵀ K⁻¹ f for each node; it is N under the prior."""
        N = self.K.shape[1]
        # N − trace(M K) is the trace of K⁻¹ times the posterior covariance.
        traces = np.array([N - (self.K[q] * self.M(q, q)).sum() for q in range(len(self.K))])
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
        Q = len(cross)
        cov = np.empty((cross.shape[2], Q, Q))
        for q in range(Q):
            for p in range(q + 1):
                explained = np.einsum("nm,nm->m", self.M(q, p) @ cross[p], cross[q])
                cov[:, q, p] = cov[:, p, q] = (variance if q == p else 0.0) - explained
        return cov

    def joint_covariance(
        self, cross: Float[Array, "Q N M"], prior: Float[Array, "Q M M"]
    ) -> Float[Array, "Q M Q M"]:
        """Return the covariance of all nodes at all of these locations."""
        Q, _, M = cross.shape
        cov = np.zeros((Q, M, Q, M))
        for q in range(Q):
            cov[q, :, q] = prior[q]
            for p in range(Q):
                cov[q, :, p] -= cross[q].T @ self.M(q, p) @ cross[p]
        return cov
