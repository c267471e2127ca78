"""Gaps made in the readings of an output, to test how well it is predicted in a gap."""

import numpy as np
from jaxtyping import Float, Int

Array = np.ndarray

N_FOLDS = 3  # the readings of a fold, in one or several gaps, are left out together
MIN_BLOCKS, MAX_BLOCKS = 4, 9
DEFAULT_BLOCKS = 6  # if the table has no gaps from which a size could be derived


def gap_folds(x: Float[Array, "n P"], n_missing: int = 0) -> Int[Array, " n"]:
    """Divide readings into three folds, each of which consists of gaps between other readings.

    A gap has about as many readings as are missing in the table, but at most a third of all
    readings.

    >>> gap_folds(np.arange(12.0)[:, None], n_missing=2)
    array([0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2])
    """
    n_blocks = DEFAULT_BLOCKS
    if n_missing:
        n_blocks = int(np.clip(round(len(x) / n_missing), MIN_BLOCKS, MAX_BLOCKS))
    folds = np.empty(len(x), int)
    for i, block in enumerate(split_into_blocks(x, n_blocks)):
        folds[block] = i % N_FOLDS
    return folds


def split_into_blocks(x: Float[Array, "n P"], n_blocks: int) -> list[Int[Array, " _"]]:
    """Divide locations into compact blocks of about equal numbers, along the longest sides.

    >>> [b.tolist() for b in split_into_blocks(np.array([[0.0], [3.0], [1.0], [9.0]]), 2)]
    [[0, 2], [1, 3]]
    """
    return _split(x, np.arange(len(x)), min(n_blocks, len(x)))


def _split(x: Float[Array, "n P"], rows: Int[Array, " m"], n_blocks: int) -> list[Array]:
    if n_blocks <= 1:
        return [np.sort(rows)] if len(rows) else []
    first = n_blocks // 2
    column = int(np.argmax(np.ptp(x[rows], axis=0)))
    order = rows[np.argsort(x[rows, column], kind="stable")]
    cut = round(len(order) * first / n_blocks)
    return _split(x, order[:cut], first) + _split(x, order[cut:], n_blocks - first)
