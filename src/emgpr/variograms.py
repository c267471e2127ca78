"""Variograms of pairs of outputs: what the readings show, and what the model expects.

Of one output, γ(h) is half the mean square of differences between sites h apart. Of two,
geostatisticians use one of these, both here on the scale that is given:

- cross-variogram: γ_lm(h) = ½ E[(z_l(x) − z_l(x+h)) (z_m(x) − z_m(x+h))]. Needs sites where both
  outputs were measured. The model's is Σ_q B_q[l,m] (k_q(0) − k_q(h)) + Σ[l,m].
- pseudo cross-variogram: ½ E[(z_l(x) − z_m(x+h))²]. Needs no site with both, but outputs in the
  same units and with equal means, as standardised ones are. The model's is
  ½ (S[l,l] + S[m,m]) − Σ_q B_q[l,m] k_q(h), where S is the covariance of the readings of a site.

The model's are averaged over the pairs of sites in each bin, so they hold for kernels that
have a direction, or are not stationary, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import Kernel

from emgpr.kernels import matrix
from emgpr.observations import Observations

Array = np.ndarray
Kind = Literal["cross", "pseudo"]

COMMON = 20  # sites with both outputs, for a cross-variogram that says anything


@dataclass(frozen=True)
class Lags:
    """All pairs of N sites (i < j), each in the bin of its distance; bin J is beyond the last."""

    n_sites: int
    distance: Float[Array, " pairs"]
    bin: Int[Array, " pairs"]
    edges: Float[Array, " edges"]

    @classmethod
    def between(
        cls, x: Float[Array, "N P"], n_lags: int = 15, max_lag: float | None = None
    ) -> "Lags":
        """Bins of equal width up to `max_lag`: half of the largest distance if it is not given."""
        distance = pdist(x)
        longest = distance.max(initial=0.0)
        reach = 0.5 * longest if max_lag is None else float(max_lag)
        if n_lags < 1 or not reach > 0:
            raise ValueError(
                f"{n_lags} lags up to {reach:g}: a variogram needs at least one bin, and sites "
                "that lie apart."
            )
        return cls.binned(len(x), distance, np.linspace(0.0, reach, n_lags + 1))

    @classmethod
    def binned(
        cls, n_sites: int, distance: Float[Array, " pairs"], edges: Float[Array, " edges"]
    ) -> "Lags":
        """Pairs at these distances in bins between these edges, the first of which is 0."""
        within = np.clip(np.searchsorted(edges, distance, side="left") - 1, 0, None)
        return cls(n_sites, distance, within, edges)

    @property
    def n_lags(self) -> int:
        """J."""
        return len(self.edges) - 1

    @property
    def ends(self) -> tuple[Int[Array, " pairs"], Int[Array, " pairs"]]:
        """The two sites of each pair."""
        i, j = np.triu_indices(self.n_sites, k=1)
        return i, j

    def mean(
        self, values: Float[Array, " pairs"]
    ) -> tuple[Float[Array, " J"], Float[Array, " J"], Int[Array, " J"]]:
        """In each bin, of pairs that have a value: mean distance, mean (NaN if none), number."""
        made = ~np.isnan(values)
        own, J = self.bin[made], self.n_lags
        n = np.bincount(own, minlength=J + 1)[:J]
        totals = (
            np.bincount(own, weights=part[made], minlength=J + 1)[:J]
            for part in (self.distance, values)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            lag, value = (total / n for total in totals)
        return lag, value, n


def kind_of(seen: Observations, first: int, second: int) -> Kind:
    """What can be worked out: cross, unless hardly any site has both outputs."""
    both = int((seen.seen[first] & seen.seen[second]).sum())
    return "cross" if first == second or both >= COMMON else "pseudo"


def empirical(
    seen: Observations, lags: Lags, first: int, second: int, kind: Kind = "cross"
) -> tuple[Float[Array, " J"], Float[Array, " J"], Int[Array, " J"]]:
    """Mean distance, semivariance and number of pairs of sites in each bin.

    >>> sites = np.array([[0.0], [1.0], [2.0]])
    >>> table = Observations.from_table(sites, np.array([[1.0], [2.0], [5.0]]))
    >>> empirical(table, Lags.between(sites, 1, max_lag=1.0), 0, 0)  # (1² + 3²)/4
    (array([1.]), array([2.5]), array([2]))
    """
    (i, j), y = lags.ends, np.where(seen.seen, seen.y, np.nan)
    a, b = y[first], y[second]
    if kind == "cross":
        return lags.mean(0.5 * (a[i] - a[j]) * (b[i] - b[j]))
    # A pair of sites counts in both directions, where both can be had.
    there, back = (0.5 * (u - v) ** 2 for u, v in ((a[i], b[j]), (a[j], b[i])))
    lag, one, n = lags.mean(there)
    again, other, m = lags.mean(back)
    total = np.maximum(n + m, 1)
    empty = n + m == 0
    lag, value = (
        (np.nan_to_num(p) * n + np.nan_to_num(q) * m) / total
        for p, q in ((lag, again), (one, other))
    )
    return np.where(empty, np.nan, lag), np.where(empty, np.nan, value), n + m


@dataclass(frozen=True)
class Structure:
    """Of every latent, over the pairs of sites in each bin: k_q, and how much it has fallen."""

    lag: Float[Array, " J"]
    covariance: Float[Array, "Q J"]  # mean of k_q(x, x')
    fall: Float[Array, "Q J"]  # mean of ½ k_q(x, x) + ½ k_q(x', x') − k_q(x, x')

    @classmethod
    def of(cls, kernels: Sequence[Kernel], x: Float[Array, "N P"], lags: Lags) -> "Structure":
        """Of these sites."""
        i, j = lags.ends
        covariance, fall = [], []
        for kernel in kernels:
            k, own = matrix(kernel, x)[i, j], kernel.diag(x)
            covariance.append(lags.mean(k)[1])
            fall.append(lags.mean(0.5 * (own[i] + own[j]) - k)[1])
        return cls(lags.mean(lags.distance)[0], np.array(covariance), np.array(fall))

    def expected(
        self,
        B: Float[Array, "Q D D"],
        noise: Float[Array, "D D"],
        first: int,
        second: int,
        kind: Kind = "cross",
    ) -> Float[Array, " J"]:
        """What the model expects of a pair of outputs in each bin."""
        shared = B[:, first, second]
        if kind == "cross":
            return shared @ self.fall + noise[first, second]
        spread = self.covariance + self.fall  # the kernels' variances at these sites
        own = 0.5 * (B[:, first, first] + B[:, second, second])
        nugget = 0.5 * (noise[first, first] + noise[second, second])
        return own @ spread + nugget - shared @ self.covariance
