"""The search space of step 1: starting values and bounds derived from the data.

The starting values of length-scales range from about the distance between neighbouring sites to
about the extent of the region. This range is divided into equal intervals on the log scale, with
one starting value in each. The bounds are wider. Bounds set by the user are kept, but
scikit-learn's default bounds (1e-5, 1e5), which ignore the units of X, are replaced.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, WhiteKernel

from emgpr.latents.base import NOISE_BOUNDS
from emgpr.neighbours import extents, kd_tree
from emgpr.observations import Observations

Array = np.ndarray

SKLEARN_DEFAULT_BOUNDS = (1e-5, 1e5)
NOISE_STARTS = (0.03, 0.15, 0.6)  # noise variances of a standardised output
# The lower values are multiples of the distance between neighbours, and the upper values are
# multiples of the extent of the region. The shortest starting value is less than the distance
# between neighbours, because a smooth kernel is close to zero beyond two length-scales.
LENGTH_SCALE_BOUNDS, LENGTH_SCALE_STARTS = (0.1, 20.0), (0.4, 0.5)
MAX_PAIRS = 5000  # number of nearest neighbours that is enough to estimate a typical distance
MAX_REPEATS = 8  # number of nearest sites among which one is sought at a different location
MIN_DISTANCE = 1e-6  # relative to the extent; equal sites can differ by 1e-16 due to rounding


class SiteDistances:
    """Typical distances between sites, in the unit of the columns or relative to their scales."""

    def __init__(self, x: Float[Array, "N P"], tree: KDTree | None = None) -> None:
        # The distances do not depend on the origin of the coordinates.
        self.x, self.tree = x - x.min(axis=0), tree

    @classmethod
    def in_table(cls, observations: Observations) -> "SiteDistances":
        """Return the distances between the sites of a table, which are computed once."""
        tree = observations.tree() if observations.n_sites > MAX_PAIRS else None
        return observations.cached_for_sites("distances", lambda: cls(observations.x, tree))

    @cached_property
    def column_scales(self) -> Float[Array, " P"]:
        """The standard deviation of each column."""
        return column_scales(self.x)

    @cached_property
    def typical(self) -> tuple[float, float]:
        """The median distance to the nearest other site, and the extent of the region."""
        return typical_distances(self.x, self.tree)

    @cached_property
    def typical_relative(self) -> tuple[float, float]:
        """The same distances with columns divided by their scales."""
        return typical_distances(self.x / self.column_scales)


@dataclass(frozen=True)
class SearchSpace:
    """Names, starting values and bounds of the kernel and noise parameters, on the log scale."""

    starts: Float[Array, "S p"]
    bounds: Float[Array, "p 2"]
    names: tuple[str, ...]
    n_kernels: int = 1  # number of starting kernels, each combined with every starting noise

    @property
    def noise_bounds(self) -> tuple[float, float]:
        """Bounds of the noise variance."""
        low, high = np.exp(self.bounds[-1]).tolist()
        return low, high


def search_space(
    kernel: Kernel,
    white: WhiteKernel | None,
    distances: SiteDistances,
    n_starts: int,
    rng: np.random.Generator,
) -> SearchSpace:
    """Return the bounds, and starting values that combine all length-scales and noise levels."""
    free = [parameter for parameter in kernel.hyperparameters if not parameter.fixed]
    n_scales = sum(is_length_scale(kernel, parameter.name) for parameter in free)
    columns, bounds, names = [], [], []
    at = scale_index = 0
    for parameter in free:
        n = parameter.n_elements
        initial = kernel.theta[at : at + n]
        if is_length_scale(kernel, parameter.name):
            # Two length-scales of one kernel would stay equal if they had the same starting value.
            shift = scale_index * max(1, n_starts // n_scales)
            column, limits = _length_scales(parameter, initial, distances, n_starts, shift, rng)
            scale_index += 1
        else:
            column, limits = initial[None], _log_bounds(parameter)
        columns.append(np.clip(column, limits[:, 0], limits[:, 1]))
        bounds.append(limits)
        names += [parameter.name if n == 1 else f"{parameter.name}[{i}]" for i in range(n)]
        at += n
    noises, noise_bounds = _noises(white, rng)
    # A parameter with fewer starting values than others repeats its last value.
    n_kernels = max((len(column) for column in columns), default=1)
    columns = [column[np.minimum(np.arange(n_kernels), len(column) - 1)] for column in columns]
    kernels = np.concatenate(columns, 1) if columns else np.empty((1, 0))
    log_noises = np.clip(np.log(np.tile(noises, len(kernels))), *np.log(noise_bounds))
    starts = np.column_stack([np.repeat(kernels, len(noises), axis=0), log_noises])
    all_bounds = np.concatenate([*bounds, np.log([noise_bounds])])
    return SearchSpace(starts, all_bounds, (*names, "noise"), len(kernels))


def _length_scales(
    parameter: Hyperparameter,
    initial: Float[Array, " n"],
    distances: SiteDistances,
    n_starts: int,
    shift: int,
    rng: np.random.Generator,
) -> tuple[Float[Array, "S n"], Float[Array, "n 2"]]:
    """Return the logarithms of the starting values and bounds of a length-scale parameter."""
    # A common length-scale is a distance; separate length-scales have the units of their columns.
    shared = parameter.n_elements == 1
    unit = np.ones(1) if shared else distances.column_scales
    spacing, extent = distances.typical if shared else distances.typical_relative
    bounds = _log_bounds(parameter)
    if np.allclose(parameter.bounds, SKLEARN_DEFAULT_BOUNDS):
        low, high = LENGTH_SCALE_BOUNDS
        bounds = np.log(unit[:, None] * np.array([[low * spacing, high * extent]]))
    # Draw one starting value at random in each of `n_starts` equal intervals of the logarithm.
    stratum = (np.arange(n_starts) + shift) % n_starts
    u = (stratum + rng.uniform(size=n_starts)) / n_starts
    short, long = np.log(np.multiply(LENGTH_SCALE_STARTS, (spacing, extent)))
    starts = short + u[:, None] * (long - short) + np.log(unit)
    if np.any(initial != 0):  # the user set a length-scale other than the default of 1
        starts = np.vstack([starts, initial])
    return starts, bounds


def _log_bounds(parameter: Hyperparameter) -> Float[Array, "n 2"]:
    return np.log(np.broadcast_to(parameter.bounds, (parameter.n_elements, 2)))


def _noises(
    white: WhiteKernel | None, rng: np.random.Generator
) -> tuple[Float[Array, " S"], tuple[float, float]]:
    """Return starting values and bounds of the noise variance, including those set by the user."""
    noises = np.array(NOISE_STARTS) * np.exp(rng.uniform(-0.5, 0.5, size=len(NOISE_STARTS)))
    if white is None:
        return noises, NOISE_BOUNDS
    level = max(white.noise_level, NOISE_BOUNDS[0])  # because zero has no logarithm
    if isinstance(white.noise_level_bounds, str):  # "fixed"
        return np.array([level]), (level, level)
    noises = np.append(noises, level)
    if np.allclose(white.noise_level_bounds, SKLEARN_DEFAULT_BOUNDS):
        return noises, NOISE_BOUNDS
    low, high = np.ravel(white.noise_level_bounds).tolist()
    return noises, (low, high)


def is_length_scale(kernel: Kernel, name: str) -> bool:
    """Tell whether the hyper-parameter `name` of a kernel is a distance in the input space.

    The length-scale of a periodic kernel is not a distance, because it is relative to the period.
    """
    *path, attribute = name.split("__")
    owner = kernel
    for step in path:
        owner = getattr(owner, step)
    return attribute == "length_scale" and not hasattr(owner, "periodicity")


def typical_distances(X: Float[Array, "N P"], tree: KDTree | None = None) -> tuple[float, float]:
    """Return the median distance to the nearest other site, and the extent of the region.

    `tree` is a k-d tree of the sites, if there is one.
    """
    extent = float(np.linalg.norm(extents(X))) if len(X) else 0.0
    if extent == 0:
        return 1.0, 1.0
    sites, nearest = nearest_pairs(X, tree)
    distances = np.linalg.norm(sites - nearest, axis=1)
    return max(float(np.median(distances)), MIN_DISTANCE * extent), extent


def column_scales(X: Float[Array, "N P"]) -> Float[Array, " P"]:
    """Return the standard deviation of each column, or 1 for a constant column."""
    return np.where(extents(X) > 0, X.std(axis=0), 1.0)


def nearest_pairs(
    x: Float[Array, "N P"], tree: KDTree | None = None
) -> tuple[Float[Array, "n P"], Float[Array, "n P"]]:
    """Return the distinct locations in x, and for each of them the nearest other location.

    If there are many locations, a random sample of them is returned. If there is only one location,
    both arrays are empty. `tree` is a k-d tree of the sites, if there is one.

    >>> sites, nearest = nearest_pairs(np.array([[0.0], [3.0], [3.0], [4.0]]))
    >>> nearest.ravel()
    array([3., 4., 3.])
    """
    if len(x) > MAX_PAIRS:
        sample = np.random.default_rng(0).choice(len(x), MAX_PAIRS, replace=False)
        tree = kd_tree(x) if tree is None else tree
        distance, neighbour = tree.query(tree.data[sample], k=MAX_REPEATS)
        if distance[:, -1].all():
            first = np.argmax(distance > 0, axis=1)
            return x[sample], x[neighbour[np.arange(MAX_PAIRS), first]]
    locations = np.unique(x, axis=0)
    if len(locations) < 2:
        return locations[:0], locations[:0]
    return locations, locations[KDTree(locations).query(locations, k=2)[1][:, 1]]
