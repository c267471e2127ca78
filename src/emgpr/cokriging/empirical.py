"""Empirical direct and cross-variograms of all outputs, in distance bins."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial.distance import pdist

from emgpr.latents import typical_distances
from emgpr.noise import output_variances
from emgpr.observations import Observations
from emgpr.variograms import Lags, empirical_variogram

Array = np.ndarray

MIN_COMMON_SITES = 10  # of two outputs, for a cross-variogram
MAX_SITES = 1500  # from which variograms are computed: a million pairs
# The shortest bin contains about this number of pairs of sites or, if these are farther apart than
# neighbours usually are, fewer. In a sampling design with clusters, they determine the nugget.
CLOSEST_PAIRS = 50
LONGEST_LAG, WIDEST_SHORT_BIN = 0.5, 0.2  # relative to the extent, and to the longest lag
SAME_PLACE = 1e-9  # relative to the extent; closer sites differ by rounding errors only
MIN_SHORT_BIN = 1e-6  # relative to the longest lag, if most sites are at the same location
NUGGET_ERROR = 0.1  # of a nugget without replicates, relative to the variance of an output
PRIOR_PAIRS = 5  # with the variance of the output, so that a few equal replicates are not exact


@dataclass(frozen=True)
class EmpiricalVariograms:
    """Mean distance, semivariance, number of pairs and weight, for each bin and pair of outputs.

    Outputs have unit variance here. If two outputs were hardly ever measured at the same sites,
    their values are not semivariances but covariances, which do not need common sites. If there are
    replicates, which are readings at the same location, their bin is the first, with lag 0.
    """

    lag: Float[Array, "J D D"]
    value: Float[Array, "J D D"]
    n_pairs: Float[Array, "J D D"]
    weights: Float[Array, "J D D"]  # in the sum of squares that a fit minimises
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
            return cls(empty, empty, empty, empty, np.zeros((D, D), bool))
        observations = centred(observations)
        table = observations.at(observations.subsample(MAX_SITES))
        scale = np.sqrt(output_variances(observations))
        table = Observations(table.x, table.y / scale[:, None], table.observed)
        lags = distance_bins(table.x, n_lags, max_lag)
        lag, value, n_pairs = np.zeros((3, lags.n_lags, D, D))
        is_covariance = _common_sites(table) < MIN_COMMON_SITES
        np.fill_diagonal(is_covariance, False)
        for d in range(D):
            for e in range(d + 1):
                estimate = _covariance if is_covariance[d, e] else _semivariance
                h, found, n = estimate(table, lags, d, e)
                for part, numbers in ((lag, h), (value, found), (n_pairs, n)):
                    part[:, d, e] = part[:, e, d] = np.nan_to_num(numbers)
        # Without pairs of readings, the sill of an output and of its correlations is unknown.
        unknown = ~np.diagonal(n_pairs.any(axis=0))
        n_pairs[:, unknown], n_pairs[:, :, unknown] = 0.0, 0.0
        weights = _weights(table, lags)
        if lags.edges[1] == 0:
            of_replicates = _replicate_weights(weights[1:], value[0], n_pairs[0])
            weights[0] = np.where(is_covariance, weights[0], of_replicates)
        weights = np.where(n_pairs > 0, weights, 0.0)
        return cls(lag, value, n_pairs, weights, is_covariance)

    @property
    def has_replicates(self) -> bool:
        """Whether the first bin contains the pairs of readings at the same location."""
        return bool(self.n_pairs[:1].any()) and not self.lag[0].any()

    def basis(self, correlation: Float[Array, "J D D"]) -> Float[Array, "J D D"]:
        """Return the values that a structure of sill 1 has, given its correlations k(h)."""
        return np.where(self.is_covariance, correlation, 1.0 - correlation)


def centred(observations: Observations) -> Observations:
    """Subtract the average of each output from its readings.

    >>> centred(Observations.from_table(np.zeros((2, 1)), np.array([[5.0, 1.0], [7.0, 1.0]]))).table
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    return Observations(
        observations.x,
        np.where(observations.observed, observations.y - averages(observations)[:, None], 0.0),
        observations.observed,
    )


def averages(observations: Observations) -> Float[Array, " D"]:
    """Return the average reading of each output, exactly if all its readings are equal."""
    first = observations.y[np.arange(observations.n_outputs), observations.observed.argmax(axis=1)]
    above = np.where(observations.observed, observations.y - first[:, None], 0.0)
    return first + above.sum(axis=1) / np.maximum(observations.observed.sum(axis=1), 1)


