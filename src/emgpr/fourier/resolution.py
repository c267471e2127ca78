"""Choice of features: the size of the periodic box and the frequencies.

The box repeats periodically, so it must exceed the region by the distance at which covariances
become negligible. Frequencies are added in descending order of their largest contribution to the
variance of an output, until the variance of every latent process at the remaining frequencies is
small enough. If the ranges of the latent processes are very different, those with a short range
use only every n-th frequency along each input. The box must be wide enough for the longest range;
the short ranges would need nᴾ times as many features if they used all of its frequencies.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from sklearn.gaussian_process.kernels import Kernel

from emgpr.fourier.features import FAR, FourierFeatures
from emgpr.fourier.grid import FrequencyGrid
from emgpr.kernels import kernel_matrix

Array = np.ndarray

# Boxes are tried for these covariances between the region and its periodic copy, given as shares of
# an output's variance. The cost is the effect of such a covariance on predictions, relative to that
# of an equal variance left out. It was measured; for short ranges, it is smaller.
COPY_COVARIANCES, COPY_COST = (1e-4, 1e-3, 1e-2, 3e-2), 0.05
# Largest margin of the box around the region, as a multiple of the region's extent. A larger margin
# is not needed, since components with a longer range are trends, which few frequencies represent
# well. The second value applies if latent processes with a short range skip frequencies.
MAX_MARGIN, MAX_MARGIN_STRIDED = 2.0, 6.0
GRID_ROOM = 1.25  # harmonics on the grid / harmonics needed, in case length-scales become shorter
MAX_SUMS = 60_000  # number of sums for every set of outputs measured together
MAX_CANDIDATES = 2**21  # number of frequencies from which features are chosen


@dataclass(frozen=True)
class Resolution:
    """Criteria for choosing features: how much variance they may leave out, and their number."""

    # Up to `n_max` features are used if necessary to leave out at most the share `tolerance` of an
    # output's variance, and up to `n_affordable` features to leave out at most the share `ideal`.
    tolerance: float
    ideal: float
    n_affordable: int
    n_max: int


@dataclass(frozen=True)
class FeatureChoice:
    """Choice of features for latent processes with given kernels.

    `shares` holds, for each latent process, its largest share in the variance of any output.
    """

    kernels: Sequence[Kernel]
    shares: Float[Array, " Q"]
    resolution: Resolution

    def for_region(self, low: Float[Array, " P"], high: Float[Array, " P"]) -> FourierFeatures:
        """Return the best features for the region between two corners (the fewest, if tied)."""
        extent = high - low
        candidates: dict[tuple[float, int], FourierFeatures] = {}
        for covariance in COPY_COVARIANCES:
            for period, strides in _boxes(extent, self._ranges(extent, covariance)):
                features = self._on_growing_grid(low, period, strides)
                if features is not None:
                    cost = max(self._truncated_share(features), self.resolution.ideal)
                    cost += COPY_COST * self._copy_covariance(features, extent)
                    candidates[cost, features.n_functions] = features
        return candidates[min(candidates)]

    def on_grid(self, grid: FrequencyGrid, strides: tuple[int, ...]) -> FourierFeatures:
        """Return the grid's features with the most variance, as many as needed and allowed."""
        full = FourierFeatures(grid, _half_grid(grid.max_harmonic), strides)
        scale = self.shares / kernel_variances(self.kernels, grid.n_inputs)
        variances = 2 * full.variances(self.kernels) * scale[:, None]
        # Frequency zero always comes first. Lower frequencies come first if variances are equal.
        order = np.lexsort([(full.frequencies**2).sum(axis=1), -variances.max(axis=0)])
        order = np.concatenate([[0], order[order != 0]])
        # Only frequencies on the grid are counted here, since no others are available.
        total = variances.sum(axis=1)[:, None]
        left = (total - np.cumsum(variances[:, order], axis=1)).max(axis=0)
        needed, ideal = (
            int(np.argmax(left <= share)) + 1
            for share in (self.resolution.tolerance, self.resolution.ideal)
        )
        n_affordable, n_max = (
            (n + 1) // 2 for n in (self.resolution.n_affordable, self.resolution.n_max)
        )
        n = max(1, min(ideal, max(needed, n_affordable), n_max))
        return FourierFeatures(grid, full.m[order[:n]], strides)

    def _on_growing_grid(
        self, low: Float[Array, " P"], period: Float[Array, " P"], strides: tuple[int, ...]
    ) -> FourierFeatures | None:
        """Enlarge a grid until it suffices or reaches its limit, and return features on it."""
        harmonics = np.full(len(low), 2 * max(strides))
        best = None
        while True:
            grid = FrequencyGrid(
                tuple(low.tolist()), tuple(period.tolist()), tuple(harmonics.tolist())
            )
            if best is not None and np.prod(grid.shape, dtype=float) > MAX_CANDIDATES:
                return best
            features = self.on_grid(grid, strides)
            used = np.abs(features.m).max(axis=0)
            room = tuple(np.ceil(GRID_ROOM * used).astype(int).tolist())
            grid = replace(grid, max_harmonic=room)
            if np.prod(grid.doubled.shape) > MAX_SUMS:
                return best
            best = FourierFeatures(grid, features.m, strides)
            left, n = self._truncated_share(best), best.n_functions + 2
            resolution = self.resolution
            needs_more = (left > resolution.ideal and n <= resolution.n_affordable) or (
                left > resolution.tolerance and n <= resolution.n_max
            )
            grows = (used > harmonics - max(strides)) | needs_more
            if not grows.any():
                return best
            harmonics = np.where(grows, np.ceil(1.5 * harmonics), harmonics).astype(int)

    def _truncated_share(self, features: FourierFeatures) -> float:
        """Return the largest share of an output's variance that the features leave out."""
        left = features.truncated_variances(self.kernels)
        variances = kernel_variances(self.kernels, features.grid.n_inputs)
        return float((self.shares * (left / variances)).max())

    def _copy_covariance(self, features: FourierFeatures, extent: Float[Array, " P"]) -> float:
        """Return the largest covariance with the region's periodic copy, times (gap/period)²."""
        worst = 0.0
        for kernel, share, stride in zip(self.kernels, self.shares, features.strides, strict=True):
            period = np.array(features.grid.period) / stride
            for p, gap in enumerate(period - extent):
                k = _correlations(kernel, p, np.array([gap]), len(extent))[0]
                worst = max(worst, float(share * k * (gap / period[p]) ** 2))
        return worst

    def _ranges(self, extent: Float[Array, " P"], covariance: float) -> Float[Array, "Q P"]:
        """Return the distance along each input beyond which covariances are below `covariance`."""
        ranges = np.zeros((len(self.kernels), len(extent)))
        for p, side in enumerate(extent):
            distances = side * np.geomspace(1e-3, MAX_MARGIN_STRIDED, 200)
            for q, (kernel, share) in enumerate(zip(self.kernels, self.shares, strict=True)):
                above = share * _correlations(kernel, p, distances, len(extent)) > covariance
                ranges[q, p] = distances[above].max(initial=0.0)
        return ranges


