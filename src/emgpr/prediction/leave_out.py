"""Predictions of readings from other readings, with fixed hyper-parameters.

If P is the inverse covariance of all readings, the distribution of a set S of readings given all
others is

    mean_S = y_S − P_SS⁻¹ (P y)_S,   cov_S = P_SS⁻¹

so that one inverse suffices for all sets. If readings are predicted from neighbours, there is one
inverse for all sets at a site that have the same neighbours. `sets` is a table (D, N) of labels;
readings with the same label are left out together, and those with negative labels are used but not
predicted. Predictions include noise, and are NaN where there is no reading.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial import KDTree

from emgpr.arrays import chunk_bytes, inv, limit_threads, to_device, to_numpy
from emgpr.ensemble import join, keeps_members
from emgpr.kernels import distance_scales, kernel_matrices
from emgpr.neighbours import kd_tree
from emgpr.observations import Observations
from emgpr.parallel import thread_map
from emgpr.prediction.exact import (
    CoupledOutputs,
    LMCModel,
    condition,
    factor_readings,
    noise_given_sample,
)
from emgpr.prediction.left_out_sets import sets_by_size, write_left_out
from emgpr.prediction.neighbours import differentiate_group, unique_per_row
from emgpr.prediction.parameter_uncertainty import ParameterDirections, for_readings
from emgpr.prediction.posterior import GaussianMixture

Array = np.ndarray

# If not enough of this many nearest readings remain, a tree of all remaining readings is built.
MAX_SEARCHED = 5000


def leave_out(
    observations: Observations,
    sets: Int[Array, "D N"],
    model: LMCModel,
    *,
    device: str = "cpu",
) -> GaussianMixture:
    """Predict each reading from all readings outside its set, for every member.

    Covariances between readings at different sites or in different sets are set to zero.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> table = Observations.from_table(np.array([[0.0], [0.0]]), np.array([[1.0], [3.0]]))
    >>> model = LMCModel((RBF(),), np.ones((1, 1, 1, 1)), np.eye(1))
    >>> leave_out(table, np.array([[0, 1]]), model).mean[0, :, 0]  # half of the other reading
    array([1.5, 0.5])
    """
    result = _empty_result(observations, model.n_members)
    for group in model.coupled_outputs():
        d = group.outputs
        sites = np.flatnonzero(observations.observed[d].any(axis=0))
        if not len(sites):  # a batch can lack readings of an output
            continue
        table = observations.select_outputs(d).at(sites)
        by_size = list(sets_by_size(table.observed, sets[np.ix_(d, sites)]))
        table, (B, noise) = table.to(device), group.to(device)
        K = kernel_matrices(group.kernels, table.x)
        for member in range(model.n_members):
            L_factor = factor_readings(table, B[member], noise, K)
            gamma, P = L_factor.solve(table.stacked[:, None])[:, 0], L_factor.inverse()
            for S in by_size:
                output, site = d[S // len(sites)], sites[S % len(sites)]
                write_left_out(result, member, observations.y, output, site, P, gamma, S)
    return result


def leave_out_from_neighbours(
    observations: Observations,
    sets: Int[Array, "D N"],
    model: LMCModel,
    n_neighbours: int,
    sites: Int[Array, " M"] | None = None,
    *,
    device: str = "cpu",
) -> GaussianMixture:
    """Predict each reading from the nearest readings of all outputs, except those in its set.

    Only readings at `sites` (by default, at all sites) are predicted.
    """
    predicted = np.arange(observations.n_sites) if sites is None else sites
    result = _empty_result(observations.at(predicted), model.n_members)
    scale = distance_scales(model.kernels, observations.x.shape[1])
    for group in model.coupled_outputs():
        D, labels = len(group.outputs), sets[group.outputs]
        table = observations.select_outputs(group.outputs)
        search = _RemainingNeighbours(table, labels, scale, n_neighbours)
        row, label = _problems(table.observed[:, predicted], labels[:, predicted])
        width = min(D * n_neighbours, observations.n_sites)
        at_once = max(1, int(chunk_bytes(device) // (8 * D * width)))
        for start in range(0, len(row), at_once):
            rows, left_out = row[start : start + at_once], label[start : start + at_once]
            at = predicted[rows]
            neighbours = search.neighbours(at, left_out)
            blocks = np.concatenate([at[:, None], neighbours], axis=1)  # the site itself is first
            found = table.at(blocks).observed
            excluded = found & (np.moveaxis(labels[:, blocks], 0, 1) == left_out[:, None, None])
            S = excluded[:, :, 0].copy()
            excluded[:, :, 0] = False  # the formula above leaves out the readings S of the site
            system, first = _shared_systems(blocks, excluded)
            n = int((blocks >= 0).sum(axis=1).max())
            bytes_each = 8 * n**2 * (3 * D * D + len(group.kernels) + 2)
            step = max(1, int(chunk_bytes(device) // bytes_each))
            for some in range(0, len(first), step):
                chosen = first[some : some + step]
                members = _solve_at_sites(table, blocks[chosen], excluded[chosen], group, device)
                own = np.flatnonzero((system >= some) & (system < some + step))
                for member, (P, gamma) in enumerate(members):
                    shared = system[own] - some
                    shift, cov = _invert_sets(P[shared], gamma[shared], S[own])
                    mean = table.y[:, at[own]].T - shift
                    _assign(result, member, rows[own], group.outputs, S[own], mean, cov)
    return result


def leave_out_from_batch(
    observations: Observations,
    batch: Int[Array, " _"],
    sets: Int[Array, "D N"],
    model: LMCModel,
    *,
    device: str = "cpu",
) -> GaussianMixture:
    """Predict each reading from the readings in a batch, for a model with a single member.

    Other readings at its site are also used, even if the site is not in the batch.
    """
    result = _empty_result(observations, 1)
    table, batch_sets = observations.at(batch), sets[:, batch]
    inside = leave_out(table, batch_sets, model, device=device)
    result.mean[:, batch], result.cov[:, batch] = inside.mean, inside.cov
    outside = np.setdiff1d(np.arange(observations.n_sites), batch)
    site, label = _problems(observations.observed[:, outside], sets[:, outside])
    site = outside[site]
    shared = np.intersect1d(label, batch_sets[table.observed])  # sets with readings in the batch
    D = observations.n_outputs
    for left_out in [None, *shared.tolist()]:
        rows = ~np.isin(label, shared) if left_out is None else label == left_out
        at, labels = site[rows], label[rows]
        if not len(at):
            continue
        kept = table.observed if left_out is None else table.observed & (batch_sets != left_out)
        remaining = Observations(table.x, np.where(kept, table.y, 0.0), kept)
        signals = condition(remaining, observations.x[at], model, device=device)
        observed, y = observations.observed[:, at].T, observations.y[:, at].T
        both = observed[:, :, None] & observed[:, None, :]
        P = inv(np.where(both, signals.cov[0] + model.noise, np.eye(D)))
        residual = np.where(observed, y - signals.mean[0], 0.0)
        S = observed & (labels[:, None] == sets[:, at].T)
        shift, cov = _invert_sets(P, (P @ residual[..., None])[..., 0], S)
        _assign(result, 0, at, np.arange(D), S, y - shift, cov)
    return result


@limit_threads(0)
def left_out_parameter_covariance(
    observations: Observations,
    x: Float[Array, "M P"],
    model: LMCModel,
    n_neighbours: int,
    directions: ParameterDirections,
    *,
    device: str = "cpu",
) -> Float[Array, "M D D"]:
    """Return the covariance that uncertain parameters add to predictions from other sites.

    The model must have one member.
    """
    found = np.zeros((len(x), *model.noise.shape))
    scale = distance_scales(model.kernels, x.shape[1])
    for group in model.coupled_outputs():
        changes, d = model.directions_of(group, for_readings(directions, True)), group.outputs
        if changes is not None:
            cov, slopes = differentiate_group(
                observations, x, scale, n_neighbours, group, changes, other_sites=True,
                device=device,
            )  # fmt: skip
            found[:, d[:, None], d] = changes.increase(cov, slopes, group.noise) - cov
    return found


def combine_left_out(
    rule: str | Callable[..., Any],
    members: GaussianMixture,
    table: Observations,
    sets: Int[Array, "D N"],
    model: LMCModel,
) -> GaussianMixture:
    """Combine the members' predictions of left-out readings; return N(0, 1) where none exists."""
    N, D = table.n_sites, table.n_outputs
    if keeps_members(rule):
        observed = table.observed.T
        both = observed[:, :, None] & observed[:, None, :]
        return GaussianMixture(
            np.where(observed, members.mean, 0.0), np.where(both, members.cov, np.eye(D))
        )
    result = GaussianMixture(np.zeros((1, N, D)), np.tile(np.eye(D), (1, N, 1, 1)))
    prior = model.prior_covariance(table.x)
    for rows, d, sample in left_out_together(table, sets):
        zero = GaussianMixture(np.zeros((1, len(rows), D)), np.zeros((1, len(rows), D, D)))
        _, priors, noise = noise_given_sample(zero, prior[:, rows], model.noise, sample)
        # Rules are applied to distributions without noise, which is added afterwards.
        noise = noise[:, d[:, None], d]
        at, at_pairs = (rows[:, None], d), (rows[:, None, None], d[:, None], d)
        mean, cov = join(
            rule,
            members.mean[:, *at],
            members.cov[:, *at_pairs] - noise,
            priors[:, :, d[:, None], d],
        )
        result.mean[:, *at] = mean
        result.cov[:, *at_pairs] = cov + noise
    return result


