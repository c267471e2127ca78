"""Places that stand for all sites, and blocks of sites that lie together."""

import numpy as np
from jaxtyping import Float, Int

Array = np.ndarray

AMONG = 50  # sites for each point that is chosen, of which it may be one


def inducing_points(x: Float[Array, "n P"], m: int) -> Float[Array, "k P"]:
    """At most m of the sites, spread over all by k-means++ on columns of one variance.

    >>> inducing_points(np.array([[0.0], [0.1], [5.0], [5.1], [5.1]]), 9).ravel()
    array([0. , 0.1, 5. , 5.1])
    """
    from sklearn.cluster import kmeans_plusplus  # slow to import

    if len(x) > AMONG * m:
        x = x[np.random.default_rng(0).choice(len(x), AMONG * m, replace=False)]
    sites = np.unique(x, axis=0)
    if len(sites) <= m:
        return sites
    spread = sites.std(axis=0)
    _, chosen = kmeans_plusplus(sites / np.where(spread > 0, spread, 1.0), m, random_state=0)
    return sites[np.sort(chosen)]


def blocks(x: Float[Array, "n P"], most: int) -> list[Int[Array, " _"]]:
    """The sites in blocks of at most so many neighbours: halved across until they are.

    >>> [block.tolist() for block in blocks(np.array([[0.0], [9.0], [1.0], [8.0]]), 2)]
    [[0, 2], [3, 1]]
    """
    spread = np.where(np.ptp(x, axis=0) > 0, np.ptp(x, axis=0), 1.0)
    waiting, done = [np.arange(len(x))], []
    while waiting:
        block = waiting.pop()
        if len(block) <= most:
            done.append(block)
            continue
        longest = int(np.argmax(np.ptp(x[block], axis=0) / spread))
        order = block[np.argsort(x[block, longest], kind="stable")]
        waiting += [order[len(order) // 2 :], order[: len(order) // 2]]
    return done
