"""Sites dealt to the members. Every site goes to one, none is left over."""

import numpy as np
from jaxtyping import Float, Int

from emgpr.sampling import in_clusters

Array = np.ndarray

PARTITIONS = ("stratified", "random", "strided")


def split_sites(
    x: Float[Array, "N P"],
    batch_size: int | None,
    partition: str = "stratified",
    rng: np.random.Generator | None = None,
    wanted: int | None = None,
) -> list[Int[Array, " _"]]:
    """L = ⌊N/N₀⌋ parts, or the first that are wanted.

    "strided" gives part k the sites k, L+k, 2L+k, … as in the paper. Strides alias with data stored
    line by line (a swath of 96 views a scan, dealt to 8 parts, gives each part the same 12 columns
    of every scan), "random" sites see no short distances if they are few of many; "stratified"
    parts are clusters of neighbours from all over the region.

    >>> [part.tolist() for part in split_sites(np.zeros((7, 2)), 3, "strided")]
    [[0, 2, 4, 6], [1, 3, 5]]
    """
    N = len(x)
    L = 1 if batch_size is None else max(1, N // batch_size)
    if L == 1:
        return [np.arange(N)]
    rng = rng or np.random.default_rng()
    if partition == "stratified":
        return in_clusters(x, L, rng, wanted)
    order = np.arange(N) if partition == "strided" else rng.permutation(N)
    return [np.sort(order[k::L]) for k in range(L)[:wanted]]
