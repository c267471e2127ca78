"""The noise of the tasks at one site as free parameters: log variances, and how they are joined.

Σ = LLᵀ with row i of L equal to exp(a_i/2) times the unit vector along (c_i1, …, c_i,i−1, 1):
positive definite whatever the parameters, and a_i is the logarithm of the noise variance of task
i, so that its bounds are that variance's. Independent noise has no c.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Array = np.ndarray

LEAST = 1e-12  # variance: none at all has no logarithm
STEEPEST = 10.0  # c: two noises are correlated by at most 0.995


@dataclass(frozen=True)
class NoiseParameters:
    """How Σ of D tasks is written as a row of numbers, log variances first.

    >>> as_row = NoiseParameters(2, correlated=True)
    >>> as_row.matrix(as_row.of(np.array([[1.0, 0.5], [0.5, 1.0]]))).round(12)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    D: int
    correlated: bool

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.D + (self.D * (self.D - 1) // 2 if self.correlated else 0)

    def of(self, noise: Float[Array, "D D"]) -> Float[Array, " p"]:
        """The row of a covariance."""
        noise = noise + np.diag(np.where(np.diagonal(noise) < LEAST, LEAST, 0.0))
        row = np.log(np.diagonal(noise))
        if self.correlated:
            L = np.linalg.cholesky(noise)
            tilts = L / np.diagonal(L)[:, None]
            row = np.concatenate([row, tilts[np.tril_indices(self.D, -1)]])
        return row

    def bounds(self, of_variances: Float[Array, "D 2"]) -> Float[Array, "p 2"]:
        """Bounds of the row, from those of the variances."""
        tilts = np.tile([-STEEPEST, STEEPEST], (self.size - self.D, 1))
        return np.concatenate([np.log(of_variances), tilts])

    def matrix(self, row: Float[Array, " p"]) -> Float[Array, "D D"]:
        """The covariance of a row."""
        L = self._root(row)
        return L @ L.T

    def pullback(
        self, row: Float[Array, " p"], of_noise: Float[Array, "D D"]
    ) -> Float[Array, " p"]:
        """The derivative with respect to the row, from that with respect to Σ."""
        L = self._root(row)
        of_root = 2 * of_noise @ L
        along = (of_root * L).sum(axis=1)
        if not self.correlated:
            return 0.5 * along
        scale = np.exp(0.5 * row[: self.D, None])
        across = (of_root - along[:, None] * L / scale**2) * np.diagonal(L)[:, None]
        return np.concatenate([0.5 * along, across[np.tril_indices(self.D, -1)]])

    def _root(self, row: Float[Array, " p"]) -> Float[Array, "D D"]:
        L = np.eye(self.D)
        if self.correlated:
            L[np.tril_indices(self.D, -1)] = row[self.D :]
            L /= np.linalg.norm(L, axis=1, keepdims=True)
        return np.exp(0.5 * row[: self.D, None]) * L
