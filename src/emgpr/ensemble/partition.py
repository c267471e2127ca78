"""Partition of the sites into batches, one for each member."""

import numpy as np
from jaxtyping import Float, Int

from emgpr.sampling import clustered_batches

Array = np.ndarray

PARTITIONS = ("stratified", "random", "strided")


def split_sites(
    x: Float[Array, "N P"],
    batch_size: int | None,
    partition: str = "stratified",
    rng: np.random.Generator | None = None,
    n_batches: int | None = None,
) -> list[Int[Array, " _"]]:
    """Divide N sites into L = ⌊N / batch_size⌋ batches; return all, or the first `n_batches`.

    - "strided": batch k consists of the sites k, L+k, 2L+k and so on, as in the paper. If the sites
      form a grid that is stored line by line, a batch may consist of a few columns of the grid.
    - "random": sites are assigned at random. A small batch from many sites then has hardly any
      sites that are close to each other.
    - "stratified": each batch consists of clusters of neighbouring sites from the whole region.

    >>> [batch.tolist() for batch in split_sites(np.zeros((7, 2)), 3, "strided")]
    [[0, 2, 4, 6], [1, 3, 5]]
    """
    N = len(x)
    L = 1 if batch_size is None else max(1, N // batch_size)
    if L == 1:
        return [np.arange(N)]
    rng = rng or np.random.default_rng()
    if partition == "stratified":
        return clustered_batches(x, L, rng, n_batches)
    order = np.arange(N) if partition == "strided" else rng.permutation(N)
    return [np.sort(order[k::L]) for k in range(L)[:n_batches]]
