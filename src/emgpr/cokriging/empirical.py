"""Empirical direct and cross-variograms of all outputs, in distance bins."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial.distance import pdist

from emgpr.latents import typical_distances
from emgpr.noise import output_variances
from emgpr.observations import Observations
from emgpr.variograms import Lags, default_kind, empirical_variogram

Array = np.ndarray

MAX_SITES = 1500  # from which variograms are computed: a million pairs
# The shortest bin contains about this number of pairs of sites or, if these are farther apart than
# neighbours usually are, fewer. In a sampling design with clusters, they determine the nugget.
CLOSEST_PAIRS = 50
LONGEST_LAG, WIDEST_SHORT_BIN = 0.5, 0.2  # relative to the extent, and to the longest lag
MIN_SHORT_BIN = 1e-6  # relative to the longest lag, if most sites are at the same location


@dataclass(frozen=True)
class EmpiricalVariograms:
    """Mean distance, semivariance and number of pairs, for each bin and pair of outputs.

    Outputs have unit variance here. If two outputs were hardly ever measured at the same sites,
    their values are not semivariances but covariances, which do not need common sites.
    """

    lag: Float[Array, "J D D"]
    value: Float[Array, "J D D"]
    n_pairs: Float[Array, "J D D"]
    is_covariance: Bool[Array, "D D"]

    @classmethod
    def measure(
        cls, observations: Observations, n_lags: int, max_lag: float | None = None
    ) -> "EmpiricalVariograms":
        """Compute the variograms; there are no bins if all sites are at one location.

        >>> x = np.arange(30.0)[:, None]
        >>> table = Observations.from_table(x, np.tile([1.0, -1.0], (30, 1)) * (-1.0) ** x)
        >>> found = EmpiricalVariograms.measure(table, 4)
        >>> found.value[0]  # at distance 1
        array([[ 2., -2.],
               [-2.,  2.]])
        """
        D = observations.n_outputs
        empty = np.zeros((0, D, D))
        if not np.ptp(observations.x, axis=0).any():
            return cls(empty, empty, empty, np.zeros((D, D), bool))
        table = observations.at(observations.subsample(MAX_SITES))
        scale = np.sqrt(output_variances(observations))
        table = Observations(table.x, table.y / scale[:, None], table.observed)
        lags = distance_bins(table.x, n_lags, max_lag)
        lag, value, n_pairs = np.zeros((3, lags.n_lags, D, D))
        is_covariance = np.zeros((D, D), bool)
        for d in range(D):
            for e in range(d + 1):
                kind = default_kind(table, d, e)
                h, semivariance, n = empirical_variogram(table, lags, d, e, kind)
                is_covariance[[d, e], [e, d]] = kind == "pseudo"
                # ½ E[(y_d(x) − y_e(x + h))²] = 1 − cov[y_d(x), y_e(x + h)] for unit variances
                found = semivariance if kind == "cross" else 1.0 - semivariance
                for part, numbers in ((lag, h), (value, found), (n_pairs, n)):
                    part[:, d, e] = part[:, e, d] = np.nan_to_num(numbers)
        # Without pairs of readings, the sill of an output and of its correlations is unknown.
        unknown = ~np.diagonal(n_pairs.any(axis=0))
        n_pairs[:, unknown], n_pairs[:, :, unknown] = 0.0, 0.0
        return cls(lag, value, n_pairs, is_covariance)

    @property
    def weights(self) -> Float[Array, "J D D"]:
        """Weights of a least-squares fit: the number of pairs divided by the distance."""
        positive = self.lag[self.lag > 0]
        shortest = positive.min(initial=np.inf) if len(positive) else 1.0
        return self.n_pairs / np.maximum(self.lag, shortest)

    def basis(self, correlation: Float[Array, "J D D"]) -> Float[Array, "J D D"]:
        """Return the values that a structure of sill 1 has, given its correlations k(h)."""
        return np.where(self.is_covariance, correlation, 1.0 - correlation)


def distance_bins(x: Float[Array, "N P"], n_lags: int, max_lag: float | None = None) -> Lags:
    """Divide the pairs of sites into bins whose edges are on a log scale.

    By default, the bins reach to half the extent, and at least to the two closest sites.

    >>> distance_bins(np.arange(100.0)[:, None], 4).edges.round(1)
    array([ 0. ,  1. ,  3.7, 13.5, 49.5])
    """
    distance = pdist(x)
    spacing, extent = typical_distances(x)
    apart = distance[distance > 0]
    closest = float(apart.min())
    if max_lag is not None and max_lag < closest:
        raise ValueError(
            f"max_lag={max_lag:g}, but the two closest sites are {closest:g} apart, so that there "
            f"are no pairs of sites for the variograms; set max_lag to at least {closest}."
        )
    longest = max(LONGEST_LAG * extent, closest) if max_lag is None else max_lag
    n = min(CLOSEST_PAIRS, len(apart)) - 1
    shortest = min(float(np.partition(apart, n)[n]), spacing, WIDEST_SHORT_BIN * longest)
    shortest = max(shortest, MIN_SHORT_BIN * longest)
    edges = np.append(0.0, np.geomspace(shortest, longest, n_lags))
    return Lags.binned(len(x), distance, edges)
