"""Residual covariances Λ of inducing-point approximations, for one block of sites at a time.

The covariance of the readings is Q + Λ, where Q is the part explained by the inducing points. Each
class solves linear systems with its Λ and computes the determinant of Λ. It also computes the
contribution of Λ to the gradient with respect to the kernel, the noise and, if Λ contains K − Q,
with respect to Q.

The pullback of a matrix is the function that maps a derivative with respect to the matrix to the
gradient with respect to the log hyper-parameters of the kernel.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import Array, CholeskyFactor, cholesky, diagonal, namespace, to_numpy
from emgpr.kernels import Pairs, Pullback, evaluate_kernel


@dataclass(frozen=True)
class SiteBlock:
    """A block of sites, with the rows of Φ for these sites, where ΦΦᵀ = Q.

    `pull` is the pullback of the covariance between these sites and the inducing points.
    """

    kernel: Kernel
    theta: Float[Array, " p"]
    noise: float
    x: Float[Array, "c P"]
    features: Float[Array, "c m"]
    pull: Pullback

    @cached_property
    def explained(self) -> Float[Array, " c"]:
        """The signal variances that the inducing points explain, diag(Q)."""
        return namespace(self.features).sum(self.features**2, axis=1)

    @cached_property
    def variances(self) -> tuple[Float[Array, " c"], Pullback]:
        """Variances of the signal, diag(K), and their pullback."""
        # A stationary kernel has the same variance everywhere; others are evaluated at every site.
        x = self.x[:1] if self.kernel.is_stationary() else self.x
        K, pull = evaluate_kernel(self.kernel, self.theta, Pairs(x[:, None, :]))
        xp, c = namespace(K), len(self.x)
        K = xp.broadcast_to(K[:, 0, 0], (c,))

        def pullback(of_variances: Float[Array, " c"]) -> Float[Array, " p"]:
            total = xp.sum(of_variances)[None] if len(x) < c else of_variances
            return xp.sum(pull(total[:, None, None]), axis=0)

        return K, pullback


class Solved(NamedTuple):
    """The rows for one block of sites in solutions of linear systems with Λ or C = Q + Λ."""

    gamma: Float[Array, "c 1"]  # C⁻¹y
    S: Float[Array, "c m"]  # Λ⁻¹Φ
    SB: Float[Array, "c m"]  # S B⁻¹


@dataclass(frozen=True)
class ResidualGradient:
    """Contribution of Λ to the gradient with respect to Q, the kernel and the noise."""

    along_features: Float[Array, "c m"] | float  # the derivative with respect to Q, times Φ
    of_theta: Float[np.ndarray, " p"] | float
    of_noise: float


class ResidualCovariance(ABC):
    """Base class of residual covariances Λ for a block of sites."""

    penalty = 0.0  # a term that is added to the log-likelihood

    def __init__(self, block: SiteBlock) -> None:
        self.block = block

    @abstractmethod
    def solve(self, V: Float[Array, "c k"]) -> Float[Array, "c k"]:
        """Return Λ⁻¹V."""

    @abstractmethod
    def logdet(self) -> float:
        """Return log |Λ|."""

    @abstractmethod
    def gradient(self, solved: Solved) -> ResidualGradient:
        """Return the contribution of Λ to the gradient.

        The derivative with respect to Λ is G = ½(γγᵀ − C⁻¹), with C⁻¹ = Λ⁻¹ − S B⁻¹Sᵀ.
        """


class WhiteResidual(ResidualCovariance):
    """Noise alone: Λ = σ²I."""

    @cached_property
    def values(self) -> Float[Array, " c"]:
        """The diagonal of Λ."""
        return self.block.noise + 0.0 * self.block.explained

    def solve(self, V: Float[Array, "c k"]) -> Float[Array, "c k"]:
        """Return Λ⁻¹V."""
        return V / self.values[:, None]

    def logdet(self) -> float:
        """Return log |Λ|."""
        xp = namespace(self.values)
        return float(xp.sum(xp.log(self.values)))

    def gradient(self, solved: Solved) -> ResidualGradient:
        """Return the contribution to the gradient, of which only the noise part is not zero."""
        G = self._diagonal_of_G(solved)
        return ResidualGradient(0.0, 0.0, float(namespace(G).sum(G)))

    def _diagonal_of_G(self, solved: Solved) -> Float[Array, " c"]:
        explained = namespace(solved.S).sum(solved.SB * solved.S, axis=1)
        return 0.5 * (solved.gamma[:, 0] ** 2 - 1 / self.values + explained)


class PenalisedResidual(WhiteResidual):
    """Noise alone, Λ = σ²I, with a penalty −tr(K − Q) / 2σ² for unexplained variance."""

    @cached_property
    def unexplained(self) -> float:
        """The variance not explained by the inducing points, tr(K − Q)."""
        block = self.block
        return float(namespace(block.explained).sum(block.variances[0] - block.explained))

    @cached_property
    def penalty(self) -> float:  # type: ignore[override]
        """The penalty, −tr(K − Q) / 2σ²."""
        return -0.5 * self.unexplained / self.block.noise

    def gradient(self, solved: Solved) -> ResidualGradient:
        """Return the contributions of Λ and of the penalty to the gradient."""
        block, white = self.block, super().gradient(solved)
        factor = 0.5 / block.noise
        of_theta = to_numpy(block.variances[1](0.0 * block.explained - factor))
        of_noise = white.of_noise + factor * self.unexplained / block.noise
        return ResidualGradient(factor * block.features, of_theta, of_noise)


class DiagonalResidual(WhiteResidual):
    """Independent residuals with exact variances: Λ = diag(K − Q) + σ²I."""

    @cached_property
    def values(self) -> Float[Array, " c"]:
        """The diagonal of Λ."""
        return self.block.variances[0] - self.block.explained + self.block.noise

    def gradient(self, solved: Solved) -> ResidualGradient:
        """Return the contribution of Λ: diag(G) with respect to K, −diag(G) with respect to Q."""
        G = self._diagonal_of_G(solved)
        of_theta = to_numpy(self.block.variances[1](G))
        of_noise = float(namespace(G).sum(G))
        return ResidualGradient(-G[:, None] * self.block.features, of_theta, of_noise)


class BlockResidual(ResidualCovariance):
    """The full residual covariance of the block: Λ = K − Q + σ²I."""

    def __init__(self, block: SiteBlock) -> None:
        super().__init__(block)
        K, self.pull = evaluate_kernel(block.kernel, block.theta, Pairs(block.x))
        cov = K - block.features @ block.features.T
        diagonal(cov)[...] += block.noise
        self.factor: CholeskyFactor = cholesky(cov)

    def solve(self, V: Float[Array, "c k"]) -> Float[Array, "c k"]:
        """Return Λ⁻¹V."""
        return self.factor.solve(V)

    def logdet(self) -> float:
        """Return log |Λ|, or NaN if Λ has no Cholesky factor."""
        return float(self.factor.logdet() + 0.0 * self.factor.jitter)

    def gradient(self, solved: Solved) -> ResidualGradient:
        """Return the contribution of Λ: G with respect to K and −G with respect to Q."""
        gamma, S, SB = solved
        G = 0.5 * (gamma @ gamma.T - self.factor.inverse() + SB @ S.T)
        of_noise = float(namespace(G).sum(diagonal(G)))
        return ResidualGradient(-G @ self.block.features, to_numpy(self.pull(G)), of_noise)
