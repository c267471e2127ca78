"""A weak prior on the noise: an output is noise, unless its readings say otherwise.

    p(Σ) ∝ |Σ + ε|ᵃ exp(−a tr Σ)     for outputs of unit variance

Of few readings the likelihood is often highest without any noise, where it is believed to the
letter; so is a noise whose correlation is almost whole. The prior is worth a handful of
readings, is highest where all is noise, and falls towards Σ without an inverse (a Wishart
density), but only down to ε: readings that are plainly free of noise may be.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from emgpr.observations import Observations

Array = np.ndarray
Prior = Callable[[Float[Array, "*b D D"]], tuple[Float[Array, "*b"], Float[Array, "*b D D"]]]

STRENGTH = 3.0  # a
CLEAR = 1e-3  # ε


def variances(seen: Observations) -> Float[Array, " D"]:
    """Of each output as it was read; 1 where that is zero."""
    power = (seen.y**2).sum(axis=1) / np.maximum(seen.seen.sum(axis=1), 1)
    return np.where(power > 0, power, 1.0)


def noise_prior(variances: Float[Array, "*b D"], weak: bool) -> Prior:
    """The weak prior for outputs of these variances, or none: every noise as likely as another."""
    if weak:
        return WeakPrior(variances)
    return lambda noise: (np.zeros(noise.shape[:-2]), np.zeros_like(noise))


@dataclass(frozen=True)
class WeakPrior:
    """The logarithm of the prior, for outputs of these variances.

    >>> prior = WeakPrior(np.ones(1))
    >>> [float(prior(np.array([[noise]]))[0].round(2)) for noise in (0.01, 0.1, 1.0, 4.0)]
    [-13.56, -7.18, -3.0, -7.84]
    """

    variances: Float[Array, "*b D"]

    def __call__(
        self, noise: Float[Array, "*b D D"]
    ) -> tuple[Float[Array, "*b"], Float[Array, "*b D D"]]:
        """log p(Σ), but for a constant, and its derivative."""
        unit = np.eye(self.variances.shape[-1])
        kept = noise + CLEAR * self.variances[..., None] * unit
        share = np.einsum("...dd,...d->...", noise, 1 / self.variances)
        scale = np.log(self.variances).sum(axis=-1)
        value = STRENGTH * (np.linalg.slogdet(kept)[1] - scale - share)
        return np.asarray(value), STRENGTH * (
            np.linalg.inv(kept) - unit / self.variances[..., None]
        )
