"""A weak prior that holds the sill of every output close to the variance of its readings.

The sill is the total variance of an output, Σ_q (w_q w_qᵀ)[d,d] K_q[i,i] + Σ[d,d]. If the range of
a process is not much shorter than the region, the readings determine the ratio of its variance to
its range, but hardly the variance itself. The likelihood can then be highest for a sill that is
several times as large as the variance of the readings. This hardly matters close to the readings,
but far from them, the intervals are much too wide. The log density of the prior is

    −½ κ Σ_d (log sill_d − log variance_d)²
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray

PRECISION = 3.0  # κ; the standard deviation of the log sill is 0.6


@dataclass(frozen=True)
class SillPrior:
    """Log density of the prior, given the variances of the readings of every output.

    >>> prior = SillPrior(np.ones(1))
    >>> W, noise, diagonals = np.ones((1, 1, 1)), np.zeros((1, 1)), np.ones((1, 5))
    >>> float(prior(2 * W, noise, diagonals).value) < float(prior(W, noise, diagonals).value)
    True
    """

    variances: Float[Array, " D"]
    constant: Bool[Array, " D"] | None = None  # outputs whose readings are equal have no prior
    precision: float = PRECISION

    def __call__(
        self,
        W: Float[Array, "*b Q D k"],
        noise: Float[Array, "D D"],
        diagonals: Float[Array, "*b Q n"],
    ) -> "LogPrior":
        """Return the log density for weights, noise and the diagonals of the kernel matrices."""
        B = (W**2).sum(axis=-1)
        variance = diagonals.mean(axis=-1)
        sill = np.einsum("...qd,...q->...d", B, variance) + np.diagonal(noise)
        distance = np.log(sill / self.variances)
        if self.constant is not None:
            distance = np.where(self.constant, 0.0, distance)
        of_sill = -self.precision * distance / sill
        of_variance = np.einsum("...d,...qd->...q", of_sill, B)
        return LogPrior(
            np.asarray(-0.5 * self.precision * (distance**2).sum(axis=-1)),
            2 * W * (variance[..., None] * of_sill[..., None, :])[..., None],
            of_sill[..., :, None] * np.eye(noise.shape[-1]),
            np.repeat(of_variance[..., None] / diagonals.shape[-1], diagonals.shape[-1], axis=-1),
        )


@dataclass(frozen=True)
class LogPrior:
    """The log density, and its derivatives with respect to weights, noise and diagonals."""

    value: Float[Array, "*b"]
    of_weights: Float[Array, "*b Q D k"]
    of_noise: Float[Array, "*b D D"]
    of_diagonals: Float[Array, "*b Q n"]
