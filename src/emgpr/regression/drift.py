"""The drift of a regression: linear and smooth functions of the known outputs.

The drift is h(z)ᵀβ, where h(z) consists of a constant, the known outputs z, and values of a smooth
random function. The latter are those of a Gaussian process with an RBF kernel, given by its values
at a few centres that are spread over the training rows (Nyström's approximation).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial.distance import cdist

from emgpr.arrays import CholeskyFactor, cholesky
from emgpr.regression.rows import RegressionRows

Array = np.ndarray

MAX_CENTRES, ROWS_PER_CENTRE = 20, 5
SMOOTH_SCALE = 1.5  # length-scale, in standard deviations of the known outputs
NUGGET = 1e-6  # added to the covariance of the centres
TIE = 1e-9  # relative difference up to which two distances are equal


@dataclass(frozen=True)
class Drift:
    """The functions h(z), with standardised z divided by √k for k known outputs."""

    centres: Float[Array, "c k"]

    @classmethod
    def around(cls, rows: RegressionRows) -> "Drift":
        """Choose centres among the rows, each of them as far as possible from the others."""
        n_centres = min(MAX_CENTRES, max(1, len(rows) // ROWS_PER_CENTRE))
        return cls(rows.z[_spread(rows.z, n_centres)])

    @property
    def n_linear(self) -> int:
        """Number of known outputs, k."""
        return self.centres.shape[1]

    @property
    def n_smooth(self) -> int:
        """Number of smooth functions, one for each centre."""
        return len(self.centres)

    @cached_property
    def _root(self) -> CholeskyFactor:
        cov = _smooth_covariance(self.centres, self.centres)
        return cholesky(cov + NUGGET * np.eye(len(cov)))

    def features(self, rows: RegressionRows) -> Float[Array, "*b n q"]:
        """Return h(z) for each row: the constant, the known outputs, the smooth functions."""
        *batch, n, k = rows.z.shape
        z = rows.z.reshape(-1, k)
        smooth = self._root.half_solve(_smooth_covariance(self.centres, z)).T
        features = np.column_stack([np.ones(len(z)), z, smooth])
        return features.reshape(*batch, n, features.shape[1])


def _smooth_covariance(a: Float[Array, "n k"], b: Float[Array, "m k"]) -> Float[Array, "n m"]:
    return np.exp(-0.5 * cdist(a, b, "sqeuclidean") / SMOOTH_SCALE**2)


def _spread(z: Float[Array, "n k"], n: int) -> Int[Array, " c"]:
    """Return up to n rows: the most central one, then always the one farthest from the others."""
    chosen: list[int] = []
    distance = np.full(len(z), np.inf)
    from_centre = ((z - np.median(z, axis=0)) ** 2).sum(axis=1)
    # Two rows are equally central if there is one known output and an even number of rows. The
    # choice between them must not depend on their order.
    central = np.flatnonzero(from_centre <= (1 + TIE) * from_centre.min())
    current = int(central[np.lexsort(z[central].T)[-1]])
    while len(chosen) < n and distance[current] > 0:
        chosen.append(current)
        distance = np.minimum(distance, ((z - z[current]) ** 2).sum(axis=1))
        current = int(distance.argmax())
    return np.array(chosen, dtype=int)
