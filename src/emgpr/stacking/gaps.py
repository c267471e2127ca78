"""Gaps made in the readings of an output, to test how well it is predicted in a gap."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from emgpr.neighbours import extents
from emgpr.observations import Observations
from emgpr.prediction import LMCPosterior
from emgpr.stacking.locations import reading_tree, scaled_locations
from emgpr.stacking.patterns import TablePattern, unknown_outputs

Array = np.ndarray

N_FOLDS = 3  # the readings of a fold, in one or several gaps, are left out together
MIN_BLOCKS, MAX_BLOCKS = 4, 9
DEFAULT_BLOCKS = 6  # if the table has no gaps from which a size could be derived


@dataclass(frozen=True)
class MadeGaps:
    """Folds of all sites for each group of outputs that are missing together in a gap."""

    folds: dict[tuple[int, ...], Int[Array, " N"]]

    @classmethod
    def in_table(cls, posterior: LMCPosterior, patterns: Sequence[TablePattern]) -> "MadeGaps":
        """Make gaps like those of each group, among the readings of its first output."""
        table, found = posterior.observations, dict[tuple[int, ...], Int[Array, " N"]]()
        for one in patterns:
            group = unknown_outputs(one, table.n_outputs)
            if one.in_gap and group not in found:
                found[group] = pattern_folds(posterior, one)
        return cls(found)

    def of_pattern(self, posterior: LMCPosterior, table_pattern: TablePattern) -> Int[Array, " N"]:
        """Return the folds of all sites for a pattern."""
        folds = self.folds.get(unknown_outputs(table_pattern, posterior.n_outputs))
        return pattern_folds(posterior, table_pattern) if folds is None else folds

    def masked(self, table: Observations) -> list[Observations]:
        """Return a table without the readings in each fold; groups begin with different folds."""
        tables = []
        for i in range(N_FOLDS):
            observed = table.observed.copy()
            for shift, (group, folds) in enumerate(self.folds.items()):
                observed[np.ix_(group, (folds + shift) % N_FOLDS == i)] = False
            tables.append(table.with_readings(np.where(observed, table.y, 0.0), observed))
        return tables


def pattern_folds(posterior: LMCPosterior, table_pattern: TablePattern) -> Int[Array, " N"]:
    """Make gaps among the readings of an output; other sites belong to the fold of the nearest."""
    table, d = posterior.observations, table_pattern.pattern[0]
    x = scaled_locations(posterior, d, table.n_sites)
    read = table.observed[d]
    if not read.any():
        return np.zeros(table.n_sites, int)
    folds = gap_folds(x[read], table_pattern.n_missing)
    tree = reading_tree(posterior, d, table.n_sites)
    return folds[tree.query(x)[1]]


def gap_folds(x: Float[Array, "n P"], n_missing: int = 0) -> Int[Array, " n"]:
    """Divide readings into three folds, each of which consists of gaps between other readings.

    A gap has about as many readings as are missing in the table, but between a ninth and a quarter
    of all readings.

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
    values = x[rows, int(np.argmax(extents(x[rows])))]
    cut = round(len(rows) * first / n_blocks)
    limit = np.partition(values, cut)[cut]
    before, tied, after = rows[values < limit], rows[values == limit], rows[values > limit]
    # On a grid, many locations are equal in one column; their order must not be that of the rows.
    tied = tied[np.lexsort(x[tied].T)]
    n_tied = cut - len(before)
    left, right = (before, tied[:n_tied]), (tied[n_tied:], after)
    return _split(x, np.concatenate(left), first) + _split(
        x, np.concatenate(right), n_blocks - first
    )