def left_out_together(
    observations: Observations, sets: Int[Array, "D N"]
) -> Iterator[tuple[Int[Array, " m"], Int[Array, " d"], Float[Array, "m D"] | None]]:
    """Yield groups of sites at which the same outputs are left out together.

    Each group consists of the sites, these outputs, and a table of all other readings at the sites
    (None if there are no other readings).
    """
    readings = observations.table
    # Label each set with its first output at the site, so that sites at which the same outputs are
    # left out together have equal labels.
    pattern = np.full(sets.shape, -1)
    predicted = observations.observed & (sets >= 0)
    for d in range(len(sets))[::-1]:
        same = (sets == sets[d]) & predicted
        pattern = np.where(same & predicted[d], d, pattern)
    for labels in np.unique(pattern, axis=1).T:
        rows = np.flatnonzero((pattern == labels[:, None]).all(axis=0))
        for label in np.unique(labels[labels >= 0]):
            left_out = labels == label
            others = np.where(left_out, np.nan, readings[rows])
            yield rows, np.flatnonzero(left_out), None if np.isnan(others).all() else others


class _RemainingNeighbours:
    """A search for the nearest readings of each output that are not left out."""

    def __init__(
        self, observations: Observations, sets: Int[Array, "D N"], scale: Float[Array, " P"], n: int
    ) -> None:
        self.x, self.n = observations.x / scale, n
        measured = [d for d, observed in enumerate(observations.observed) if observed.any()]
        masks = [observations.observed[d] for d in measured]
        trees = list(thread_map(partial(observations.tree, scale), masks))
        self.trees = [
            (sets[d], np.flatnonzero(observations.observed[d]), tree)
            for d, tree in zip(measured, trees, strict=True)
        ]

    def neighbours(self, site: Int[Array, " m"], label: Int[Array, " m"]) -> Int[Array, "m w"]:
        """Return the other sites near each site, without repetitions; rows are padded with −1."""
        nearest = thread_map(lambda tree: self._nearest(*tree, site, label), self.trees)
        found = np.concatenate(list(nearest), axis=1)
        found[found == site[:, None]] = -1
        return unique_per_row(found)

    def _nearest(
        self,
        sets: Int[Array, " N"],
        sites: Int[Array, " n"],
        tree: KDTree,
        site: Int[Array, " m"],
        label: Int[Array, " m"],
    ) -> Int[Array, "m w"]:
        nearest = np.full((len(site), self.n), -1)
        rows = np.arange(len(site))
        k = self.n + 1
        while len(rows):  # search farther if too many of the nearest readings are left out
            k = min(k, len(sites))
            if k > MAX_SEARCHED:
                groups = [rows[label[rows] == left_out] for left_out in np.unique(label[rows])]
                search = partial(self._nearest_remaining, sets, sites, site, label)
                for group, found in zip(groups, thread_map(search, groups), strict=True):
                    nearest[group, : found.shape[1]] = found
                break
            found = sites[tree.query(self.x[site[rows]], k=range(1, k + 1))[1]]
            kept = sets[found] != label[rows, None]
            complete = (kept.sum(axis=1) >= self.n) | (k == len(sites))
            rank = np.cumsum(kept, axis=1)
            row, column = np.nonzero(kept & (rank <= self.n) & complete[:, None])
            nearest[rows[row], rank[row, column] - 1] = found[row, column]
            rows, k = rows[~complete], 2 * k
        return nearest

    def _nearest_remaining(
        self,
        sets: Int[Array, " N"],
        sites: Int[Array, " n"],
        site: Int[Array, " m"],
        label: Int[Array, " m"],
        rows: Int[Array, " r"],
    ) -> Int[Array, "r k"]:
        """Search all readings but those of one set, for rows with this label."""
        remaining = sites[sets[sites] != label[rows[0]]]
        k = min(self.n, len(remaining))
        if not k:
            return np.empty((len(rows), 0), int)
        nearest = kd_tree(self.x[remaining]).query(self.x[site[rows]], k=range(1, k + 1))[1]
        return np.asarray(remaining[nearest])