def kernel_variances(kernels: Sequence[Kernel], n_inputs: int) -> Float[Array, " Q"]:
    """Return the variance k_q(x, x) of every kernel."""
    origin = np.zeros((1, n_inputs))
    return np.array([float(kernel.diag(origin)[0]) for kernel in kernels])


def _boxes(
    extent: Float[Array, " P"], ranges: Float[Array, "Q P"]
) -> Iterator[tuple[Float[Array, " P"], tuple[int, ...]]]:
    """Yield periods and strides: first strides of 1, then larger strides for short ranges."""
    wide, widest = (
        extent + np.minimum(ranges, margin * extent) for margin in (MAX_MARGIN, MAX_MARGIN_STRIDED)
    )
    yield wide.max(axis=0), (1,) * len(ranges)
    relative = (ranges / extent).max(axis=1)
    for limit in np.unique(relative)[:-1]:
        short = relative <= limit
        period = wide[short].max(axis=0)
        n = int(np.ceil((widest.max(axis=0) / period).max() - 0.1))
        if n > 1:
            yield n * period, tuple(np.where(short, n, 1).tolist())


def _half_grid(max_harmonic: Sequence[int]) -> Int[Array, "K P"]:
    """Return one of each pair of integer vectors m and −m, beginning with zero."""
    axes = [np.arange(-most, most + 1) for most in max_harmonic]
    full = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    return full[len(full) // 2 :]  # m and −m are at mirrored positions, and m = 0 is in the middle.


def _correlations(
    kernel: Kernel, p: int, distances: Float[Array, " n"], n_inputs: int
) -> Float[Array, " n"]:
    """Return correlations at given distances along input p, without the kernel's constant part.

    The constant part does not decay, but needs no margin: frequency zero represents it exactly.
    """
    x = np.zeros((len(distances) + 1, n_inputs))
    x[:, p] = [*distances, FAR * distances.max()]
    k = kernel_matrix(kernel, x[:1] * 0, x)[0]
    return (k[:-1] - k[-1]) / float(kernel.diag(x[:1])[0])
