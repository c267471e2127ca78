"""Orders of sites, and the nearest earlier sites of each site in such an order."""

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

Array = np.ndarray

MAX_MAXIMIN_SITES = 5000  # for more sites, the order is pseudo-random
FIRST_SITES = 512  # sites whose neighbours are found by computing all distances


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
    distance = np.full(len(x), np.inf)
    current = int(np.argmin(((x - x.mean(axis=0)) ** 2).sum(axis=1)))
    for i in range(len(x)):
        chosen[i] = current
        np.minimum(distance, ((x - x[current]) ** 2).sum(axis=1), out=distance)
        distance[current] = -1.0
        current = int(np.argmax(distance))
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
    while start < N:
        end = min(2 * start, N)
        at, k = np.flatnonzero((rows >= start) & (rows < end)), 2 * n + 8
        tree = KDTree(x[:end]) if len(at) else None
        while tree is not None and len(at):
            k = min(k, end)
            _, nearest = tree.query(x[rows[at]], k=k, workers=workers)
            earlier = nearest < rows[at, None]
            enough = earlier.sum(axis=1) >= n
            # A stable sort puts the earlier sites first and keeps them in order of distance.
            by_distance = np.argsort(~earlier[enough], axis=1, kind="stable")[:, :n]
            found[at[enough]] = np.take_along_axis(nearest[enough], by_distance, 1)[:, ::-1]
            at, k = at[~enough], 2 * k
        start = end
    return found
