"""The variational posterior of the weights of each output, in a basis of their kernel.

The weights w_dq have the prior covariance a_dq² k(x, z). Since weights change slowly, k has a low
rank at the sites. A pivoted Cholesky factorisation yields basis functions φ with k(x, z) ≈
φ(x)ᵀ φ(z), so that w_dq(x) = a_dq φ(x)ᵀ u_dq, where u_dq is standard normal. Constant weights have
one basis function, which is 1.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import CholeskyFactor, cholesky
from emgpr.kernels import kernel_matrix
from emgpr.regression_network.terms import Moments, SiteTerms

Array = np.ndarray

TOLERANCE = 1e-8  # largest variance at a site that the basis functions may leave out


@dataclass(frozen=True)
class WeightBasis:
    """Basis functions of a kernel of unit variance, or a constant if the kernel is None.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> x = np.linspace(0, 1, 50)[:, None]
    >>> basis = WeightBasis.build(RBF(2.0), x)
    >>> basis.phi.shape, bool(np.abs(RBF(2.0)(x) - basis.phi @ basis.phi.T).max() < 1e-7)
    ((50, 5), True)
    """

    kernel: Kernel | None
    pivots: Float[Array, "r P"]
    factor: Float[Array, "r r"]  # Cholesky factor of the kernel matrix of the pivots
    phi: Float[Array, "N r"]  # basis functions at the sites

    @classmethod
    def build(cls, kernel: Kernel | None, x: Float[Array, "N P"]) -> "WeightBasis":
        """Choose pivots among the sites until the basis represents the kernel at all sites."""
        if kernel is None:
            return cls(None, x[:1], np.ones((1, 1)), np.ones((len(x), 1)))
        phi, rest = np.zeros((len(x), 0)), np.ones(len(x))
        chosen: list[int] = []
        while len(chosen) < len(x) and rest.max() > TOLERANCE:
            i = int(rest.argmax())
            row = kernel_matrix(kernel, x[i : i + 1], x)[0] - phi @ phi[i]
            phi = np.column_stack([phi, row / np.sqrt(rest[i])])
            chosen.append(i)
            rest = rest - phi[:, -1] ** 2
            rest[chosen] = 0.0  # exactly, without rounding errors
        return cls(kernel, x[chosen], np.tril(phi[chosen]), phi)

    def at(self, x: Float[Array, "M P"]) -> Float[Array, "M r"]:
        """Return the basis functions at these locations."""
        if self.kernel is None:
            return np.ones((len(x), 1))
        cross = kernel_matrix(self.kernel, self.pivots, x)
        return CholeskyFactor(self.factor, np.zeros(())).half_solve(cross).T

    def residual(self, phi: Float[Array, "M r"]) -> Float[Array, " M"]:
        """Return the variance that the basis functions leave out where they have these values."""
        if self.kernel is None:
            return np.zeros(len(phi))
        return np.maximum(1.0 - (phi**2).sum(axis=1), 0.0)

    def residual_covariance(
        self, x: Float[Array, "M P"], phi: Float[Array, "M r"]
    ) -> Float[Array, "M M"]:
        """Return the covariance that the basis functions leave out at these locations."""
        if self.kernel is None:
            return np.zeros((len(x), len(x)))
        return kernel_matrix(self.kernel, x) - phi @ phi.T


@dataclass(frozen=True)
class WeightPosterior:
    """The posterior of the weights, and `log_z`, the logarithm of the integral over them.

    log_z = Σ_d log ∫ exp(Σ_i b_diᵀ w_di − ½ w_diᵀ Λ_di w_di) p(w_d) dw_d
    """

    basis: WeightBasis
    variance: Float[Array, "D Q"]  # a²
    terms: SiteTerms
    mean: Float[Array, "D Q r"]  # of u
    cov: Float[Array, "D Q r Q r"]
    log_z: float

    @classmethod
    def solve(
        cls, basis: WeightBasis, variance: Float[Array, "D Q"], terms: SiteTerms
    ) -> "WeightPosterior":
        """Compute the posterior for this prior and these likelihood terms."""
        (D, _, Q), r, phi = terms.linear.shape, basis.phi.shape[1], basis.phi
        a = np.sqrt(variance)
        blocks = np.empty((D, Q, r, Q, r))
        for d, q, p in np.ndindex(D, Q, Q):
            block = (phi * terms.precision[d, :, q, p, None]).T @ phi
            blocks[d, q, :, p] = a[d, q] * a[d, p] * block
        precision = blocks.reshape(D, Q * r, Q * r)
        precision[:, np.arange(Q * r), np.arange(Q * r)] += 1.0
        projected = np.swapaxes(terms.linear, 1, 2) @ phi  # D Q r
        linear = (a[:, :, None] * projected).reshape(D, Q * r, 1)
        factor = cholesky(precision).checked("precision of the weights")
        cov = factor.inverse()
        mean = factor.solve(linear)
        log_z = 0.5 * float((linear * mean).sum() - factor.logdet().sum())
        shape = (D, Q, r, Q, r)
        return cls(basis, variance, terms, mean.reshape(D, Q, r), cov.reshape(shape), log_z)

    @property
    def moments(self) -> Moments:
        """Moments of the weights at each site."""
        phi = self.basis.phi
        return self._moments(phi, np.zeros(len(phi)))

    def moments_at(self, x: Float[Array, "M P"]) -> Moments:
        """Return the moments of the weights at these locations."""
        phi = self.basis.at(x)
        return self._moments(phi, self.basis.residual(phi))

    def joint_moments_at(
        self, x: Float[Array, "M P"], d: int
    ) -> tuple[Float[Array, "Q M"], Float[Array, "Q M Q M"]]:
        """Return mean and covariance of all weights of output d at all of these locations."""
        phi = self.basis.at(x)
        a = np.sqrt(self.variance[d])
        half = np.tensordot(phi, self.cov[d], axes=(1, 1))  # M Q Q r
        cov = np.swapaxes(np.tensordot(half, phi, axes=(3, 1)), 0, 1)
        residual = self.basis.residual_covariance(x, phi)
        for q in range(len(cov)):
            cov[q, :, q] += residual
        scale = a[:, None, None, None] * a[:, None]
        return a[:, None] * (self.mean[d] @ phi.T), scale * cov

    def squares(self) -> Float[Array, "D Q"]:
        """Return the expected sums of squares of u; they are r under the prior."""
        return (self.mean**2).sum(axis=2) + np.einsum("dqrqr->dq", self.cov)

    def gradient(self) -> Float[Array, "N N"]:
        """Return the derivative of log_z with respect to the kernel matrix of the weights.

        The diagonal is not valid; the diagonal of a kernel of unit variance does not change.
        """
        Lambda, phi, (D, Q, r) = self.terms.precision, self.basis.phi, self.mean.shape
        means = self.moments.mean
        alpha = self.terms.linear - np.einsum("dnqp,dnp->dnq", Lambda, means)
        a = np.sqrt(self.variance)
        columns = (a[:, None] * alpha).transpose(1, 0, 2).reshape(len(phi), -1)
        G = columns @ columns.T
        for d, q in np.ndindex(D, Q):
            # Λ S Λ, with the posterior covariance S = a φ cov φᵀ a.
            P = (Lambda[d, :, q, :, None] * a[d, :, None] * phi[:, None]).reshape(-1, Q * r)
            G += self.variance[d, q] * (P @ self.cov[d].reshape(Q * r, Q * r) @ P.T)
        return 0.5 * G

    def divergence(self) -> float:
        """Return the Kullback-Leibler divergence of the posterior from the prior."""
        return self.terms.expected(self.moments) - self.log_z

    def _moments(self, phi: Float[Array, "M r"], residual: Float[Array, " M"]) -> Moments:
        (D, Q, _), M = self.mean.shape, len(phi)
        cov = np.empty((D, M, Q, Q))
        for d, q, p in np.ndindex(D, Q, Q):
            cov[d, :, q, p] = ((phi @ self.cov[d, q, :, p]) * phi).sum(axis=1)
        cov += residual[:, None, None] * np.eye(Q)
        mean = np.swapaxes(self.mean @ phi.T, 1, 2)
        a = np.sqrt(self.variance)[:, None]
        return Moments(a * mean, a[..., None] * a[..., None, :] * cov)
