"""What the other readings say of those left out, with the hyper-parameters as they are.

With P = cov⁻¹ of all readings, the belief about the readings S given all others is

    mean_S = y_S − P_SS⁻¹ (P y)_S,   cov_S = P_SS⁻¹

so one inverse answers for every set that may be left out. What is left out
together is said by `sets`, a table (D, N) of numbers: readings that share a number
leave together. Beliefs are about readings, noise included; NaN where none was made.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Kernel

from emgpr.arrays import factor, fetch, like, namespace, put, room
from emgpr.covariance.dense import coregionalization, readings
from emgpr.kernels import matrices
from emgpr.observations import Observations
from emgpr.prediction.condition import Belief, condition, coupled
from emgpr.prediction.neighbours import column_scales

Array = np.ndarray


def held_out(
    known: Observations,
    sets: Int[Array, "D N"],
    kernels: Sequence[Kernel],
    W: Float[Array, "L Q D k"],
    noise: Float[Array, "D D"],
    *,
    device: str = "cpu",
) -> Belief:
    """Each reading given all readings but those of its set, for every member's weights.

    Covariances are of readings of one site that leave together, zero between others.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> table = Observations.from_table(np.array([[0.0], [0.0]]), np.array([[1.0], [3.0]]))
    >>> one_by_one = np.array([[0, 1]])
    >>> belief = held_out(table, one_by_one, [RBF()], np.ones((1, 1, 1, 1)), np.eye(1))
    >>> belief.mean[0, :, 0]                     # half of what the other one reads
    array([1.5, 0.5])
    """
    belief = _nothing(known, len(W))
    B = coregionalization(W)
    for tasks, latents in coupled(B, noise):
        sites = np.flatnonzero(known.seen[tasks].any(axis=0))
        if not len(sites):  # a batch may hold no reading of an output
            continue
        block = Observations(known.x, known.y[tasks], known.seen[tasks]).at(sites)
        left_out = list(_by_size(block.seen, sets[np.ix_(tasks, sites)]))
        block, own = block.on(device), put(noise[np.ix_(tasks, tasks)], device)
        K = matrices([kernels[q] for q in latents], block.x)
        for member in range(len(W)):
            B_block = put(B[member][latents][:, tasks][..., tasks], device)
            L_factor = factor(partial(readings, block, B_block, own, K)).checked(
                f"covariance of the {block.n_readings} readings cross-validated"
            )
            gamma, P = L_factor.solve(block.stacked[:, None])[:, 0], L_factor.inverse()
            for S in left_out:
                there = like(S, P)
                inner = namespace(P).linalg.inv(P[there[:, :, None], there[:, None, :]])
                shift = fetch(inner @ gamma[there][..., None])[..., 0]
                cov = fetch(inner)
                task, site = tasks[S // len(sites)], sites[S % len(sites)]
                belief.mean[member, site, task] = known.y[task, site] - shift
                pair = np.nonzero(site[:, :, None] == site[:, None, :])
                a, b = pair[:2], (pair[0], pair[2])
                belief.cov[member, site[a], task[a], task[b]] = cov[pair]
    return belief


def held_out_of_neighbours(
    known: Observations,
    sets: Int[Array, "D N"],
    kernels: Sequence[Kernel],
    W: Float[Array, "L Q D k"],
    noise: Float[Array, "D D"],
    n_neighbours: int,
    asked: Int[Array, " M"] | None = None,
    *,
    device: str = "cpu",
) -> Belief:
    """Each reading given the `n_neighbours` nearest of each output that do not leave with it.

    Of all sites, or of those that are asked.
    """
    asked = np.arange(known.n_sites) if asked is None else asked
    belief = _nothing(known.at(asked), len(W))
    B = coregionalization(W)
    scale = column_scales(kernels, known.x.shape[1])
    for tasks, latents in coupled(B, noise):
        block = Observations(known.x, known.y[tasks], known.seen[tasks])
        own = put(noise[np.ix_(tasks, tasks)], device)
        labels = sets[tasks]
        often = 10 * len(asked) > known.n_sites
        near = _Remaining(block, labels, scale, n_neighbours, often=often)
        D = len(tasks)
        width = min(D * n_neighbours, known.n_sites) + 1
        step = max(1, int(room(device) // (8 * width**2 * (3 * D * D + len(latents) + 2))))
        row, label = _problems(block.seen[:, asked], labels[:, asked])
        for start in range(0, len(row), step):
            here, of = row[start : start + step], label[start : start + step]
            at = asked[here]
            around = near.of(at, of)
            sites = np.concatenate([at[:, None], around], axis=1)  # the place itself comes first
            tables = block.at(sites)
            leaves = np.moveaxis(labels[:, sites], 0, 1) == of[:, None, None]
            S = leaves[:, :, 0] & tables.seen[:, :, 0]
            leaves[:, :, 0] = False  # what is asked stays in its table; others of its set do not
            seen = tables.seen & ~leaves
            tables = Observations(tables.x, np.where(seen, tables.y, 0.0), seen)
            n = sites.shape[1]
            y = tables.stacked[..., None]
            first = np.eye(D * n)[:, ::n]
            rhs = np.concatenate([np.broadcast_to(first, (len(at), *first.shape)), y], axis=-1)
            there, rhs = tables.on(device), put(rhs, device)
            K = matrices([kernels[q] for q in latents], there.x)
            for member in range(len(W)):
                B_block = put(B[member][latents][:, tasks][..., tasks], device)
                L_factor = factor(partial(readings, there, B_block, own, K)).checked(
                    f"covariance of {n} neighbouring sites"
                )
                rows = fetch(L_factor.solve(rhs)[:, ::n])
                shift, cov = _without(rows[..., :D], rows[..., D], S)
                _put(belief, member, here, tasks, S, tables.y[:, :, 0] - shift, cov)
    return belief


def held_out_of_batch(
    known: Observations,
    part: Int[Array, " _"],
    sets: Int[Array, "D N"],
    kernels: Sequence[Kernel],
    W: Float[Array, "1 Q D k"],
    noise: Float[Array, "D D"],
    *,
    device: str = "cpu",
) -> Belief:
    """Each reading as a member says that knows only the sites of its batch, `part`.

    What remains of the very sample is known to it too, as `observed` would be.
    """
    belief = _nothing(known, 1)
    batch, own = known.at(part), sets[:, part]
    inside = held_out(batch, own, kernels, W, noise, device=device)
    belief.mean[:, part], belief.cov[:, part] = inside.mean, inside.cov
    outside = np.setdiff1d(np.arange(known.n_sites), part)
    site, label = _problems(known.seen[:, outside], sets[:, outside])
    site = outside[site]
    taken = np.intersect1d(label, own[batch.seen])  # sets of which the batch holds a part
    for left_out in [None, *taken.tolist()]:
        rows = ~np.isin(label, taken) if left_out is None else label == left_out
        at, of = site[rows], label[rows]
        if not len(at):
            continue
        kept = batch.seen if left_out is None else batch.seen & (own != left_out)
        rest = Observations(batch.x, np.where(kept, batch.y, 0.0), kept)
        signals = condition(rest, known.x[at], kernels, W, noise, device=device)
        seen = known.seen[:, at].T
        both = seen[:, :, None] & seen[:, None, :]
        cov = np.where(both, signals.cov[0] + noise, np.eye(len(noise)))
        P = np.linalg.inv(cov)
        y = np.where(seen, known.y[:, at].T - signals.mean[0], 0.0)
        S = seen & (of[:, None] == sets[:, at].T)
        shift, cov = _without(P, (P @ y[..., None])[..., 0], S)
        _put(belief, 0, at, np.arange(len(noise)), S, known.y[:, at].T - shift, cov)
    return belief


class _Remaining:
    """Finds the nearest readings of each output that do not leave with what is asked."""

    def __init__(
        self,
        known: Observations,
        sets: Int[Array, "D N"],
        scale: Float[Array, " P"],
        n: int,
        *,
        often: bool,
    ) -> None:
        self.x, self.sets, self.n = known.x / scale, sets, n
        # A tree that is asked little need not be balanced: it is made in a third of the time.
        self.trees = [
            (
                sets[d],
                np.flatnonzero(seen),
                KDTree(self.x[seen], balanced_tree=often, compact_nodes=often),
            )
            for d, seen in enumerate(known.seen)
            if seen.any()
        ]

    def of(self, site: Int[Array, " m"], label: Int[Array, " m"]) -> Int[Array, "m w"]:
        """Sites near each of these but itself, once each; −1 fills the row."""
        found = np.concatenate([self._of(*tree, site, label) for tree in self.trees], axis=1)
        found[found == site[:, None]] = -1
        found = np.sort(found, axis=1)
        found[:, 1:][found[:, 1:] == found[:, :-1]] = -1
        found = -np.sort(-found, axis=1)
        return found[:, : int((found >= 0).sum(axis=1).max(initial=0))]

    def _of(
        self,
        own: Int[Array, " N"],
        at: Int[Array, " n"],
        tree: KDTree,
        site: Int[Array, " m"],
        label: Int[Array, " m"],
    ) -> Int[Array, "m w"]:
        nearest = np.full((len(site), self.n), -1)
        rows = np.arange(len(site))
        k = self.n + 1
        while len(rows):  # where too many of the nearest leave, look further
            k = min(k, len(at))
            found = at[tree.query(self.x[site[rows]], k=range(1, k + 1))[1]]
            stays = own[found] != label[rows, None]
            enough = (stays.sum(axis=1) >= self.n) | (k == len(at))
            rank = np.cumsum(stays, axis=1)
            row, column = np.nonzero(stays & (rank <= self.n) & enough[:, None])
            nearest[rows[row], rank[row, column] - 1] = found[row, column]
            rows, k = rows[~enough], 2 * k
        return nearest


def _by_size(seen: Bool[Array, "D N"], sets: Int[Array, "D N"]) -> Iterator[Int[Array, "m s"]]:
    """Places of the readings of each set among the stacked, sets of one size at a time."""
    places = np.flatnonzero(seen.reshape(-1))
    label = sets.reshape(-1)[places]
    places = places[np.argsort(label, kind="stable")]
    size = np.unique(label, return_counts=True)[1]
    begin = np.cumsum(size) - size
    for s in np.unique(size):
        yield places[begin[size == s][:, None] + np.arange(s)]


def _problems(
    seen: Bool[Array, "D N"], sets: Int[Array, "D N"]
) -> tuple[Int[Array, " m"], Int[Array, " m"]]:
    """Every site with every set that leaves something there."""
    _, site = np.nonzero(seen)
    pairs = np.unique(np.column_stack([site, sets[seen]]), axis=0)
    return pairs[:, 0], pairs[:, 1]


def _without(
    P: Float[Array, "m D D"], gamma: Float[Array, "m D"], S: Bool[Array, "m D"]
) -> tuple[Float[Array, "m D"], Float[Array, "m D D"]]:
    """P_SS⁻¹ γ_S and P_SS⁻¹, with a set of its own for every site."""
    both = S[:, :, None] & S[:, None, :]
    cov = np.linalg.inv(np.where(both, P, np.eye(P.shape[-1])))
    return (cov @ np.where(S, gamma, 0.0)[..., None])[..., 0], cov


def _nothing(known: Observations, L: int) -> Belief:
    """No belief yet: NaN where no reading was made."""
    seen = known.seen.T
    both = seen[:, :, None] & seen[:, None, :]
    mean, cov = np.where(seen, 0.0, np.nan), np.where(both, 0.0, np.nan)
    return Belief(np.tile(mean, (L, 1, 1)), np.tile(cov, (L, 1, 1, 1)))


def _put(
    belief: Belief,
    member: int,
    site: Int[Array, " m"],
    tasks: Int[Array, " D"],
    S: Bool[Array, "m D"],
    mean: Float[Array, "m D"],
    cov: Float[Array, "m D D"],
) -> None:
    """Enter what is believed of the readings S of each site."""
    row, d = np.nonzero(S)
    belief.mean[member, site[row], tasks[d]] = mean[row, d]
    row, d, e = np.nonzero(S[:, :, None] & S[:, None, :])
    belief.cov[member, site[row], tasks[d], tasks[e]] = cov[row, d, e]
