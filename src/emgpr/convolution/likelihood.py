"""The likelihood of all readings for a covariance that is a sum of Gaussian functions.

cov[f_d(x), f_e(z)] = Σ_r A_r[d, e] exp(−|x − z|² / (2 T_r[d, e])),   cov[y] = cov[f] + diag(noise)

The covariance of the readings consists of a block for each pair of outputs. A block depends on two
numbers for each term, A_r[d, e] and T_r[d, e], so that gradient and information matrix are computed
from sums over the block's elements. The derivative of the covariance is never formed.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from emgpr.arrays import CholeskyFactor, cholesky
from emgpr.convolution.covariance import ConvolvedCovariance
from emgpr.kernels import Pairs
from emgpr.observations import Observations

Array = np.ndarray
Blocks = dict[tuple[int, int, int], Array]  # keys: term, output, output

LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Likelihood:
    """The log-likelihood, and its derivatives with respect to A, T and the noise variances.

    A change of A_r[d, e] includes the equal change of A_r[e, d]; derivatives are in the lower
    triangles. `factor` is None if the covariance cannot be factorised.
    """

    value: float
    of_A: Float[Array, "R D D"]
    of_T: Float[Array, "R D D"]
    of_noise: Float[Array, " D"]
    gamma: Float[Array, "n 1"]
    factor: CholeskyFactor | None
    blocks: Blocks


@dataclass(frozen=True)
class ReadingPairs:
    """The readings of a table in the order of their outputs, and distances between all pairs."""

    table: Observations

    @cached_property
    def y(self) -> Float[Array, "n 1"]:
        """All readings, ordered by output and then by site."""
        return self.table.y[self.table.observed][:, None]

    @cached_property
    def rows(self) -> list[slice]:
        """The rows of each output in the vector of readings."""
        sizes = self.table.observed.sum(axis=1)
        return [slice(end - n, end) for end, n in zip(np.cumsum(sizes), sizes, strict=True)]

    @cached_property
    def squared_distances(self) -> dict[tuple[int, int], Float[Array, "n m"]]:
        """Squared distances between the readings of outputs d and e, for d ≥ e."""
        x = [self.table.x[observed] for observed in self.table.observed]
        return {
            (d, e): Pairs(x[d], x[e]).squared_distances for d in range(len(x)) for e in range(d + 1)
        }

    def evaluate(self, covariance: ConvolvedCovariance, noise: Float[Array, " D"]) -> Likelihood:
        """Return the log-likelihood and its derivatives; −inf if it cannot be computed.

        With γ = K⁻¹y, the derivative with respect to the covariance K is G = ½ (γγᵀ − K⁻¹).
        """
        blocks = self._exponentials(covariance)
        factor = cholesky(lambda: self._lower_triangle(covariance, noise, blocks))
        of_A, of_T = np.zeros_like(covariance.A), np.zeros_like(covariance.T)
        of_noise = np.zeros_like(noise)
        if np.isnan(factor.jitter):
            return Likelihood(-np.inf, of_A, of_T, of_noise, self.y, None, blocks)
        gamma = factor.solve(self.y)
        value = -0.5 * float((self.y * gamma).sum() + factor.logdet() + len(self.y) * LOG_2PI)
        inverse = factor.inverse()
        for (d, e), r2 in self.squared_distances.items():
            at = self.rows[d], self.rows[e]
            G = 0.5 * (gamma[at[0]] * gamma[at[1]].T - inverse[at])
            if d == e:
                of_noise[d] = np.trace(G)
            for r in range(len(of_A)):
                if (r, d, e) in blocks:
                    product = G * blocks[r, d, e]
                    of_A[r, d, e] = product.sum() * (1 + (d != e))
                    of_T[r, d, e] = np.vdot(product, r2) * (1 + (d != e))
        of_T *= covariance.A / (2 * covariance.T**2)
        return Likelihood(value, of_A, of_T, of_noise, gamma, factor, blocks)

    def information(
        self,
        covariance: ConvolvedCovariance,
        likelihood: Likelihood,
        dA: Float[Array, "p R D D"],
        dT: Float[Array, "p R D D"],
        dnoise: Float[Array, "p D"],
    ) -> Float[Array, "p p"]:
        """Return the average information ½ (∂_aK γ)ᵀ K⁻¹ (∂_bK γ).

        It is the mean of the observed and the expected information, apart from the second
        derivatives of K. The arguments are the derivatives of A, T and the noise variances with
        respect to each parameter.
        """
        assert likelihood.factor is not None
        gamma, slope = likelihood.gamma, covariance.A / (2 * covariance.T**2)
        products = np.zeros((len(dA), len(gamma)))  # ∂_aK γ
        for (r, d, e), block in likelihood.blocks.items():
            weighted = block * self.squared_distances[d, e]
            of_A, of_T = dA[:, r, d, e, None], (dT[:, r, d, e] * slope[r, d, e])[:, None]
            products[:, self.rows[d]] += of_A * (block @ gamma[self.rows[e]])[:, 0]
            products[:, self.rows[d]] += of_T * (weighted @ gamma[self.rows[e]])[:, 0]
            if d != e:
                products[:, self.rows[e]] += of_A * (block.T @ gamma[self.rows[d]])[:, 0]
                products[:, self.rows[e]] += of_T * (weighted.T @ gamma[self.rows[d]])[:, 0]
        for d, rows in enumerate(self.rows):
            products[:, rows] += dnoise[:, d, None] * gamma[rows, 0]
        half = likelihood.factor.half_solve(products.T)
        return 0.5 * half.T @ half

    def _exponentials(self, covariance: ConvolvedCovariance) -> Blocks:
        """Return exp(−|x − z|² / (2 T)) for each term and pair of outputs that it couples."""
        return {
            (r, d, e): np.exp(r2 * (-0.5 / covariance.T[r, d, e]))
            for (d, e), r2 in self.squared_distances.items()
            for r in range(len(covariance.T))
            if covariance.couples[r, d, e]
        }

    def _lower_triangle(
        self, covariance: ConvolvedCovariance, noise: Float[Array, " D"], blocks: Blocks
    ) -> Float[Array, "n n"]:
        """Return the covariance of the readings, valid in its lower triangle."""
        K = np.zeros((len(self.y), len(self.y)))
        for (r, d, e), block in blocks.items():
            K[self.rows[d], self.rows[e]] += covariance.A[r, d, e] * block
        K[np.diag_indices_from(K)] += np.repeat(
            noise, [part.stop - part.start for part in self.rows]
        )
        return K
