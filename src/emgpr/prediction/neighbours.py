"""Conditioning on neighbouring readings: one small linear system for each location.

The neighbours of a location are either a given number of nearest readings of each output, or
readings in all directions, as many as are worthwhile. In the second case, the number of readings is
doubled until another doubling would hardly reduce the variance.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from joblib import cpu_count
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import chunk_bytes, diagonal, namespace, to_device, to_device_of, to_numpy
from emgpr.covariance import cross_covariance
from emgpr.kernels import kernel_matrices
from emgpr.neighbours import SurroundingSites, spread_order
from emgpr.observations import Observations
from emgpr.prediction.exact import CoupledOutputs, LMCModel, factor_readings
from emgpr.prediction.posterior import GaussianMixture

Array = np.ndarray
# Sites, and a function that returns n of them near each location: (locations, n, threads) -> rows.
Search = tuple[Int[Array, " _"], Callable[[Array, int, int], Array]]

# The number of neighbours is doubled if the last doubling reduced a variance by this share. The
# reduction is roughly divided by three each time.
WORTHWHILE_GAIN = 0.05
# Locations whose numbers of neighbouring sites differ by less than this are processed together.
WIDTH_STEP = 2
SEARCHED_AT_ONCE = 4  # locations, relative to those whose covariances are in memory together
MAX_READINGS_AROUND = 512  # of all outputs together, which a location is predicted from


def condition_on_neighbours(
    observations: Observations,
    x: Float[Array, "M P"],
    model: LMCModel,
    n_neighbours: int,
    *,
    device: str = "cpu",
) -> GaussianMixture:
    """Return the distribution of the signals at x given the nearest readings of each output."""
    scale = column_scales(model.kernels, x.shape[1])

    def predict(group: CoupledOutputs) -> tuple[Array, Array]:
        table = observations.select_outputs(group.outputs)
        search = observations.cached(_search_key(group, scale), partial(_Nearest, table, scale))
        return _condition(table, search, n_neighbours, x, group, device)

    return model.predict_groups(len(x), predict)


def condition_on_surrounding(
    observations: Observations,
    x: Float[Array, "M P"],
    model: LMCModel,
    n_neighbours: int,
    *,
    device: str = "cpu",
) -> GaussianMixture:
    """Return the distribution of the signals at x given readings in all directions.

    Each location is predicted from at least `n_neighbours` readings of each output. This number is
    doubled as long as the last doubling reduced the variance of a reading of some output, predicted
    by the first member, by more than `WORTHWHILE_GAIN`. There is a limit to the size of the system.
    """
    scale = column_scales(model.kernels, x.shape[1])

    def predict(group: CoupledOutputs) -> tuple[Array, Array]:
        table = observations.select_outputs(group.outputs)
        key = ("surrounding", *_search_key(group, scale))
        search = observations.cached(key, partial(_Surrounding, table, scale))
        return _condition_on_enough(table, search, n_neighbours, x, group, device)

    return model.predict_groups(len(x), predict)


def _search_key(group: CoupledOutputs, scale: Float[Array, " P"]) -> tuple[Hashable, ...]:
    return "neighbours", tuple(group.outputs.tolist()), tuple(scale.tolist())


def bounded_conditioning(conditioning: Any, observations: Observations) -> Any:
    """Return "all" for a number of neighbours that no output exceeds; return others unchanged.

    >>> table = Observations.from_table(np.zeros((3, 1)), np.zeros((3, 1)))
    >>> [bounded_conditioning(n, table) for n in ("batch", 2, 3, 10**9)]
    ['batch', 2, 'all', 'all']
    """
    if isinstance(conditioning, str):
        return conditioning
    return int(conditioning) if conditioning < observations.n_sites else "all"


def neighbouring_sites(
    observations: Observations,
    x: Float[Array, "M P"],
    kernels: Sequence[Kernel],
    n: int,
    *,
    surrounding: bool = False,
) -> Int[Array, " _"]:
    """Return the sites of n near readings of each output, for all rows of x together.

    These are the nearest readings, or those that surround each row of x.
    """
    searching = _Surrounding if surrounding else _Nearest
    search = searching(observations, column_scales(kernels, x.shape[1]))
    return np.setdiff1d(search.neighbours(x, n), [-1])


def column_scales(kernels: Sequence[Kernel], P: int) -> Float[Array, " P"]:
    """Return the scale by which each input column is divided when distances are computed.

    It is the geometric mean of the column's length-scales in all kernels with one length-scale for
    each column. If there are no such kernels, all scales are 1.
    """
    logs = [
        np.log(value)
        for kernel in kernels
        for name, value in kernel.get_params().items()
        if name.rsplit("__", 1)[-1] == "length_scale" and np.ndim(value) == 1 and len(value) == P
    ]
    return np.exp(np.mean(logs, axis=0)) if logs else np.ones(P)


def unique_per_row(sites: Int[Array, "m w"]) -> Int[Array, "m n"]:
    """Remove repeated sites from each row and sort it in descending order, padded with −1.

    >>> unique_per_row(np.array([[3, 1, 3], [2, -1, 5]]))
    array([[3, 1],
           [5, 2]])
    """
    sites = np.sort(sites, axis=1)
    sites[:, 1:][sites[:, 1:] == sites[:, :-1]] = -1
    sites = -np.sort(-sites, axis=1)
    return sites[:, : int((sites >= 0).sum(axis=1).max(initial=0))]


def _nearest(tree: KDTree, at: Float[Array, "m P"], n: int, workers: int) -> Int[Array, "m k"]:
    return tree.query(at, k=range(1, min(n, tree.n) + 1), workers=workers)[1]


class _Nearest:
    """Nearest-neighbour search for each output; outputs measured at the same sites share a tree."""

    def __init__(self, observations: Observations, scale: Float[Array, " P"]) -> None:
        self.scale = scale
        # np.unique would be slow: it treats a row of a million values as one record.
        patterns = {row.tobytes(): row for row in observations.observed}
        measured = [patterns[key] for key in sorted(patterns) if patterns[key].any()]
        self.searches = self._build(observations.x / scale, measured)

    def _build(self, x: Float[Array, "N P"], measured: Sequence[Bool[Array, " N"]]) -> list[Search]:
        return [(np.flatnonzero(mask), partial(_nearest, KDTree(x[mask]))) for mask in measured]

    def width(self, n: int) -> int:
        """Return the largest number of sites that contain n readings of each output."""
        return sum(min(n, len(sites)) for sites, _ in self.searches)

    def neighbours(self, x: Float[Array, "m P"], n: int, threads: int = 1) -> Int[Array, "m w"]:
        """Return the sites near each row of x, without repetitions; rows are padded with −1."""
        found = [sites[search(x / self.scale, n, threads)] for sites, search in self.searches]
        return unique_per_row(np.concatenate([np.full((len(x), 1), -1), *found], axis=1))


class _Surrounding(_Nearest):
    """Search for sites that surround each location, for each output."""

    def _build(self, x: Float[Array, "N P"], measured: Sequence[Bool[Array, " N"]]) -> list[Search]:
        # Subsets of the sites of all outputs come from the same order, so that they overlap.
        order = spread_order(x)
        found: list[Search] = []
        for mask in measured:
            position = np.cumsum(mask) - 1
            sites = SurroundingSites(x[mask], position[order[mask[order]]])
            found.append((np.flatnonzero(mask), sites.search))
        return found


def _condition_on_enough(
    observations: Observations,
    search: _Nearest,
    n: int,
    x: Float[Array, "M P"],
    group: CoupledOutputs,
    device: str,
) -> tuple[Float[Array, "L M D"], Float[Array, "L M D D"]]:
    """Condition on n neighbours, or on more at locations where this reduces the variance."""
    D, first = len(group.outputs), group._replace(B=group.B[:1])

    def variances(cov: Float[Array, "L m D D"]) -> Float[Array, "m D"]:
        return diagonal(cov[0] + group.noise)

    mean, cov = _condition(observations, search, n, x, group, device)
    if n < 2 or 2 * n * D > MAX_READINGS_AROUND or n >= observations.n_sites:
        return mean, cov
    before = variances(_condition(observations, search, n // 2, x, first, device)[1])
    rows = np.arange(len(x))
    while 2 * n * D <= MAX_READINGS_AROUND and n < observations.n_sites:
        after = variances(cov[:, rows])
        worthwhile = (after < (1 - WORTHWHILE_GAIN) * before).any(axis=1)
        if not worthwhile.any():
            break
        rows, before, n = rows[worthwhile], after[worthwhile], 2 * n
        mean[:, rows], cov[:, rows] = _condition(observations, search, n, x[rows], group, device)
    return mean, cov


def _condition(
    observations: Observations,
    search: _Nearest,
    n: int,
    x: Float[Array, "M P"],
    group: CoupledOutputs,
    device: str,
) -> tuple[Float[Array, "L M D"], Float[Array, "L M D D"]]:
    """Condition the signals at each location on n neighbouring readings of each output."""
    kernels, (L, _, D, _) = group.kernels, group.B.shape
    mean, cov = np.zeros((L, len(x), D)), group.prior_covariance(x)
    if not kernels or not search.searches:
        return mean, cov
    table, new, (B, noise) = observations.to(device), to_device(x, device), group.to(device)
    xp = namespace(new)
    for rows, sites in _equal_widths(search, n, x, group, device):
        at = to_device_of(rows, new)
        tables = table.at(sites)
        K = kernel_matrices(kernels, tables.x)
        Kx = kernel_matrices(kernels, tables.x, new[at, None])
        observed = tables.observed.reshape(len(rows), -1, 1)
        y = tables.stacked[..., None]
        for member in range(L):
            L_factor = factor_readings(tables, B[member], noise, K)
            cross = cross_covariance(B[member], Kx).reshape(*observed.shape[:2], D) * observed
            half = L_factor.half_solve(xp.concat([cross, y], axis=-1))
            half, target = half[..., :D], half[..., D:]
            transposed = xp.matrix_transpose(half)
            mean[member, rows] = to_numpy(transposed @ target)[..., 0]
            cov[member, rows] -= to_numpy(transposed @ half)
    return mean, cov


def _equal_widths(
    search: _Nearest, n: int, x: Float[Array, "M P"], group: CoupledOutputs, device: str
) -> Iterator[tuple[Int[Array, " m"], Int[Array, "m w"]]]:
    """Yield groups of locations with about as many neighbours, as rows of x and their sites.

    The number of locations in a group is limited by the memory that their covariances need.
    """
    threads = cpu_count() if device.startswith("cuda") else 1  # so that a GPU need not wait
    matrices, P = 3 * len(group.outputs) ** 2 + len(group.kernels), x.shape[1]
    memory = chunk_bytes(device) / (8 * (matrices + P))
    at_once = max(1, int(SEARCHED_AT_ONCE * memory // search.width(n) ** 2))
    for start in range(0, len(x), at_once):
        sites = search.neighbours(x[start : start + at_once], n, threads)
        width = (sites >= 0).sum(axis=1)
        width += -width % WIDTH_STEP
        for w in np.unique(width).tolist():
            rows = np.flatnonzero(width == w)
            step = max(1, int(memory // w**2))
            for first in range(0, len(rows), step):
                some = rows[first : first + step]
                yield start + some, sites[some, :w]
