"""Choice of inducing points, and division of sites into blocks of neighbours."""

import numpy as np
from jaxtyping import Float, Int

Array = np.ndarray

CANDIDATES_PER_POINT = 50  # maximum number of candidate sites for each inducing point


def inducing_points(x: Float[Array, "n P"], m: int) -> Float[Array, "k P"]:
    """Choose at most m sites using k-means++, with the columns of x scaled to unit variance.

    >>> inducing_points(np.array([[0.0], [0.1], [5.0], [5.1], [5.1]]), 9).ravel()
    array([0. , 0.1, 5. , 5.1])
    """
    from sklearn.cluster import kmeans_plusplus  # slow to import

    n_candidates = CANDIDATES_PER_POINT * m
    if len(x) > n_candidates:
        x = x[np.random.default_rng(0).choice(len(x), n_candidates, replace=False)]
    sites = np.unique(x, axis=0)
    if len(sites) <= m:
        return sites
    scale = sites.std(axis=0)
    _, chosen = kmeans_plusplus(sites / np.where(scale > 0, scale, 1.0), m, random_state=0)
    return sites[np.sort(chosen)]


def neighbour_blocks(x: Float[Array, "n P"], max_size: int) -> list[Int[Array, " _"]]:
    """Divide the sites into blocks of at most `max_size` neighbours.

    A block that is too large is split in half along its longest side.

    >>> [block.tolist() for block in neighbour_blocks(np.array([[0.0], [9.0], [1.0], [8.0]]), 2)]
    [[0, 2], [3, 1]]
    """
    extent = np.where(np.ptp(x, axis=0) > 0, np.ptp(x, axis=0), 1.0)
    pending, blocks = [np.arange(len(x))], []
    while pending:
        block = pending.pop()
        if len(block) <= max_size:
            blocks.append(block)
            continue
        longest = int(np.argmax(np.ptp(x[block], axis=0) / extent))
        order = block[np.argsort(x[block, longest], kind="stable")]
        pending += [order[len(order) // 2 :], order[: len(order) // 2]]
    return blocks
