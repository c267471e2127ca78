"""Orders of sites, the nearest earlier sites in an order, and the sites around a location."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

Array = np.ndarray

MAX_STORED_DISTANCES = 2000  # sites for which all distances are computed at once
MAX_MAXIMIN_SITES = 5000  # for more sites, the order is pseudo-random
FIRST_SITES = 512  # sites whose neighbours are found by computing all distances
MIN_SORTED_QUERIES = 5000  # so many sites are sorted before their neighbours are searched
ROWS_PER_PART = 10_000  # sites whose neighbours are searched in one thread at a time
GROWTH, LARGE_GROWTH = 2, 16  # of the subsets of sites among which neighbours are searched
COARSEN = 4  # each subset of the sites in `SurroundingSites` is smaller by this factor
MIN_COARSE_SITES = 16  # in the smallest of these subsets
POOL = 3  # nearest sites among which sectors are searched, for each site to be found
MAX_DIRECTED_INPUTS = 3  # with more inputs, only the nearest sites are used
MAX_BALANCED_SITES = 10_000  # of more sites, unbalanced trees are built
REPEATED = -2  # instead of a sector, marks sites that were found before


def extents(x: Float[Array, "N P"]) -> Float[Array, " P"]:
    """Return the range of each column; column by column, this takes a fraction of the time.

    >>> extents(np.array([[0.0, 1.0], [2.0, 5.0]]))
    array([2., 4.])
    """
    return np.array([np.ptp(column) for column in x.T])


def kd_tree(x: Float[Array, "N P"]) -> KDTree:
    """Return a k-d tree; building an unbalanced one takes a third of the time for many sites."""
    balanced = len(x) <= MAX_BALANCED_SITES
    return KDTree(x, balanced_tree=balanced, compact_nodes=balanced)


def spread_order(x: Float[Array, "N P"]) -> Int[Array, " N"]:
    """Return an order in which the first sites, however many, are spread over the whole region.

    The order depends on the locations, not on the order of the rows. It begins with the site
    closest to the centre, and continues with the site that is farthest from all sites before it
    (maximin order). For many sites, a pseudo-random order is used instead.

    >>> spread_order(np.array([[0.0], [1.0], [2.0], [3.0], [4.0]])).tolist()[:3]
    [2, 0, 4]
    """
    order = pseudo_random_order(x)
    if len(x) > MAX_MAXIMIN_SITES or len(x) < 3:
        return order
    x = x[order]
    chosen = np.empty(len(x), int)
    nearest = np.full(len(x), np.inf)  # squared distance to the nearest chosen site
    current = int(np.argmin(((x - x.mean(axis=0)) ** 2).sum(axis=1)))
    rows = cdist(x, x, "sqeuclidean") if len(x) <= MAX_STORED_DISTANCES else None
    for i in range(len(x)):
        chosen[i] = current
        row = cdist(x[[current]], x, "sqeuclidean")[0] if rows is None else rows[current]
        np.minimum(nearest, row, out=nearest)
        nearest[current] = -1.0
        current = int(nearest.argmax())
    return order[chosen]


def pseudo_random_order(x: Float[Array, "N P"]) -> Int[Array, " N"]:
    """Return an order of the sites that looks random, but depends on their locations only."""
    return np.argsort(_hash_ranks(x), kind="stable")


def _hash_ranks(x: Float[Array, "N P"]) -> Int[Array, " N"]:
    """Return pseudo-random numbers that depend on the rank of each coordinate, not on its unit."""
    key = np.zeros(len(x), np.uint64)
    for column in x.T:
        rank = np.unique(column, return_inverse=True)[1].astype(np.uint64)
        key = (key ^ rank) * np.uint64(0x9E3779B97F4A7C15)
        key = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(32)
    return (key >> np.uint64(1)).astype(np.int64)


def earlier_neighbours(
    x: Float[Array, "N P"],
    n: int,
    rows: Int[Array, " M"] | None = None,
    workers: int = 1,
) -> Int[Array, "M n"]:
    """Return the n nearest sites among those before each site in `rows` (default: all sites).

    The nearest site is last. If there are fewer than n earlier sites, −1 is added in front.

    >>> earlier_neighbours(np.array([[0.0], [4.0], [1.0], [3.0]]), 2)
    array([[-1, -1],
           [-1,  0],
           [ 1,  0],
           [ 2,  1]])
    """
    N = len(x)
    rows = np.arange(N) if rows is None else rows
    n = min(n, max(N - 1, 0))
    found = np.full((len(rows), n), -1)
    if not n:
        return found
    first = min(N, max(FIRST_SITES, 2 * n))
    at = np.flatnonzero(rows < first)
    distances = cdist(x[rows[at]], x[:first])
    distances[np.arange(first) >= rows[at, None]] = np.inf
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :n]
    exists = np.take_along_axis(distances, nearest, 1) < np.inf
    found[at] = np.where(exists, nearest, -1)[:, ::-1]
    start = first
    # For few rows, most of the time is needed to build the trees, so that there are fewer of them.
    growth = GROWTH if LARGE_GROWTH * len(rows) > N else LARGE_GROWTH
    while start < N:
        end = min(growth * start, N)
        at = np.flatnonzero((rows >= start) & (rows < end))
        if len(at):
            # Building an unbalanced tree takes half the time, and a search in it takes no longer.
            tree = KDTree(x[:end], balanced_tree=False, compact_nodes=False)
            if len(at) > MIN_SORTED_QUERIES:
                # Queries in the order of the tree take half the time, because they share its nodes.
                position = np.empty(end, int)
                position[tree.indices] = np.arange(end)
                at = at[np.argsort(position[rows[at]])]
            parts = np.array_split(at, -(-len(at) // ROWS_PER_PART))
            with ThreadPoolExecutor(workers) as pool:
                search = partial(_earlier_in_tree, tree, n=n)
                for part, sites in zip(parts, pool.map(search, map(rows.take, parts)), strict=True):
                    found[part] = sites
        start = end
    return found


def _earlier_in_tree(tree: KDTree, rows: Int[Array, " m"], n: int) -> Int[Array, "m n"]:
    """Return the n nearest sites of a tree that are before each row of it; the nearest is last."""
    found = np.empty((len(rows), n), int)
    at, k = np.arange(len(rows)), 2 * n + 8
    while len(at):
        k = min(k, tree.n)
        _, nearest = tree.query(tree.data[rows[at]], k=k)
        earlier = nearest < rows[at, None]
        enough = earlier.sum(axis=1) >= n
        # A stable sort puts the earlier sites first and keeps them in order of distance.
        by_distance = np.argsort(~earlier[enough], axis=1, kind="stable")[:, :n]
        found[at[enough]] = np.take_along_axis(nearest[enough], by_distance, 1)[:, ::-1]
        at, k = at[~enough], 2 * k
    return found


class SurroundingSites:
    """A search for sites that are near a location and lie in different directions from it.

    Half of the sites are the nearest ones in each of several sectors; the other half are the
    nearest of all other sites. Inside a gap, the nearest sites alone would all lie on one side.
    A sector is the set of locations whose direction is closest to one of those of `compass`.

    The sectors are searched among the nearest sites first. For locations with too few sites in a
    sector, the search is repeated among a quarter of all sites, a sixteenth, and so on, which are
    spread over the whole region and reach farther. The sites are those of a k-d tree, and `order`
    is an order in which the first ones, however many, are spread over the region.

    >>> x = np.array([[0.0], [0.1], [0.2], [0.3], [5.0]])
    >>> SurroundingSites(kd_tree(x), spread_order(x)).search(np.array([[0.4]]), 3)
    array([[3, 4, 2]])
    """

    def __init__(self, tree: KDTree, order: Int[Array, " N"]) -> None:
        self.x: Array = tree.data
        self.directions = compass(tree.m)
        self.trees = [(np.arange(tree.n), tree)]
        size = tree.n // COARSEN
        while size >= MIN_COARSE_SITES and len(self.directions):
            self.trees.append((order[:size], kd_tree(self.x[order[:size]])))
            size //= COARSEN

    def search(self, at: Float[Array, "m P"], n: int) -> Int[Array, "m n"]:
        """Return n sites that surround each location; fewer only if there are fewer sites."""
        n, S = min(n, len(self.x)), len(self.directions)
        if not 0 < S <= n < len(self.x):
            sites, tree = self.trees[0]
            return sites[tree.query(at, k=range(1, n + 1))[1]]
        quota = -(-n // (2 * S))
        found = np.empty((len(at), n), int)
        rows: Array = np.arange(len(at))
        candidates: Array = np.empty((len(at), 0), int)
        new, sector = candidates, candidates.astype(np.int8)
        for sites, tree in self.trees:
            last = sites is self.trees[-1][0]
            k = len(sites) if last else min(POOL * n, len(sites))  # the last subset is small
            _, nearest = tree.query(at[rows], k=range(1, k + 1))
            previous, new = new, sites[nearest]
            again = (new[:, :, None] == previous[:, None, :]).any(axis=2)
            candidates = np.concatenate([candidates, new], axis=1)
            new_sector = np.where(again, REPEATED, self._sectors(at[rows], new))
            sector = np.concatenate([sector, new_sector], axis=1)
            chosen, complete = _first_in_sectors(sector, S, quota)
            complete |= last
            # A stable sort keeps the order of the distances.
            preference = np.where(sector == REPEATED, 2, ~chosen)[complete]
            best = np.argsort(preference, axis=1, kind="stable")[:, :n]
            found[rows[complete]] = np.take_along_axis(candidates[complete], best, 1)
            rows, candidates, new, sector = (
                part[~complete] for part in (rows, candidates, new, sector)
            )
            if not len(rows):
                break
        return found

    def _sectors(self, at: Float[Array, "m P"], sites: Int[Array, "m k"]) -> Int[Array, "m k"]:
        """Return the direction closest to that of each site; −1 for a site at the location."""
        offset = self.x[sites] - at[:, None]
        # With two axes, there is one matrix product instead of one for each location.
        along = offset.reshape(-1, offset.shape[-1]) @ self.directions.T
        sector = np.argmax(along, axis=-1).astype(np.int8).reshape(sites.shape)
        return np.where((offset == 0).all(axis=-1), np.int8(-1), sector)


def _first_in_sectors(
    sector: Int[Array, "m k"], S: int, quota: int
) -> tuple[Bool[Array, "m k"], Bool[Array, " m"]]:
    """Mark the first `quota` sites in each sector, and the rows in which every sector has so many.

    >>> _first_in_sectors(np.array([[0, 0, 1], [1, -1, 1]], np.int8), S=2, quota=1)
    (array([[ True, False,  True],
           [ True, False, False]]), array([ True, False]))
    """
    by_site = np.ascontiguousarray(sector.T)  # sums over the first axis take a third of the time
    chosen = np.zeros(by_site.shape, bool)
    complete = np.ones(len(sector), bool)
    for s in range(S):
        inside = by_site == s
        rank = np.cumsum(inside, axis=0, dtype=np.int16)
        chosen |= inside & (rank <= quota)
        complete &= rank[-1] >= quota
    return chosen.T, complete


def compass(P: int) -> Float[Array, "S P"]:
    """Return unit vectors in the directions of the axes; in a plane, also of the diagonals.

    There are no directions if there are more than three inputs, because a location would need too
    many neighbours in order to be surrounded.

    >>> compass(1)
    array([[ 1.],
           [-1.]])
    >>> [len(compass(P)) for P in (2, 3, 4)]
    [8, 6, 0]
    """
    if P > MAX_DIRECTED_INPUTS:
        return np.empty((0, P))
    axes = np.concatenate([np.eye(P), -np.eye(P)])
    if P != 2:
        return axes
    diagonals = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]) / np.sqrt(2)
    return np.concatenate([axes, diagonals])
