"""Sites dealt to the members. Every site goes to one, none is left over."""

import numpy as np
from jaxtyping import Int

Array = np.ndarray

PARTITIONS = ("random", "strided")


def split_sites(
    n_sites: int,
    batch_size: int | None,
    partition: str = "random",
    rng: np.random.Generator | None = None,
) -> list[Int[Array, " _"]]:
    """L = ⌊N/N₀⌋ parts; "strided" gives part k the sites k, L+k, 2L+k, … as in the paper.

    Strides alias with data stored line by line (a swath of 96 views a scan, dealt to 8
    parts, gives each part the same 12 columns of every scan), so "random" is the default.

    >>> [part.tolist() for part in split_sites(7, 3, "strided")]
    [[0, 2, 4, 6], [1, 3, 5]]
    """
    order = np.arange(n_sites)
    L = 1 if batch_size is None else max(1, n_sites // batch_size)
    if L > 1 and partition == "random":
        order = (rng or np.random.default_rng()).permutation(n_sites)
    return [np.sort(order[k::L]) for k in range(L)]
