"""Empirical variograms of outputs and of pairs of outputs, and those implied by a model.

The variogram γ(h) of one output is half the mean squared difference between sites at distance h.
There are two generalisations to a pair of outputs l and m in geostatistics:

- The cross-variogram is γ_lm(h) = ½ E[(z_l(x) − z_l(x+h)) (z_m(x) − z_m(x+h))]. It needs sites
  where both outputs were measured. The model implies Σ_q B_q[l,m] (k_q(0) − k_q(h)) + Σ[l,m].
- The pseudo cross-variogram is ½ E[(z_l(x) − z_m(x+h))²]. It needs no sites with both outputs, but
  the outputs must have the same units and equal means, as standardised outputs have. The model
  implies ½ (S[l,l] + S[m,m]) − Σ_q B_q[l,m] k_q(h), where S is the covariance of the readings of
  all outputs at one site.

Variograms implied by a model are averaged over the pairs of sites in each distance bin, so they are
also valid for anisotropic and non-stationary kernels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial.distance import pdist
from sklearn.gaussian_process.kernels import Kernel

from emgpr.kernels import kernel_matrix
from emgpr.observations import Observations

Array = np.ndarray
Kind = Literal["cross", "pseudo"]

MIN_FAR_PAIRS = 200  # at large lags, for a comparison of the model with the readings
MIN_SHARED_SITES = 20  # minimum number of sites with both outputs for a cross-variogram


@dataclass(frozen=True)
class Lags:
    """All pairs of N sites (i < j) and their distance bins 0 to J − 1, or J if beyond the last."""

    n_sites: int
    distance: Float[Array, " pairs"]
    bin: Int[Array, " pairs"]
    edges: Float[Array, " edges"]

    @classmethod
    def between(
        cls, x: Float[Array, "N P"], n_lags: int = 15, max_lag: float | None = None
    ) -> "Lags":
        """Divide the pairs of sites into distance bins of equal width up to `max_lag`.

        The default of `max_lag` is half the largest distance.
        """
        distance = pdist(x)
        if max_lag is None:
            max_lag = 0.5 * distance.max(initial=0.0)
        if n_lags < 1 or not max_lag > 0:
            raise ValueError(
                f"n_lags={n_lags}, max_lag={max_lag:g}; a variogram needs at least one bin of "
                "positive width and sites at different locations."
            )
        return cls.binned(len(x), distance, np.linspace(0.0, float(max_lag), n_lags + 1))

    @classmethod
    def binned(
        cls, n_sites: int, distance: Float[Array, " pairs"], edges: Float[Array, " edges"]
    ) -> "Lags":
        """Divide pairs of sites with these distances into bins with these edges, from 0 upwards."""
        bin = np.clip(np.searchsorted(edges, distance, side="left") - 1, 0, None)
        return cls(n_sites, distance, bin, edges)

    @property
    def n_lags(self) -> int:
        """Number of bins, J."""
        return len(self.edges) - 1

    @property
    def ends(self) -> tuple[Int[Array, " pairs"], Int[Array, " pairs"]]:
        """Row numbers of the two sites in each pair."""
        i, j = np.triu_indices(self.n_sites, k=1)
        return i, j

    def mean(
        self, values: Float[Array, " pairs"]
    ) -> tuple[Float[Array, " J"], Float[Array, " J"], Int[Array, " J"]]:
        """Return the mean distance, the mean value and the number of pairs in each bin.

        Pairs without a value (NaN) are ignored. The means of an empty bin are NaN.
        """
        valid = ~np.isnan(values)
        bins, J = self.bin[valid], self.n_lags
        n = np.bincount(bins, minlength=J + 1)[:J]
        totals = (
            np.bincount(bins, weights=part[valid], minlength=J + 1)[:J]
            for part in (self.distance, values)
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            lag, value = (total / n for total in totals)
        return lag, value, n


def default_kind(table: Observations, first: int, second: int) -> Kind:
    """Return "cross", or "pseudo" if two outputs were measured at too few common sites."""
    shared = int((table.observed[first] & table.observed[second]).sum())
    return "cross" if first == second or shared >= MIN_SHARED_SITES else "pseudo"


def empirical_variogram(
    table: Observations, lags: Lags, first: int, second: int, kind: Kind = "cross"
) -> tuple[Float[Array, " J"], Float[Array, " J"], Int[Array, " J"]]:
    """Return the mean distance, the semivariance and the number of pairs in each bin.

    >>> sites = np.array([[0.0], [1.0], [2.0]])
    >>> table = Observations.from_table(sites, np.array([[1.0], [2.0], [5.0]]))
    >>> empirical_variogram(table, Lags.between(sites, 1, max_lag=1.0), 0, 0)  # (1² + 3²)/4
    (array([1.]), array([2.5]), array([2]))
    """
    (i, j), y = lags.ends, np.where(table.observed, table.y, np.nan)
    a, b = y[first], y[second]
    if kind == "cross":
        return lags.mean(0.5 * (a[i] - a[j]) * (b[i] - b[j]))
    # A pair of sites is used in each direction for which both readings exist.
    forward, backward = (0.5 * (u - v) ** 2 for u, v in ((a[i], b[j]), (a[j], b[i])))
    lag, value, n = lags.mean(forward)
    other_lag, other_value, m = lags.mean(backward)
    total = np.maximum(n + m, 1)
    lag, value = (
        np.where(n + m == 0, np.nan, (np.nan_to_num(p) * n + np.nan_to_num(q) * m) / total)
        for p, q in ((lag, other_lag), (value, other_value))
    )
    return lag, value, n + m


def far_ratio(
    pairs: Int[Array, " J"], empirical: Float[Array, " J"], model: Float[Array, " J"]
) -> float:
    """Return the ratio of the model's semivariance to that of the readings, at large lags.

    Both are averaged over the farther half of the bins, weighted by their numbers of pairs. The
    result is NaN if there are too few pairs there for a comparison.

    >>> pairs, empirical = np.array([500, 300, 100, 100]), np.array([0.2, 0.8, 1.0, 1.0])
    >>> far_ratio(pairs, empirical, np.array([0.2, 1.0, 2.5, 3.5]))
    3.0
    """
    far = slice(len(pairs) // 2, None)
    weights = np.where(np.isfinite(empirical * model), pairs, 0)[far]
    if weights.sum() < MIN_FAR_PAIRS:
        return float("nan")
    total, expected = (np.nan_to_num(part[far]) @ weights for part in (empirical, model))
    return float(expected / total) if total > 0 else float("nan")


@dataclass(frozen=True)
class ModelVariogram:
    """Covariance and semivariance of every latent, averaged over the pairs in each bin."""

    lag: Float[Array, " J"]
    covariance: Float[Array, "Q J"]  # mean of k_q(x, x')
    semivariance: Float[Array, "Q J"]  # mean of ½ k_q(x, x) + ½ k_q(x', x') − k_q(x, x')

    @classmethod
    def from_kernels(
        cls, kernels: Sequence[Kernel], x: Float[Array, "N P"], lags: Lags
    ) -> "ModelVariogram":
        """Average the kernels over the pairs of sites in each bin."""
        i, j = lags.ends
        covariance, semivariance = [], []
        for kernel in kernels:
            k, variance = kernel_matrix(kernel, x)[i, j], kernel.diag(x)
            covariance.append(lags.mean(k)[1])
            semivariance.append(lags.mean(0.5 * (variance[i] + variance[j]) - k)[1])
        return cls(lags.mean(lags.distance)[0], np.array(covariance), np.array(semivariance))

    def expected(
        self,
        B: Float[Array, "Q D D"],
        noise: Float[Array, "D D"],
        first: int,
        second: int,
        kind: Kind = "cross",
    ) -> Float[Array, " J"]:
        """Return the variogram that the model implies for a pair of outputs, in each bin."""
        shared = B[:, first, second]
        if kind == "cross":
            return shared @ self.semivariance + noise[first, second]
        variance = self.covariance + self.semivariance  # variances of the latents
        mean_B = 0.5 * (B[:, first, first] + B[:, second, second])
        nugget = 0.5 * (noise[first, first] + noise[second, second])
        return mean_B @ variance + nugget - shared @ self.covariance
