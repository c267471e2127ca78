"""What inducing points leave: Λ, of which the readings of one run of sites are made beside Q.

Each kind solves, has a determinant, and says what the slope along it brings: to the kernel, to the
noise and, since all but the simplest are made of K − Q, to Q.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import Array, Factor, diagonal, factor, fetch, namespace
from emgpr.kernels import Pairs, Pullback, evaluate


@dataclass(frozen=True)
class Run:
    """Sites as the points see them: Φ, with ΦΦᵀ = Q, and the pullback of their covariances."""

    kernel: Kernel
    theta: Float[Array, " p"]
    noise: float
    x: Float[Array, "c P"]
    features: Float[Array, "c m"]
    pull: Pullback

    @cached_property
    def known(self) -> Float[Array, " c"]:
        """diag(Q)."""
        return namespace(self.features).sum(self.features**2, axis=1)

    @cached_property
    def variances(self) -> tuple[Float[Array, " c"], Pullback]:
        """diag(K), and its pullback."""
        # A stationary kernel has one variance; others are asked at every site.
        x = self.x[:1] if self.kernel.is_stationary() else self.x
        K, pull = evaluate(self.kernel, self.theta, Pairs(x[:, None, :]))
        xp, c = namespace(K), len(self.x)
        K = xp.broadcast_to(K[:, 0, 0], (c,))

        def pullback(of_variances: Float[Array, " c"]) -> Float[Array, " p"]:
            total = xp.sum(of_variances)[None] if len(x) < c else of_variances
            return xp.sum(pull(total[:, None, None]), axis=0)

        return K, pullback


@dataclass(frozen=True)
class Slopes:
    """Of Λ: what it adds to the slope along Q, times Φ, and its own along kernel and noise."""

    along_features: Float[Array, "c m"] | float
    of_theta: Float[np.ndarray, " p"] | float
    of_noise: float


class Rest(ABC):
    """Λ of a run."""

    penalty = 0.0  # what it adds to the logarithm, beside being part of the covariance

    def __init__(self, run: Run) -> None:
        self.run = run

    @abstractmethod
    def solve(self, V: Float[Array, "c k"]) -> Float[Array, "c k"]:
        """Λ⁻¹V."""

    @abstractmethod
    def logdet(self) -> float:
        """log |Λ|."""

    @abstractmethod
    def slopes(
        self, gamma: Float[Array, "c 1"], S: Float[Array, "c m"], halved: Float[Array, "c m"]
    ) -> Slopes:
        """From γ, S = Λ⁻¹Φ and S B⁻¹: along Λ it is G = ½(γγᵀ − C⁻¹), C⁻¹ = Λ⁻¹ − S B⁻¹Sᵀ."""


class White(Rest):
    """σ²I."""

    @cached_property
    def values(self) -> Float[Array, " c"]:
        """diag(Λ)."""
        return self.run.noise + 0.0 * self.run.known

    def solve(self, V: Float[Array, "c k"]) -> Float[Array, "c k"]:
        """Λ⁻¹V."""
        return V / self.values[:, None]

    def logdet(self) -> float:
        """log |Λ|."""
        xp = namespace(self.values)
        return float(xp.sum(xp.log(self.values)))

    def slopes(
        self, gamma: Float[Array, "c 1"], S: Float[Array, "c m"], halved: Float[Array, "c m"]
    ) -> Slopes:
        """Along the noise alone."""
        return Slopes(0.0, 0.0, float(namespace(S).sum(self.along(gamma, S, halved))))

    def along(
        self, gamma: Float[Array, "c 1"], S: Float[Array, "c m"], halved: Float[Array, "c m"]
    ) -> Float[Array, " c"]:
        """diag(G)."""
        return 0.5 * (gamma[:, 0] ** 2 - 1 / self.values + namespace(S).sum(halved * S, axis=1))


class Penalised(White):
    """σ²I, and −tr(K − Q) / 2σ² for what the points do not know."""

    @cached_property
    def unknown(self) -> float:
        """tr(K − Q)."""
        return float(namespace(self.run.known).sum(self.run.variances[0] - self.run.known))

    @cached_property
    def penalty(self) -> float:  # type: ignore[override]
        """What it costs."""
        return -0.5 * self.unknown / self.run.noise

    def slopes(
        self, gamma: Float[Array, "c 1"], S: Float[Array, "c m"], halved: Float[Array, "c m"]
    ) -> Slopes:
        """Along the noise, and those of the price."""
        run, plain = self.run, super().slopes(gamma, S, halved)
        price = 0.5 / run.noise
        of_theta = fetch(run.variances[1](0.0 * run.known - price))
        of_noise = plain.of_noise + price * self.unknown / run.noise
        return Slopes(price * run.features, of_theta, of_noise)


class Diagonal(White):
    """diag(K − Q) + σ²I."""

    @cached_property
    def values(self) -> Float[Array, " c"]:
        """diag(Λ)."""
        return self.run.variances[0] - self.run.known + self.run.noise

    def slopes(
        self, gamma: Float[Array, "c 1"], S: Float[Array, "c m"], halved: Float[Array, "c m"]
    ) -> Slopes:
        """diag(G), along K and against Q."""
        G = self.along(gamma, S, halved)
        of_theta = fetch(self.run.variances[1](G))
        return Slopes(-G[:, None] * self.run.features, of_theta, float(namespace(G).sum(G)))


class Block(Rest):
    """K − Q of all sites of the run, and σ²I."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        K, self.pull = evaluate(run.kernel, run.theta, Pairs(run.x))
        cov = K - run.features @ run.features.T
        diagonal(cov)[...] += run.noise
        self.factor: Factor = factor(cov)

    def solve(self, V: Float[Array, "c k"]) -> Float[Array, "c k"]:
        """Λ⁻¹V."""
        return self.factor.solve(V)

    def logdet(self) -> float:
        """log |Λ|; NaN if it has no factor."""
        return float(self.factor.logdet() + 0.0 * self.factor.jitter)

    def slopes(
        self, gamma: Float[Array, "c 1"], S: Float[Array, "c m"], halved: Float[Array, "c m"]
    ) -> Slopes:
        """G of the block, along K and against Q."""
        G = 0.5 * (gamma @ gamma.T - self.factor.inverse() + halved @ S.T)
        of_noise = float(namespace(G).sum(diagonal(G)))
        return Slopes(-G @ self.run.features, fetch(self.pull(G)), of_noise)
