"""Conditioning on the nearest readings: one small linear system for each location."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from joblib import cpu_count
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import chunk_bytes, namespace, to_device, to_numpy
from emgpr.covariance import cross_covariance
from emgpr.kernels import distance_scales, kernel_matrices
from emgpr.observations import Observations
from emgpr.prediction.exact import CoupledOutputs, LMCModel, factor_readings
from emgpr.prediction.parameter_uncertainty import (
    Changes,
    MeanJacobian,
    ParameterDirections,
)
from emgpr.prediction.posterior import GaussianMixture

Array = np.ndarray


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
    scale = distance_scales(model.kernels, x.shape[1])

    def predict(group: CoupledOutputs) -> tuple[Array, Array]:
        changes = model.directions_of(group, directions)
        table, search = _prepare(observations, group, scale, n_neighbours)
        mean, cov, slopes = _condition(table, search, x, group, changes, device)
        return mean, cov + slopes @ np.swapaxes(slopes, -1, -2)

    return model.predict_groups(len(x), predict)


def mean_derivatives_from_neighbours(
    observations: Observations,
    x: Float[Array, "M P"],
    model: LMCModel,
    n_neighbours: int,
    directions: ParameterDirections,
    *,
    other_sites: bool = False,
    device: str = "cpu",
) -> Float[Array, "M D r"]:
    """Return the derivatives of the posterior mean at x given the nearest readings.

    With `other_sites`, readings at the same location are not used. The model must have one member.
    """
    found = np.zeros((len(x), len(model.noise), len(directions)))
    for group in model.coupled_outputs():
        changes = model.directions_of(group, directions)
        if changes is None:
            continue
        _, found[:, group.outputs] = differentiate_group(
            observations, x, model, n_neighbours, group, changes, other_sites, device
        )
    return found


def differentiate_group(
    observations: Observations,
    x: Float[Array, "M P"],
    model: LMCModel,
    n_neighbours: int,
    group: CoupledOutputs,
    changes: Changes,
    other_sites: bool = False,
    device: str = "cpu",
) -> tuple[Float[Array, "M d d"], Float[Array, "M d r"]]:
    """Return a group's covariances for fixed parameters, and the derivatives of its means."""
    scale = distance_scales(model.kernels, x.shape[1])
    table, nearest = _prepare(observations, group, scale, n_neighbours + other_sites)
    search = _OtherSites(nearest, table.x) if other_sites else nearest
    _, (cov,), slopes = _condition(table, search, x, group, changes, device)
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
    observations: Observations, x: Float[Array, "M P"], kernels: Sequence[Kernel], n: int
) -> Int[Array, " _"]:
    """Return the sites of the n nearest readings of each output, for all rows of x together."""
    search = _NeighbourSearch(observations, distance_scales(kernels, x.shape[1]), n)
    return np.setdiff1d(search.neighbours(x), [-1]) if search.trees else np.arange(0)


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
    observations: Observations, group: CoupledOutputs, scale: Float[Array, " P"], n: int
) -> tuple[Observations, "_NeighbourSearch"]:
    """Return the readings of a group of outputs, and the search for the nearest of them."""
    table = observations.select_outputs(group.outputs)
    key = "neighbours", tuple(group.outputs.tolist()), tuple(scale.tolist()), n
    return table, observations.cached(key, partial(_NeighbourSearch, table, scale, n))


class _NeighbourSearch:
    """Nearest-neighbour search for each output; outputs measured at the same sites share a tree."""

    def __init__(self, observations: Observations, scale: Float[Array, " P"], n: int) -> None:
        self.scale = scale
        # np.unique would be slow: it treats a row of a million values as one record.
        patterns = {row.tobytes(): row for row in observations.observed}
        sites = [np.flatnonzero(patterns[key]) for key in sorted(patterns) if patterns[key].any()]
        self.trees = [(at, KDTree(observations.x[at] / scale), min(n, len(at))) for at in sites]
        self.width = sum(n for _, _, n in self.trees)

    def neighbours(self, x: Float[Array, "m P"], threads: int = 1) -> Int[Array, "m n"]:
        """Return the sites near each row of x, without repetitions; rows are padded with −1."""
        found = [
            at[tree.query(x / self.scale, k=range(1, n + 1), workers=threads)[1]]
            for at, tree, n in self.trees
        ]
        return unique_per_row(np.concatenate(found, axis=1))


class _OtherSites:
    """A nearest-neighbour search that excludes sites at the same location."""

    def __init__(self, search: _NeighbourSearch, x: Float[Array, "N P"]) -> None:
        self.search, self.x, self.trees, self.width = search, x, search.trees, search.width

    def neighbours(self, x: Float[Array, "m P"], threads: int = 1) -> Int[Array, "m n"]:
        """Return the sites near each row of x; −1 means that there is none."""
        found = self.search.neighbours(x, threads)
        return np.where((self.x[found] == x[:, None]).all(axis=-1), -1, found)


def _condition(
    observations: Observations,
    search: _NeighbourSearch | _OtherSites,
    x: Float[Array, "M P"],
    group: CoupledOutputs,
    changes: Changes | None,
    device: str,
) -> tuple[Float[Array, "L M D"], Float[Array, "L M D D"], Float[Array, "M D r"]]:
    """Return means, covariances for fixed parameters, and the changes of the means."""
    kernels, (L, Q, D, _), P = group.kernels, group.B.shape, x.shape[1]
    mean, cov = np.zeros((L, len(x), D)), group.prior_covariance(x)
    slopes = np.zeros((len(x), D, 0 if changes is None else len(changes)))
    if not kernels or not search.trees:
        return mean, cov, slopes
    table, new, (B, noise) = observations.to(device), to_device(x, device), group.to(device)
    changes = None if changes is None else changes.to(device)
    xp = namespace(new)
    step = max(1, int(chunk_bytes(device) // (8 * search.width**2 * (3 * D * D + Q + P))))
    threads = cpu_count() if device.startswith("cuda") else 1  # so that a GPU need not wait
    for start in range(0, len(x), step):
        at = slice(start, start + step)
        tables = table.at(search.neighbours(x[at], threads))
        K = kernel_matrices(kernels, tables.x)
        Kx = kernel_matrices(kernels, tables.x, new[at, None])
        observed = tables.observed.reshape(len(tables.x), -1, 1)
        y = tables.stacked[..., None]
        for member in range(L):
            L_factor = factor_readings(tables, B[member], noise, K)
            cross = cross_covariance(B[member], Kx).reshape(*observed.shape[:2], D) * observed
            both = L_factor.half_solve(xp.concat([cross, y], axis=-1))
            half, target = both[..., :D], both[..., D:]
            transposed = xp.matrix_transpose(half)
            mean[member, at] = to_numpy(transposed @ target)[..., 0]
            cov[member, at] -= to_numpy(transposed @ half)
            if changes is not None:
                jacobian = MeanJacobian.from_neighbours(
                    tables, new[at], kernels, B[member], K, Kx, L_factor.back_solve(both)
                )
                slopes[at] = to_numpy(changes.apply_to(jacobian))
    return mean, cov, slopes
