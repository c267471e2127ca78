"""Sites chosen so that short distances show as well as long ones.

Of very many sites, a few hundred at random are all far apart: what varies between neighbours looks
like noise to them, and a prediction from neighbours then smooths it away. Here sites go to batches
in clusters of neighbours, and every batch has one cluster from each part of the region.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

Array = np.ndarray

CLUSTERS = 12  # in a batch
MANY = 5000  # sites; of more, so many tell how far neighbours are
REPEATS = 8  # of one site, beyond which all are looked through for another


def in_clusters(
    x: Float[Array, "N P"], n_batches: int, rng: np.random.Generator, wanted: int | None = None
) -> list[Int[Array, " _"]]:
    """The sites dealt to batches, each to one; as many of the batches as are wanted.

    A k-d tree puts the sites into an order in which neighbours follow each other. A twelfth of it
    after another, every batch gets a run from each, which one at random. Sizes differ by one at
    most.

    >>> first, second = in_clusters(np.arange(96.0)[:, None], 2, np.random.default_rng(0))
    >>> first[:12]
    array([ 0,  1,  2,  3,  8,  9, 10, 11, 16, 17, 18, 19])
    """
    N, L = len(x), n_batches
    rows = max(1, min(CLUSTERS, N // L))
    size, left = divmod(N, rows * L)
    sizes = np.full((rows, L), size)
    sizes.ravel()[:left] += 1  # whole rows, so that no batch gets two more than another
    owners = np.stack([rng.permutation(L) for _ in range(rows)])
    whose = np.repeat(owners.ravel(), sizes.ravel())
    spread = x.std(axis=0)
    order = KDTree(x / np.where(spread > 0, spread, 1.0), leafsize=max(1, size)).indices
    by_batch = order[np.argsort(whose, kind="stable")]
    ends = np.cumsum(np.bincount(whose, minlength=L))[:-1]
    return [np.sort(part) for part in np.split(by_batch, ends)[:wanted]]


def with_nearest(x: Float[Array, "N P"]) -> tuple[Float[Array, "n P"], Float[Array, "n P"]]:
    """Different sites, or some of very many, and the nearest other one to each; or none, of one.

    >>> sites, nearest = with_nearest(np.array([[0.0], [3.0], [3.0], [4.0]]))
    >>> nearest.ravel()
    array([3., 4., 3.])
    """
    if len(x) > MANY:
        some = np.random.default_rng(0).choice(len(x), MANY, replace=False)
        # Not balanced: it is made in a third of the time, and asked little.
        tree = KDTree(x, balanced_tree=False, compact_nodes=False)
        distance, near = tree.query(x[some], k=REPEATS)
        if distance[:, -1].all():
            first = np.argmax(distance > 0, axis=1)
            return x[some], x[near[np.arange(MANY), first]]
    sites = np.unique(x, axis=0)
    if len(sites) < 2:
        return sites[:0], sites[:0]
    return sites, sites[KDTree(sites).query(sites, k=2)[1][:, 1]]
