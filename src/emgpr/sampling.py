"""Samples of sites that contain short as well as long distances.

A few hundred random sites from a very large table are far apart. A model fitted to them would treat
the variation between neighbours as noise and smooth it away in predictions. Sites are therefore
assigned to batches in clusters of neighbours. Every batch has one cluster from each part of the
region.
"""

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import KDTree

Array = np.ndarray

CLUSTERS_PER_BATCH = 12


def clustered_batches(
    x: Float[Array, "N P"], n_batches: int, rng: np.random.Generator, wanted: int | None = None
) -> list[Int[Array, " _"]]:
    """Divide the sites into batches of clusters; return all or only the first `wanted` batches.

    A k-d tree orders the sites so that neighbours get similar positions. The ordered sites are
    divided into up to twelve parts. Each part is divided into as many clusters as there are
    batches, and every batch gets one of them at random. The sizes of the batches differ by at
    most one.

    >>> first, second = clustered_batches(np.arange(96.0)[:, None], 2, np.random.default_rng(0))
    >>> first[:12]
    array([ 0,  1,  2,  3,  8,  9, 10, 11, 16, 17, 18, 19])
    """
    N, L = len(x), n_batches
    parts = max(1, min(CLUSTERS_PER_BATCH, N // L))
    size, remainder = divmod(N, parts * L)
    sizes = np.full((parts, L), size)
    sizes.ravel()[:remainder] += 1  # part by part, so that batch sizes differ by at most one
    owners = np.stack([rng.permutation(L) for _ in range(parts)])
    batch = np.repeat(owners.ravel(), sizes.ravel())
    std = x.std(axis=0)
    order = KDTree(x / np.where(std > 0, std, 1.0), leafsize=max(1, size)).indices
    by_batch = order[np.argsort(batch, kind="stable")]
    ends = np.cumsum(np.bincount(batch, minlength=L))[:-1]
    return [np.sort(sites) for sites in np.split(by_batch, ends)[:wanted]]
