"""Step 1 with m inducing points, at a cost of O(n m²) per evaluation.

Q = K_nm K_mm⁻¹ K_mn is the covariance explained by the m inducing points. The objectives are

    log N(y | 0, Q + Λ)          DTC:  Λ = σ²I
                                 FITC: Λ = diag(K − Q) + σ²I
                                 PITC: Λ = K − Q within blocks of neighbours, + σ²I
    … − tr(K − Q) / 2σ²          VFE, whose Λ is that of DTC

Only VFE is a bound: it never exceeds the log-likelihood, and equals it if all sites are inducing
points. The other objectives are log-likelihoods of different models, and can be larger or smaller.

With LLᵀ = K_mm, Φ = K_nm L⁻ᵀ, B = I + ΦᵀΛ⁻¹Φ and a = B⁻¹ΦᵀΛ⁻¹y, the inverse of C = Q + Λ is
not needed: γ = C⁻¹y = Λ⁻¹(y − Φa) and C⁻¹Φ = Λ⁻¹ΦB⁻¹. The sites are processed in blocks, in two
passes. The first pass computes B and a. The second pass computes the gradient, using the pullbacks
of the kernels (see `emgpr.kernels`).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import Array, cholesky, diagonal, namespace, to_device, to_device_of, to_numpy
from emgpr.covariance.lmc import LOG_2PI
from emgpr.kernels import Pairs, evaluate_kernel
from emgpr.latents.base import Work
from emgpr.latents.inducing import inducing_points, neighbour_blocks
from emgpr.latents.maximum_likelihood import LikelihoodLearner, search_work
from emgpr.latents.residual_covariance import (
    BlockResidual,
    DiagonalResidual,
    PenalisedResidual,
    ResidualCovariance,
    SiteBlock,
    Solved,
    WhiteResidual,
)
from emgpr.observations import Observations
from emgpr.optimize import Objective

SITES_PER_BLOCK = 1024  # number of sites processed together
# Added to the diagonal of K_mm, relative to its mean: K_mm is nearly singular for smooth kernels.
RELATIVE_JITTER = 1e-8
# Values for planning, fitted to measured times: the number of evaluations, of floating-point
# operations for each reading and pair of inducing points, of factorisations of matrices of the size
# of K_mm, and of arrays with a row for each site in a block and a column for each inducing point.
EVALUATIONS, OPERATIONS, FACTORISATIONS, ARRAYS = 20, 14.0, 4, 12.0


@dataclass
class Sparse(LikelihoodLearner):
    """Base class of the learners with inducing points; subclasses use different approximations.

    The inducing points are sites chosen using k-means++. They are not optimised.
    """

    residual: ClassVar[type[ResidualCovariance]] = WhiteResidual
    approximation: ClassVar[str] = "approximated through"

    n_inducing: int = 300  # maximum number of inducing points

    def site_blocks(self, x: Float[np.ndarray, "n P"]) -> list[Int[np.ndarray, " _"]]:
        """Divide the sites into blocks; Λ is zero between different blocks."""
        return np.array_split(np.arange(len(x)), -(-len(x) // SITES_PER_BLOCK))

    def objective(
        self,
        table: Observations,
        kernel: Kernel,
        outputs: Int[np.ndarray, " m"],
        device: str = "cpu",
    ) -> Objective:
        """Return the negative approximate log-likelihood as a function of the parameters."""
        points = to_device(inducing_points(table.x, self.n_inducing), device)
        blocks = [table.at(block).to(device) for block in self.site_blocks(table.x)]

        def objective(
            params: Float[np.ndarray, "b p"], which: Int[np.ndarray, " b"]
        ) -> tuple[np.ndarray, np.ndarray]:
            fits = [
                self._log_likelihood(kernel, row, points, blocks, d)
                for row, d in zip(params, outputs[which].tolist(), strict=True)
            ]
            values, gradients = zip(*fits, strict=True)
            return -np.array(values), -np.stack(gradients)

        return objective

    def _log_likelihood(
        self,
        kernel: Kernel,
        row: Float[np.ndarray, " p"],
        points: Float[Array, "m P"],
        blocks: list[Observations],
        d: int,
    ) -> tuple[float, Float[np.ndarray, " p"]]:
        """Return the approximate log-likelihood of output d and its gradient."""
        xp, theta, noise = namespace(points), to_device_of(row[:-1], points), float(np.exp(row[-1]))
        K, pull = evaluate_kernel(kernel, theta, Pairs(points))
        K = K + 0.0  # a copy, because the array of a constant kernel is read-only
        on_diagonal = diagonal(K)
        on_diagonal += RELATIVE_JITTER * xp.mean(on_diagonal)
        L = cholesky(K)
        if bool(xp.isnan(L.jitter)):
            return -np.inf, np.zeros_like(row)
        identity = to_device_of(np.eye(len(K)), points)
        L_inverse = L.half_solve(identity)

        def site_block(x: Float[Array, "c P"]) -> SiteBlock:
            cross, pull_cross = evaluate_kernel(kernel, theta, Pairs(x, points))
            return SiteBlock(kernel, theta, noise, x, cross @ L_inverse.T, pull_cross)

        B, b, value = identity, xp.zeros_like(points[:, 0]), 0.0
        for table in blocks:
            block, y = site_block(table.x), table.y[d]
            residual = self.residual(block)
            S = residual.solve(block.features)
            B = B + block.features.T @ S
            b = b + S.T @ y
            misfit = float(y @ residual.solve(y[:, None])[:, 0] + residual.logdet())
            value += residual.penalty - 0.5 * misfit
        L_B = cholesky(B)
        if bool(xp.isnan(L_B.jitter)):
            return -np.inf, np.zeros_like(row)
        a, B_inverse = L_B.solve(b[:, None]), L_B.inverse()
        n = sum(table.n_sites for table in blocks)
        value += 0.5 * float(b @ a[:, 0] - L_B.logdet() - n * LOG_2PI)

        gradient, of_inner = np.zeros_like(row), xp.zeros_like(B)
        for table in blocks:
            block, y = site_block(table.x), table.y[d][:, None]
            residual = self.residual(block)
            S = residual.solve(block.features)
            gamma, SB = residual.solve(y - block.features @ a), S @ B_inverse
            of_residual = residual.gradient(Solved(gamma, S, SB))
            # T = G Φ L⁻¹, where G is the derivative with respect to Q, including that through Λ.
            T = (0.5 * (gamma @ a.T - SB) + of_residual.along_features) @ L_inverse
            of_inner = of_inner + block.features.T @ T
            gradient[:-1] += to_numpy(block.pull(2 * T)) + of_residual.of_theta
            gradient[-1] += of_residual.of_noise * noise
        of_K = -L_inverse.T @ of_inner
        diagonal(of_K)[...] += RELATIVE_JITTER * xp.mean(diagonal(of_K))
        gradient[:-1] += to_numpy(pull(of_K))
        return value, gradient

    @property
    def correlated_sites(self) -> int:
        """Number of sites in a block with correlated residuals, or 0 for independent residuals."""
        return 0

    def work(self, n: int) -> Work:
        """Return the time and memory needed to fit one kernel to n readings of an output."""
        m, correlated = min(n, self.n_inducing), min(n, self.correlated_sites)
        block_size = correlated or SITES_PER_BLOCK
        n_blocks = n / block_size
        parts = search_work(
            n,
            EVALUATIONS,
            likelihoods=FACTORISATIONS,
            n_readings=m,
            blocks=2 * n_blocks if correlated else 0.0,
            block_size=correlated,
            kernel_values=2.0 * n * m + 2 * n * correlated,
            operations=OPERATIONS * n * m * (m + correlated),
            calls=FACTORISATIONS + n_blocks,
        )
        method = f"{type(self).__name__.lower()}, inducing points"
        entries = ARRAYS * min(n, block_size) * m
        return Work(method, m, 1, EVALUATIONS, parts, ((m, 1),), entries)

    def describe_approximation(self, n: int) -> str:
        """Describe how the likelihood of n readings is approximated; return "" if it is exact.

        >>> FITC(50).describe_approximation(2500)
        'the likelihood of 2500 readings is approximated through 50 inducing points (FITC)'
        """
        if self.n_inducing >= n:
            return ""
        points = f"{self.n_inducing} inducing points ({type(self).__name__})"
        return f"the likelihood of {n} readings is {self.approximation} {points}"


@dataclass
class DTC(Sparse):
    """Deterministic training conditional: Λ consists of the noise alone."""


@dataclass
class VFE(Sparse):
    """Variational free energy: a lower bound on the log-likelihood, with a penalty term."""

    residual = PenalisedResidual
    approximation = "replaced by a lower bound from"


@dataclass
class FITC(Sparse):
    """Fully independent training conditional: the variances of the readings are exact."""

    residual = DiagonalResidual


@dataclass
class PITC(Sparse):
    """Partially independent training conditional: the covariances within blocks are exact."""

    residual = BlockResidual

    block_size: int = 100  # maximum number of sites in a block

    def site_blocks(self, x: Float[np.ndarray, "n P"]) -> list[Int[np.ndarray, " _"]]:
        """Divide the sites into blocks of neighbours."""
        return neighbour_blocks(x, self.block_size)

    @property
    def correlated_sites(self) -> int:
        """Maximum number of sites in a block with correlated residuals."""
        return self.block_size
