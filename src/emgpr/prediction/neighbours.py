"""Conditioning on neighbouring readings: one small linear system for each location.

The neighbours of a location are either a given number of nearest readings of each output, or
readings in all directions, as many as are worthwhile. In the second case, the number of readings is
doubled until another doubling would hardly reduce the variance.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import (
    chunk_bytes,
    diagonal,
    namespace,
    panel_size,
    to_device,
    to_device_of,
    to_numpy,
)
from emgpr.covariance import cross_covariance
from emgpr.kernels import distance_scales, kernel_matrices
from emgpr.neighbours import SurroundingSites
from emgpr.observations import Observations
from emgpr.parallel import thread_map
from emgpr.prediction.exact import CoupledOutputs, LMCModel, factor_readings
from emgpr.prediction.parameter_uncertainty import (
    Changes,
    Jacobian,
    ParameterDirections,
)
from emgpr.prediction.posterior import GaussianMixture

Array = np.ndarray
Sites = Int[Array, "_ _"]  # a row for each location
# Sites, and a function that returns n of them near each location: (locations, n) -> rows.
Search = tuple[Int[Array, " _"], Callable[[Array, int], Array]]

# The number of neighbours is doubled if the last doubling reduced a variance by this share. The
# reduction is roughly divided by three each time.
WORTHWHILE_GAIN = 0.05
# Locations whose numbers of neighbouring sites differ by less than this are processed together.
WIDTH_STEP = 2
PANELS_PER_GROUP = 6  # elements of the covariances processed together, relative to `panel_size`
SEARCH_BYTES = 16e6  # memory for the search that is done in one thread at a time
# Numbers in memory for each neighbour of a location: during the search, and of its results.
NUMBERS_SEARCHED, NUMBERS_FOUND = 64, 16
MAX_READINGS_AROUND = 512  # of all outputs together, which a location is predicted from


def condition_on_neighbours(
    observations: Observations,
    x: Float[Array, "M P"],
    model: LMCModel,
    n_neighbours: int,
    *,
    directions: ParameterDirections | None = None,
    device: str = "cpu",
) -> GaussianMixture:
    """Return the distribution of the signals at x given the nearest readings of each output.

    With `directions`, the covariances of a single member include the uncertainty of the parameters.
    """
    return _condition_groups(observations, x, model, n_neighbours, _Nearest, directions, device)


def condition_on_surrounding(
    observations: Observations,
    x: Float[Array, "M P"],
    model: LMCModel,
    n_neighbours: int,
    *,
    directions: ParameterDirections | None = None,
    device: str = "cpu",
) -> GaussianMixture:
    """Return the distribution of the signals at x given readings in all directions.

    Each location is predicted from at least `n_neighbours` readings of each output. This number is
    doubled as long as the last doubling reduced the variance of a reading of some output, predicted
    by the first member, by more than `WORTHWHILE_GAIN`. There is a limit to the size of the system.
    With `directions`, the covariances of a single member include the uncertainty of the parameters.
    """
    return _condition_groups(observations, x, model, n_neighbours, _Surrounding, directions, device)


def _condition_groups(
    observations: Observations,
    x: Float[Array, "M P"],
    model: LMCModel,
    n: int,
    kind: "type[_Nearest]",
    directions: ParameterDirections | None,
    device: str,
) -> GaussianMixture:
    """Condition each group of coupled outputs on the neighbours that a kind of search finds."""
    scale = distance_scales(model.kernels, x.shape[1])
    limit = MAX_READINGS_AROUND if kind is _Surrounding else 0

    def predict(group: CoupledOutputs) -> tuple[Array, Array]:
        changes = model.directions_of(group, directions)
        table, search = _prepare(observations, group, scale, kind)
        conditional = _Conditional(table.to(device), search, group, device, limit, changes)
        mean, cov, slopes = conditional.predict(x, n)
        return mean, cov if changes is None else changes.increase(cov, slopes, group.noise)

    return model.predict_groups(len(x), predict)


def mean_derivatives_from_neighbours(
    observations: Observations,
    x: Float[Array, "M P"],
    model: LMCModel,
    n_neighbours: int,
    directions: ParameterDirections,
    *,
    device: str = "cpu",
) -> Float[Array, "M D r"]:
    """Return the derivatives of the posterior mean at x given the nearest readings.

    The model must have one member.
    """
    found = np.zeros((len(x), len(model.noise), len(directions)))
    scale = distance_scales(model.kernels, x.shape[1])
    for group in model.coupled_outputs():
        changes = model.directions_of(group, directions)
        if changes is not None:
            _, found[:, group.outputs] = differentiate_group(
                observations, x, scale, n_neighbours, group, changes, device=device
            )
    return found


def differentiate_group(
    observations: Observations,
    x: Float[Array, "M P"],
    scale: Float[Array, " P"],
    n_neighbours: int,
    group: CoupledOutputs,
    changes: Changes,
    *,
    other_sites: bool = False,
    of_variances: bool = False,
    device: str = "cpu",
) -> tuple[Float[Array, "M d d"], Float[Array, "M d r"]]:
    """Return a group's covariances for fixed parameters, and the derivatives of its means.

    Distances are relative to `scale`. With `other_sites`, readings at the same location are not
    used. With `of_variances`, the
    derivatives are those of the variances of the signals.
    """
    table, nearest = _prepare(observations, group, scale, _Nearest)
    search = _OtherSites(nearest, table.x) if other_sites else nearest
    conditional = _Conditional(table.to(device), search, group, device, 0, changes, of_variances)
    _, (cov,), slopes = conditional.predict(x, n_neighbours + other_sites)
    return cov, slopes


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
    search = searching(observations, distance_scales(kernels, x.shape[1]))
    return np.unique(np.concatenate([np.empty(0, int), *map(np.ravel, search.neighbours(x, n))]))


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


def _prepare(
    observations: Observations,
    group: CoupledOutputs,
    scale: Float[Array, " P"],
    kind: "type[_Nearest]",
) -> tuple[Observations, "_Nearest"]:
    """Return the readings of a group of outputs, and the search for neighbours among them."""
    table = observations.select_outputs(group.outputs)
    key = kind, tuple(group.outputs.tolist()), tuple(scale.tolist())
    return table, observations.cached(key, partial(kind, table, scale))


def _nearest(tree: KDTree, at: Float[Array, "m P"], n: int) -> Int[Array, "m k"]:
    return tree.query(at, k=range(1, min(n, tree.n) + 1))[1]


class _Nearest:
    """Nearest-neighbour search for each output; outputs measured at the same sites share a tree."""

    def __init__(self, observations: Observations, scale: Float[Array, " P"]) -> None:
        self.scale = scale
        # np.unique would be slow: it treats a row of a million values as one record.
        patterns = {row.tobytes(): row for row in observations.observed}
        measured = [patterns[key] for key in sorted(patterns) if patterns[key].any()]
        self.searches = list(thread_map(partial(self._build, observations), measured))

    def _build(self, observations: Observations, measured: Bool[Array, " N"]) -> Search:
        tree = observations.tree(self.scale, measured)
        return np.flatnonzero(measured), partial(_nearest, tree)

    def width(self, n: int) -> int:
        """Return the largest number of sites that contain n readings of each output."""
        return sum(min(n, len(sites)) for sites, _ in self.searches)

    def neighbours(self, x: Float[Array, "m P"], n: int) -> list[Sites]:
        """Return the sites of n readings near each row of x, once for each set of measured sites.

        The sites are in order of preference. They are searched in threads.
        """
        rows = max(1, int(SEARCH_BYTES // (8 * n * (NUMBERS_SEARCHED + 2 * n))))
        parts = [x[start : start + rows] / self.scale for start in range(0, max(1, len(x)), rows)]
        jobs = [(search, part) for search in self.searches for part in parts]
        found = list(thread_map(lambda job: job[0][0][job[0][1](job[1], n)], jobs))
        k = len(parts)
        return [np.concatenate(found[start : start + k]) for start in range(0, len(found), k)]


class _Surrounding(_Nearest):
    """Search for sites that surround each location, for each output."""

    def _build(self, observations: Observations, measured: Bool[Array, " N"]) -> Search:
        # Subsets of the sites of all outputs come from the same order, so that they overlap.
        order, position = observations.spread_order(self.scale), np.cumsum(measured) - 1
        tree = observations.tree(self.scale, measured)
        sites = SurroundingSites(tree, position[order[measured[order]]])
        return np.flatnonzero(measured), sites.search


class _OtherSites:
    """A nearest-neighbour search that excludes sites at the same location."""

    def __init__(self, search: _Nearest, x: Float[Array, "N P"]) -> None:
        self.search, self.x = search, x
        self.searches, self.width = search.searches, search.width

    def neighbours(self, x: Float[Array, "m P"], n: int) -> list[Sites]:
        """Return the sites near each row of x; −1 means that there is none."""
        return [
            np.where((self.x[part] == x[:, None]).all(axis=-1), -1, part)
            for part in self.search.neighbours(x, n)
        ]


@dataclass(frozen=True)
class _Conditional:
    """The distribution of a group of coupled outputs given neighbouring readings.

    `max_readings` limits the number of readings of all outputs that a location is predicted from,
    if this number is increased at all.
    """

    table: Observations  # on the device
    search: _Nearest | _OtherSites
    group: CoupledOutputs
    device: str
    max_readings: int
    changes: Changes | None = None  # directions in which the parameters are uncertain
    of_variances: bool = False  # whether the derivatives are those of the variances

    def predict(
        self, x: Float[Array, "M P"], n: int, previous: Float[Array, "M D"] | None = None
    ) -> tuple[Float[Array, "L M D"], Float[Array, "L M D D"], Float[Array, "M D r"]]:
        """Condition on n neighbours, or on more at locations where this reduces the variance.

        `previous` contains the variances given half as many neighbours. The results are means,
        covariances for fixed parameters, and the changes of the means with the parameters.
        """
        mean, cov, slopes = self._prior(x)
        if not self.group.kernels or not self.search.searches:
            return mean, cov, slopes
        D, width = len(self.group.outputs), self.search.width(n)
        final = 2 * n * D > self.max_readings or n >= self.table.n_sites
        step = max(1, int(chunk_bytes("cpu") // (8 * width * NUMBERS_FOUND)))
        for start in range(0, len(x), step):
            at = slice(start, start + step)
            sites = self.search.neighbours(x[at], n)
            mean[:, at], cov[:, at], slopes[at] = self.given(sites, x[at])
            if final:
                continue
            if previous is None:
                first = replace(self, group=self.group._replace(B=self.group.B[:1]), changes=None)
                half = [part[:, : max(1, n // 2)] for part in sites]
                before = self._variances(first.given(half, x[at])[1])
            else:
                before = previous[at]
            after = self._variances(cov[:, at])
            worthwhile = (after < (1 - WORTHWHILE_GAIN) * before).any(axis=1)
            if worthwhile.any():
                rows = start + np.flatnonzero(worthwhile)
                mean[:, rows], cov[:, rows], slopes[rows] = self.predict(
                    x[rows], 2 * n, after[worthwhile]
                )
        return mean, cov, slopes

    def _prior(
        self, x: Float[Array, "m P"]
    ) -> tuple[Float[Array, "L m D"], Float[Array, "L m D D"], Float[Array, "m D r"]]:
        """Return the means, covariances and changes of the means without any readings."""
        D = len(self.group.outputs)
        mean = np.zeros((len(self.group.B), len(x), D))
        of_prior = np.zeros((D, 0)) if self.changes is None else self.changes.of_prior
        return mean, self.group.prior_covariance(x), np.tile(of_prior, (len(x), 1, 1))

    def _variances(self, cov: Float[Array, "L m D D"]) -> Float[Array, "m D"]:
        """Return the variances of readings that the first member predicts."""
        return diagonal(cov[0] + self.group.noise)

    def given(
        self, sites: Sequence[Sites], x: Float[Array, "m P"]
    ) -> tuple[Float[Array, "L m D"], Float[Array, "L m D D"], Float[Array, "m D r"]]:
        """Condition the signals at each location on the readings at its neighbouring sites."""
        kernels, (L, _, D, _) = self.group.kernels, self.group.B.shape
        mean, cov, slopes = self._prior(x)
        changes = None if self.changes is None else self.changes.to(self.device)
        new, (B, noise) = to_device(x, self.device), self.group.to(self.device)
        xp = namespace(new)
        bytes_each = 8 * (3 * D * D + len(kernels) + x.shape[1])
        in_cache = PANELS_PER_GROUP * panel_size(new) / D**2
        max_entries = min(chunk_bytes(self.device) / bytes_each, in_cache)
        for rows, near in _equal_widths(sites, max_entries):
            tables = self.table.at(near)
            K = kernel_matrices(kernels, tables.x)
            Kx = kernel_matrices(kernels, tables.x, new[to_device_of(rows, new), None])
            observed = tables.observed.reshape(len(rows), -1, 1)
            y = tables.stacked[..., None]
            for member in range(L):
                L_factor = factor_readings(tables, B[member], noise, K)
                cross = cross_covariance(B[member], Kx).reshape(*observed.shape[:2], D) * observed
                both = L_factor.half_solve(xp.concat([cross, y], axis=-1))
                half, target = both[..., :D], both[..., D:]
                transposed = xp.matrix_transpose(half)
                mean[member, rows] = to_numpy(transposed @ target)[..., 0]
                cov[member, rows] -= to_numpy(transposed @ half)
                if changes is not None:
                    find = Jacobian.of_variances if self.of_variances else Jacobian.of_means
                    jacobian = find(
                        tables, new[to_device_of(rows, new)], kernels, B[member], K, Kx,
                        L_factor.back_solve(both),
                    )  # fmt: skip
                    slopes[rows] = to_numpy(changes.apply_to(jacobian))
        return mean, cov, slopes


def _equal_widths(
    sites: Sequence[Sites], max_entries: float
) -> Iterator[tuple[Int[Array, " m"], Int[Array, "m w"]]]:
    """Yield locations with about as many neighbouring sites, and these sites, padded with −1.

    The covariances between the sites have at most `max_entries` entries.
    """
    united = unique_per_row(np.concatenate(sites, axis=1))
    width = (united >= 0).sum(axis=1)
    width += -width % WIDTH_STEP
    for w in np.unique(width[width > 0]).tolist():
        rows = np.flatnonzero(width == w)
        step = max(1, int(max_entries // w**2))
        for start in range(0, len(rows), step):
            some = rows[start : start + step]
            yield some, united[some, :w]
