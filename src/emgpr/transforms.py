"""From the user's outputs to standardised ones, and how a belief travels back."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Array = np.ndarray

TRANSFORMS = (None, "log")


@dataclass(frozen=True)
class OutputScale:
    """y ↦ (y − shift)/scale, of log y if `log`: what the model sees is near N(0, 1).

    >>> scale = OutputScale.learned(np.array([[1.0], [np.e**2]]), log=True, normalize=True)
    >>> scale.forward(np.array([[np.e]]))
    array([[0.]])
    """

    log: bool
    shift: Float[Array, " D"]
    scale: Float[Array, " D"]

    @classmethod
    def learned(
        cls,
        Y: Float[Array, "N D"],
        *,
        log: bool,
        normalize: bool,
        names: Sequence[str] | None = None,
    ) -> "OutputScale":
        """The scale that gives the measured values of each output mean 0 and variance 1."""
        D = Y.shape[1]
        if log:
            Y = _logged(Y, names or [str(d) for d in range(D)])
        if not normalize:
            return cls(log, np.zeros(D), np.ones(D))
        shift, scale = np.nanmean(Y, axis=0), np.nanstd(Y, axis=0)
        # A spread that is only rounding is no spread.
        flat = scale <= 1e-12 * np.maximum(np.abs(shift), np.finfo(float).tiny)
        return cls(log, shift, np.where(flat, 1.0, scale))

    def forward(self, Y: Float[Array, "N D"], names: Sequence[str] | None = None) -> Array:
        """The user's outputs, standardised."""
        if self.log:
            Y = _logged(Y, names or [str(d) for d in range(Y.shape[1])])
        return (Y - self.shift) / self.scale

    def back(
        self, mean: Float[Array, "M D"], cov: Float[Array, "M D D"]
    ) -> tuple[Float[Array, "M D"], Float[Array, "M D D"]]:
        """Median and covariance on the user's scale of a Gaussian belief.

        Through the log the median is exp(mean) and the covariance that of the
        lognormal: e^(μ_i + μ_j + (v_ii + v_jj)/2) (e^v_ij − 1).
        """
        centre = mean * self.scale + self.shift
        cov = cov * self.scale[:, None] * self.scale
        if not self.log:
            return centre, cov
        half = centre + 0.5 * np.einsum("mdd->md", cov)
        return np.exp(centre), np.exp(half[:, :, None] + half[:, None, :]) * np.expm1(cov)


def _logged(Y: Float[Array, "N D"], names: Sequence[str]) -> Float[Array, "N D"]:
    for d, name in enumerate(names):
        rows = np.flatnonzero(Y[:, d] <= 0)
        if len(rows):
            raise ValueError(
                f'transform="log" needs positive values: output {name!r} has {len(rows)} that '
                f"are zero or negative, first in rows {rows[:5].tolist()}. Replace values below "
                "a detection limit, mark them NaN, or use transform=None."
            )
    return np.log(Y)
