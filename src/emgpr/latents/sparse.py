"""Step 1 with m inducing points, at a cost of O(n m²) per evaluation.

Q = K_nm K_mm⁻¹ K_mn is the covariance explained by the m inducing points. The objectives are

    log N(y | 0, Q + Λ)          DTC:  Λ = σ²I
                                 FITC: Λ = diag(K − Q) + σ²I
                                 PITC: Λ = K − Q within blocks of neighbours, + σ²I
    … − tr(K − Q) / 2σ²          VFE, whose Λ is that of DTC

Only VFE is a bound: it never exceeds the log-likelihood, and equals it if all sites are inducing
points. The other objectives are log-likelihoods of different models, and can be larger or smaller.

The sites are processed in blocks, and the blocks in parts that workers can evaluate
(`inducing_sums`).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import to_device
from emgpr.latents.base import Work
from emgpr.latents.inducing import inducing_points, neighbour_blocks
from emgpr.latents.inducing_sums import factorise_inner, log_likelihoods_of_parts
from emgpr.latents.maximum_likelihood import LikelihoodLearner, search_work
from emgpr.latents.residual_covariance import (
    BlockResidual,
    DiagonalResidual,
    PenalisedResidual,
    ResidualCovariance,
    WhiteResidual,
)
from emgpr.observations import Observations
from emgpr.optimize import Objective
from emgpr.parallel import Execution

SITES_PER_BLOCK = 1024  # number of sites processed together
# Number of sites in a part for a worker, and maximum number of parts. More sites are divided into
# larger parts, because every part returns an m × m matrix.
SITES_PER_PART, MAX_PARTS = 4096, 64
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

    def n_parts(self, n: int) -> int:
        """Return the number of parts into which workers can divide the sums over n readings.

        >>> [VFE().n_parts(n) for n in (4096, 20_000, 10**7)]
        [1, 5, 64]
        """
        return min(MAX_PARTS, -(-n // SITES_PER_PART))

    def objective(
        self,
        table: Observations,
        kernel: Kernel,
        outputs: Int[np.ndarray, " m"],
        device: str = "cpu",
    ) -> Objective:
        """Return the negative approximate log-likelihood as a function of the parameters."""
        return self.divided_objective(table, kernel, outputs, Execution(device, n_jobs=1))

    def divided_objective(
        self,
        table: Observations,
        kernel: Kernel,
        outputs: Int[np.ndarray, " m"],
        execution: Execution,
    ) -> Objective:
        """Return the objective, with its sums divided among the workers of `execution`."""
        points = to_device(inducing_points(table.x, self.n_inducing), execution.device)
        blocks = [table.at(block).to(execution.device) for block in self.site_blocks(table.x)]
        n_parts = min(len(blocks), self.n_parts(table.n_sites))
        ends = np.linspace(0, len(blocks), n_parts + 1).astype(int).tolist()
        parts = {
            d: [
                [(block.x, block.y[d]) for block in blocks[start:end]]
                for start, end in pairwise(ends)
            ]
            for d in set(outputs.tolist())
        }

        def objective(
            params: Float[np.ndarray, "b p"], which: Int[np.ndarray, " b"]
        ) -> tuple[np.ndarray, np.ndarray]:
            inner = [factorise_inner(kernel, row, points) for row in params]
            chosen = [parts[d] for d in outputs[which].tolist()]
            fits = log_likelihoods_of_parts(inner, chosen, self.residual, execution)
            values, gradients = np.full(len(params), np.inf), np.zeros_like(params)
            for i, fit in enumerate(fits):
                if fit is not None:
                    values[i], gradients[i] = -fit[0], -fit[1]
            return values, gradients

        return objective

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
        return Work(method, m, 1, EVALUATIONS, parts, ((m, 1),), entries, self.n_parts(n))

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
