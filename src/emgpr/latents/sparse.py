"""Step 1 by inducing points: the readings are joined through m places, O(n m²) a step.

With Q = K_nm K_mm⁻¹ K_mn, what the m places know of the n readings,

    log N(y | 0, Q + Λ)          DTC:  Λ = σ²I
                                 FITC: Λ = diag(K − Q) + σ²I
                                 PITC: Λ = K − Q within blocks of neighbours, + σ²I
    … − tr(K − Q) / 2σ²          VFE, whose Λ is DTC's

Only VFE is a bound: it is never above the likelihood, and meets it when the places are the sites.
The others are likelihoods of another model, and may be above it or below.

With LLᵀ = K_mm, Φ = K_nm L⁻ᵀ, B = I + ΦᵀΛ⁻¹Φ and a = B⁻¹ΦᵀΛ⁻¹y, the inverse of C = Q + Λ is
never formed: γ = C⁻¹y = Λ⁻¹(y − Φa) and C⁻¹Φ = Λ⁻¹ΦB⁻¹. The sites go by in runs, twice: once for B
and a, once for the gradient, which the kernels' pullbacks contract.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import Array, diagonal, factor, fetch, like, namespace, put
from emgpr.covariance.dense import LOG_2PI
from emgpr.kernels import Pairs, evaluate
from emgpr.latents.climb import Climb
from emgpr.latents.inducing import blocks, inducing_points
from emgpr.latents.prior import noise_prior, variances
from emgpr.latents.rest import Block, Diagonal, Penalised, Rest, Run, White
from emgpr.observations import Observations
from emgpr.optimize import Objective

RUN = 1024  # sites at a time
NUGGET = 1e-8  # of the mean variance, on the diagonal of K_mm: smooth kernels are all but singular


@dataclass(frozen=True)
class Sparse(Climb):
    """Inducing points, spread over the sites by k-means++ and held; each kind has its Λ."""

    n_inducing: int = 300

    @abstractmethod
    def rest(self, run: Run) -> Rest:
        """Λ of a run of sites."""

    def runs(self, x: Float[np.ndarray, "n P"]) -> list[Int[np.ndarray, " _"]]:
        """The sites, in runs whose readings Λ does not join."""
        return np.array_split(np.arange(len(x)), -(-len(x) // RUN))

    def loss(
        self,
        table: Observations,
        kernel: Kernel,
        whose: Int[np.ndarray, " m"],
        *,
        weak_prior: bool = False,
        device: str = "cpu",
    ) -> Objective:
        """What stands for the negative log-likelihood, less the logarithm of the prior."""
        points = put(inducing_points(table.x, self.n_inducing), device)
        runs = [table.at(run).on(device) for run in self.runs(table.x)]
        power = variances(table)[:, None]

        def loss(
            params: Float[np.ndarray, "b p"], which: Int[np.ndarray, " b"]
        ) -> tuple[np.ndarray, np.ndarray]:
            values, slopes = np.empty(len(params)), np.empty_like(params)
            for i, (row, d) in enumerate(zip(params, whose[which].tolist(), strict=True)):
                value, slope = self._evaluate(kernel, row, points, runs, d)
                noise = np.exp(row[-1])
                believed, further = noise_prior(power[d], weak_prior)(np.array([[noise]]))
                slope[-1] += further[0, 0] * noise
                values[i], slopes[i] = -(value + believed), -slope
            return values, slopes

        return loss

    def _evaluate(
        self,
        kernel: Kernel,
        row: Float[np.ndarray, " p"],
        points: Float[Array, "m P"],
        runs: list[Observations],
        d: int,
    ) -> tuple[float, Float[np.ndarray, " p"]]:
        """The logarithm for task d, and its slope along (log hyper-parameters, log noise)."""
        xp, theta, noise = namespace(points), like(row[:-1], points), float(np.exp(row[-1]))
        K, pull = evaluate(kernel, theta, Pairs(points))
        K = K + 0.0  # a constant kernel's is not to be written to
        m = len(K)
        there = diagonal(K)
        there += NUGGET * xp.mean(there)
        L = factor(K)
        if bool(xp.isnan(L.jitter)):
            return -np.inf, np.zeros_like(row)
        one = like(np.eye(m), points)
        root = L.half_solve(one)  # L⁻¹

        def seen_from(x: Float[Array, "c P"]) -> Run:
            cross, pull_cross = evaluate(kernel, theta, Pairs(x, points))
            return Run(kernel, theta, noise, x, cross @ root.T, pull_cross)

        B, b, value = one, xp.zeros_like(points[:, 0]), 0.0
        for table in runs:
            run, y = seen_from(table.x), table.y[d]
            rest = self.rest(run)
            S = rest.solve(run.features)
            B = B + run.features.T @ S
            b = b + S.T @ y
            value += rest.penalty - 0.5 * float(y @ rest.solve(y[:, None])[:, 0] + rest.logdet())
        L_B = factor(B)
        if bool(xp.isnan(L_B.jitter)):
            return -np.inf, np.zeros_like(row)
        a, inverse = L_B.solve(b[:, None]), L_B.inverse()
        n = sum(table.n_sites for table in runs)
        value += 0.5 * float(b @ a[:, 0] - L_B.logdet() - n * LOG_2PI)

        slope, joined = np.zeros_like(row), xp.zeros_like(B)
        for table in runs:
            run, y = seen_from(table.x), table.y[d][:, None]
            rest = self.rest(run)
            S = rest.solve(run.features)
            gamma = rest.solve(y - run.features @ a)
            halved = S @ inverse
            own = rest.slopes(gamma, S, halved)
            # Of the slope along Q, G Φ L⁻¹, and what Λ takes from it or adds.
            T = (0.5 * (gamma @ a.T - halved) + own.along_features) @ root
            joined = joined + run.features.T @ T
            slope[:-1] += fetch(run.pull(2 * T)) + own.of_theta
            slope[-1] += own.of_noise * noise
        of_K = -root.T @ joined
        diagonal(of_K)[...] += NUGGET * xp.mean(diagonal(of_K))
        slope[:-1] += fetch(pull(of_K))
        return value, slope


@dataclass(frozen=True)
class DTC(Sparse):
    """The deterministic training conditional: all that the points do not know is noise."""

    def rest(self, run: Run) -> Rest:
        """σ²I."""
        return White(run)


@dataclass(frozen=True)
class VFE(Sparse):
    """The variational free energy: a bound, which pays for what the points do not know."""

    def rest(self, run: Run) -> Rest:
        """σ²I, at a price."""
        return Penalised(run)


@dataclass(frozen=True)
class FITC(Sparse):
    """The fully independent training conditional: each reading keeps its own variance."""

    def rest(self, run: Run) -> Rest:
        """diag(K − Q) + σ²I."""
        return Diagonal(run)


@dataclass(frozen=True)
class PITC(Sparse):
    """The partially independent one: neighbours, in blocks, are joined as they are."""

    block_size: int = 100

    def runs(self, x: Float[np.ndarray, "n P"]) -> list[Int[np.ndarray, " _"]]:
        """Blocks of neighbours."""
        return blocks(x, self.block_size)

    def rest(self, run: Run) -> Rest:
        """K − Q of the block, and σ²I."""
        return Block(run)