def _problems(
    observed: Bool[Array, "D N"], sets: Int[Array, "D N"]
) -> tuple[Int[Array, " m"], Int[Array, " m"]]:
    """Return all pairs of a site and a set that contains a reading at this site."""
    predicted = observed & (sets >= 0)
    _, site = np.nonzero(predicted)
    pairs = np.unique(np.column_stack([site, sets[predicted]]), axis=0)
    return pairs[:, 0], pairs[:, 1]


def _shared_systems(
    blocks: Int[Array, "m n"], excluded: Bool[Array, "m D n"]
) -> tuple[Int[Array, " m"], Int[Array, " s"]]:
    """Return the number of each problem's system of equations, and the first problem of each.

    Problems at one site have the same system if they have the same neighbours and all of the
    neighbours' readings are used. They differ only in the readings of the site that are left out.
    """
    elsewhere = excluded.any(axis=(1, 2))
    own = np.where(elsewhere, np.arange(len(blocks)), -1)
    _, first, system = np.unique(
        np.column_stack([blocks, own]), axis=0, return_index=True, return_inverse=True
    )
    return system.reshape(-1), first


def _solve_at_sites(
    table: Observations,
    blocks: Int[Array, "m n"],
    excluded: Bool[Array, "m D n"],
    group: CoupledOutputs,
    device: str,
) -> Iterator[tuple[Float[Array, "m D D"], Float[Array, "m D"]]]:
    """For each member, yield P and P y of the readings at the first site of each block."""
    D, n = table.n_outputs, int((blocks >= 0).sum(axis=1).max())  # the other sites are −1
    tables = table.at(blocks[:, :n])
    observed = tables.observed & ~excluded[..., :n]
    tables = Observations(tables.x, np.where(observed, tables.y, 0.0), observed)
    first = np.broadcast_to(np.eye(D * n)[:, ::n], (len(blocks), D * n, D))
    rhs = to_device(np.concatenate([first, tables.stacked[..., None]], axis=-1), device)
    tables, (B, noise) = tables.to(device), group.to(device)
    K = kernel_matrices(group.kernels, tables.x)
    for member in range(len(B)):
        solved = to_numpy(factor_readings(tables, B[member], noise, K).solve(rhs)[:, ::n])
        yield solved[..., :D], solved[..., D]