def _common_sites(table: Observations) -> Int[Array, "D D"]:
    """Return the number of sites where both outputs of each pair were measured."""
    observed = table.observed.astype(int)
    return observed @ observed.T


def _semivariance(table: Observations, lags: Lags, d: int, e: int) -> tuple[Array, Array, Array]:
    """Return the mean distance, the semivariance and the number of pairs in each bin.

    The semivariance of two outputs is √(γ_dd γ_ee), from all their readings, times the codispersion
    coefficient of the sites where both were measured. A cross-variogram from fewer sites than the
    direct variograms would contradict them, and the sills that fit best would often be those of
    outputs that determine each other exactly.
    """
    h, found, n = empirical_variogram(table, lags, d, e)
    both = table.observed[d] & table.observed[e]
    if np.array_equal(table.observed[d], table.observed[e]):
        return h, found, n
    common = Observations(table.x, np.where(both, table.y, 0.0), table.observed & both)
    ratio = np.ones(lags.n_lags)
    with np.errstate(invalid="ignore", divide="ignore"):
        for k in (d, e):
            whole, part = (empirical_variogram(t, lags, k, k)[1] for t in (table, common))
            ratio *= np.sqrt(whole / part)
        return h, found * ratio, n


def _covariance(table: Observations, lags: Lags, d: int, e: int) -> tuple[Array, Array, Array]:
    """Return the mean distance, the covariance and the number of pairs in each bin."""
    h, pseudo, n = empirical_variogram(table, lags, d, e, "pseudo")
    # ½ E[(y_d(x) − y_e(x + h))²] = 1 − cov[y_d(x), y_e(x + h)] for equal means and unit variances
    return h, 1.0 - pseudo, n


def _weights(table: Observations, lags: Lags) -> Float[Array, "J D D"]:
    """Return the weight of each bin and pair of outputs in a least-squares fit.

    It is the number of pairs of sites divided by their distance, times the shares of the sites
    where each of the two outputs was measured. With weights proportional to the numbers of pairs of
    readings, the ratio of the weights of direct and cross-variograms would differ between bins;
    where a model does not fit exactly, fitted outputs would then determine each other.
    """
    h, _, n = lags.mean(lags.distance)
    shortest = h[h > 0].min(initial=np.inf) if (h > 0).any() else 1.0
    share = table.observed.mean(axis=1)
    return (n / np.fmax(h, shortest))[:, None, None] * np.outer(share, share)


def _replicate_weights(
    others: Float[Array, "J D D"], value: Float[Array, "D D"], n_pairs: Float[Array, "D D"]
) -> Float[Array, "D D"]:
    """Return the weights of replicates, whose semivariances are the nugget, given all others.

    The nugget that follows from the other bins depends on the shape of the structures, however many
    pairs they contain. Its variance is assumed to be NUGGET_ERROR², and that of γ(0) from n pairs
    is 2γ(0)²/n; weights are proportional to the inverse of these. For γ(0), PRIOR_PAIRS with the
    variance of the output are added.
    """
    n, total = np.diagonal(n_pairs), np.diagonal(others.sum(axis=0))
    noise = (n * np.diagonal(value) + PRIOR_PAIRS) / (n + PRIOR_PAIRS)
    weights = total * NUGGET_ERROR**2 * n / (2.0 * noise**2)
    return np.sqrt(np.outer(weights, weights))


def distance_bins(x: Float[Array, "N P"], n_lags: int, max_lag: float | None = None) -> Lags:
    """Divide the pairs of sites into bins whose edges are on a log scale.

    By default, the bins reach to half the extent, and at least to the two closest sites. Pairs of
    sites at the same location, if there are any, have a bin of their own before the others.

    >>> distance_bins(np.arange(100.0)[:, None], 4).edges.round(1)
    array([ 0. ,  1. ,  3.7, 13.5, 49.5])
    >>> distance_bins(np.arange(100.0)[:, None] // 2, 4).edges.round(1)
    array([ 0. ,  0. ,  1. ,  2.9,  8.4, 24.5])
    """
    distance = pdist(x)
    spacing, extent = typical_distances(x)
    distance[distance <= SAME_PLACE * extent] = 0.0
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
    if len(apart) < len(distance):
        edges = np.append(0.0, edges)
    return Lags.binned(len(x), distance, edges)
