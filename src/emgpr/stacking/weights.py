"""The weights of the candidates for one pattern of known outputs, near own readings and in gaps."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

Array = np.ndarray

CANDIDATES = ("own", "joint", "regression")
# Smaller weights are set to zero. The prior alone gives a candidate that predicts badly up to 2%
# (in gaps, unless it predicts very badly, up to 8%), whose tails would dominate the variance of
# outputs with a log transform.
NEGLIGIBLE = 0.03


@dataclass(frozen=True)
class CandidateWeights:
    """Weights of the candidates at two distances from the nearest reading of the output.

    Between the `distances`, the weights change linearly with the logarithm of the distance. In a
    gap, the variances of the candidates are multiplied by `inflation`. `log_scores` holds the mean
    log density of left-out readings for each candidate, NaN if it was not computed.
    """

    near: Float[Array, " 3"]
    far: Float[Array, " 3"]
    distances: tuple[float, float] = (1.0, 1.0)
    inflation: Float[Array, " 3"] = field(default_factory=lambda: np.ones(3))
    log_scores: Float[Array, "2 3"] = field(default_factory=lambda: np.full((2, 3), np.nan))

    @classmethod
    def of_one(cls, candidate: str) -> "CandidateWeights":
        """Return weights with which only one candidate is used, at all distances.

        >>> CandidateWeights.of_one("joint").near
        array([0., 1., 0.])
        """
        weights = np.array([float(name == candidate) for name in CANDIDATES])
        return cls(weights, weights)

    @property
    def has_gaps(self) -> bool:
        """Whether the weights in gaps differ from those near readings."""
        return self.distances[1] > self.distances[0] > 0

    def far_share(self, distance: Float[Array, " M"]) -> Float[Array, " M"]:
        """Return the share of the weights for gaps, between 0 and 1, at these distances.

        >>> weights = CandidateWeights(np.eye(3)[0], np.eye(3)[2], (1.0, 100.0))
        >>> weights.far_share(np.array([0.0, 1.0, 10.0, 1e9]))
        array([0. , 0. , 0.5, 1. ])
        """
        near, far = self.distances
        if not self.has_gaps:
            return np.zeros(len(distance))
        scaled = np.log(np.maximum(distance, near) / near) / np.log(far / near)
        return np.minimum(scaled, 1.0)

    def at(self, far: Float[Array, " M"]) -> tuple[Float[Array, "3 M"], Float[Array, "3 M"]]:
        """Return weights and factors of the variances, given the share of the weights for gaps."""
        weights = (1 - far) * self.near[:, None] + far * self.far[:, None]
        return weights, 1.0 + far * (self.inflation[:, None] - 1.0)


def without_negligible(weights: Float[Array, " C"]) -> Float[Array, " C"]:
    """Set small weights to zero.

    >>> without_negligible(np.array([0.02, 0.49, 0.49])).round(3)
    array([0. , 0.5, 0.5])
    """
    kept = np.where(weights < NEGLIGIBLE, 0.0, weights)
    return kept / kept.sum()