def _invert_sets(
    P: Float[Array, "m D D"], gamma: Float[Array, "m D"], S: Bool[Array, "m D"]
) -> tuple[Float[Array, "m D"], Float[Array, "m D D"]]:
    """Return P_SS⁻¹ γ_S and P_SS⁻¹ for every site, given its matrix P, vector γ and set S."""
    both = S[:, :, None] & S[:, None, :]
    cov = inv(np.where(both, P, np.eye(P.shape[-1])))
    return (cov @ np.where(S, gamma, 0.0)[..., None])[..., 0], cov


def _empty_result(observations: Observations, L: int) -> GaussianMixture:
    """Return means and covariances filled with zeros, or NaN where there is no reading."""
    observed = observations.observed.T
    both = observed[:, :, None] & observed[:, None, :]
    mean, cov = np.where(observed, 0.0, np.nan), np.where(both, 0.0, np.nan)
    return GaussianMixture(np.tile(mean, (L, 1, 1)), np.tile(cov, (L, 1, 1, 1)))


def _assign(
    result: GaussianMixture,
    member: int,
    site: Int[Array, " m"],
    outputs: Int[Array, " D"],
    S: Bool[Array, "m D"],
    mean: Float[Array, "m D"],
    cov: Float[Array, "m D D"],
) -> None:
    """Write the predicted mean and covariance of the readings S at each site to `result`."""
    row, d = np.nonzero(S)
    result.mean[member, site[row], outputs[d]] = mean[row, d]
    row, d, e = np.nonzero(S[:, :, None] & S[:, None, :])
    result.cov[member, site[row], outputs[d], outputs[e]] = cov[row, d, e]
