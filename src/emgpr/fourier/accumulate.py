"""Two passes over a table: the first samples rows, the second computes sums over all rows.

The sample provides starting values for the fit, which then uses the sums. A table can be read in
blocks, in any order. Neither the sample nor the sums depend on the division into blocks: sums are
computed for fixed pieces of `PIECE_ROWS` rows and added in a fixed order. Otherwise, differences in
rounding could change the result of an optimisation by a thousandth of a standard deviation.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, UInt64

from emgpr.arrays import limit_threads
from emgpr.fourier.grid import FourierSums, FrequencyGrid
from emgpr.fourier.model import FourierModel
from emgpr.inputs import InputSpec, as_table, match_rows, order_outputs, validate_outputs
from emgpr.inputs.units import units_of
from emgpr.inputs.validate import float_spacing, string_names, validate_inputs
from emgpr.observations import Observations
from emgpr.parallel import Execution, parallel_map
from emgpr.row_numbers import rows_of_table
from emgpr.transforms import OutputScaler

Array = np.ndarray

PIECE_ROWS = 2**14  # Pieces are counted from the first row of the table.
PIECES_PER_JOB = 8
SAMPLE_ROWS = 100_000  # All are checked for suspicious values, and some are used in the first fit.
MIN_SAMPLE_READINGS = 100  # for each output, unless the table has fewer

# Sums over pieces. The key (level, i) is the i-th run of 2**level pieces of PIECE_ROWS rows, so
# (1, 0) consists of (0, 0) and (0, 1).
Pieces = Mapping[tuple[int, int], FourierSums]


@dataclass(frozen=True)
class Columns:
    """The columns of a table: a description of its inputs and the names of its outputs."""

    inputs: InputSpec
    output_names: tuple[str, ...]
    one_dimensional: bool


@dataclass(frozen=True)
class TableSample:
    """A sample of the rows with readings, and the ranges of inputs and outputs over all such rows.

    Every row has a random rank that depends only on its row number. The sample consists of the rows
    with the lowest ranks, so the samples of all blocks add up to the sample of the whole table.

    >>> x, Y = np.arange(6.0)[:, None], np.arange(6.0)[:, None]
    >>> whole = TableSample.draw(np.arange(6), x, x, Y)
    >>> parts = [TableSample.draw(np.arange(6)[part], x[part], x[part], Y[part])
    ...          for part in (slice(0, 4), slice(4, 6))]
    >>> (parts[1] + parts[0]).rows, whole.corners.ravel()
    (array([0, 1, 2, 3, 4, 5]), array([0., 5.]))
    """

    corners: Float[Array, "2 P"]  # lowest and highest inputs in kernel coordinates
    ranges: Float[Array, "2 D"]  # lowest and highest readings; NaN for outputs without readings
    rows: Int[Array, " n"]
    ranks: UInt64[Array, " n"]
    X: Float[Array, "n p"]  # inputs as they were passed
    Y: Float[Array, "n D"]

    @classmethod
    def draw(
        cls,
        rows: Int[Array, " n"],
        X: Float[Array, "n p"],
        x: Float[Array, "n P"],
        Y: Float[Array, "n D"],
    ) -> "TableSample":
        """Draw a sample of rows, given their data and their row numbers in ascending order."""
        corners = [x.min(axis=0, initial=np.inf), x.max(axis=0, initial=-np.inf)]
        ranges = [end.reduce(Y, axis=0, initial=np.nan) for end in (np.fmin, np.fmax)]
        ranks = np.empty(0, np.uint64)
        if len(rows):
            bits = np.random.PCG64(0).advance(int(rows[0]))
            ranks = bits.random_raw(int(rows[-1] - rows[0]) + 1)[rows - rows[0]]
        return cls(np.stack(corners), np.stack(ranges), rows, ranks, X, Y)._reduced()

    def __add__(self, other: "TableSample") -> "TableSample":
        lows, highs = zip(self.corners, other.corners, strict=True)
        least, most = zip(self.ranges, other.ranges, strict=True)
        parts = sorted((self, other), key=lambda sample: sample.rows[:1].tolist())
        return TableSample(
            np.stack([np.minimum(*lows), np.maximum(*highs)]),
            np.stack([np.fmin(*least), np.fmax(*most)]),
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("rows", "ranks", "X", "Y")
            ),
        )._reduced()

    def _reduced(self) -> "TableSample":
        """Keep rows with the lowest ranks, and up to `MIN_SAMPLE_READINGS` rows for each output."""
        if len(self.rows) <= SAMPLE_ROWS:
            return self
        order = np.argsort(self.ranks, kind="stable")
        measured = [order[~np.isnan(y[order])][:MIN_SAMPLE_READINGS] for y in self.Y.T]
        kept = np.unique(np.concatenate([order[:SAMPLE_ROWS], *measured]))
        return replace(
            self, rows=self.rows[kept], ranks=self.ranks[kept], X=self.X[kept], Y=self.Y[kept]
        )


@dataclass(frozen=True)
class Chunk:
    """The rows with readings in a table, or in one block of a table.

    The block begins at row `start`, and `rows` are counted from there. `spacing` is the relative
    spacing of floating-point numbers for the dtype of each input and each output.
    """

    columns: Columns
    rows: Int[Array, " n"]
    X: Float[Array, "n p"]
    x: Float[Array, "n P"]
    Y: Float[Array, "n D"]
    n_rows: int
    spacing: tuple[Float[Array, " p"], Float[Array, " D"]]
    start: int = 0

    @classmethod
    def read(
        cls, X: Any, y: Any, columns: Columns | None, *, estimator: str, crs: str | None,
        start: int = 0,
    ) -> "Chunk":  # fmt: skip
        """Read and validate a chunk.

        `columns` are the columns of the first chunk, or None if the first chunk is being read.
        `estimator` is the name of the estimator in error messages.
        """
        units = units_of(X, y, crs) if columns is None else {}
        X, y = as_table(X), as_table(y)
        y = match_rows(X, y, "y")
        if columns is not None:
            columns.inputs.check_columns(X)
            y = order_outputs(y, columns.output_names)
        first = columns is None
        numbers = validate_inputs(X, estimator, training=first)
        Y, names, one_dimensional = validate_outputs(y, len(numbers), training=first)
        if columns is None:
            P, no_rows = numbers.shape[1], np.arange(0)
            inputs = InputSpec(
                estimator, string_names(X), P, crs, pd.RangeIndex(0), no_rows, units=units
            )
            columns = Columns(inputs, names, one_dimensional)
        if names != columns.output_names:
            raise ValueError(
                f"y has the outputs {list(names)}, but this model was started with "
                f"{list(columns.output_names)}. Pass the same columns in every chunk, with NaN for "
                "missing readings."
            )
        rows = np.flatnonzero(~np.isnan(Y).all(axis=1))
        spacing = float_spacing(X, numbers.shape[1]), float_spacing(y, Y.shape[1])
        x = columns.inputs.to_kernel(numbers[rows])
        return cls(columns, rows, numbers[rows], x, Y[rows], len(Y), spacing, start)

    def sample(self) -> TableSample:
        """Return a sample of the rows."""
        return TableSample.draw(self.start + self.rows, self.X, self.x, self.Y)

    def sums(self, model: FourierModel, scaler: OutputScaler, execution: Execution) -> FourierSums:
        """Return the Fourier sums over all rows."""
        pieces = self.pieces(model=model, scaler=scaler, execution=execution)
        return add_pieces(pieces, model.features.grid)

    def pieces(self, *, model: FourierModel, scaler: OutputScaler, execution: Execution) -> Pieces:
        """Return the Fourier sums over each piece, after merging adjacent pieces."""
        with rows_of_table(self.rows):
            model.check_region(self.x)
        cuts = np.searchsorted(self.rows, np.arange(0, self.n_rows, PIECE_ROWS)).tolist()
        ends = [*cuts[1:], len(self.rows)]
        parts = [
            (self.rows[i:j], self.x[i:j], self.Y[i:j]) for i, j in zip(cuts, ends, strict=True)
        ]
        first = self.start // PIECE_ROWS
        runs = [
            (first + i, parts[i : i + PIECES_PER_JOB]) for i in range(0, len(parts), PIECES_PER_JOB)
        ]
        work = partial(_sum_pieces, model.features.grid, scaler)
        with limit_threads(0):
            sums = parallel_map(work, runs, execution, label="Summing: chunks of rows")
        return merge_pieces(*sums)


def enough_of_each(
    observed: Bool[Array, "D N"], sites: Int[Array, " n"], rng: np.random.Generator
) -> Int[Array, " _"]:
    """Add sites until each output has `MIN_SAMPLE_READINGS` readings or all its sites are used.

    >>> observed = np.array([[True] * 1000, [False] * 997 + [True] * 3])
    >>> sites = enough_of_each(observed, np.arange(200), np.random.default_rng(0))
    >>> len(sites), int(observed[1, sites].sum())
    (203, 3)
    """
    for has_reading in observed:
        n_lacking = MIN_SAMPLE_READINGS - int(has_reading[sites].sum())
        if n_lacking > 0:
            others = np.setdiff1d(np.flatnonzero(has_reading), sites)
            sites = np.append(sites, rng.permutation(others)[:n_lacking])
    return np.sort(sites)


def merge_pieces(*parts: Pieces) -> Pieces:
    """Merge sums over pieces: wherever two pieces form a larger piece, add their sums.

    >>> grid = FrequencyGrid((0.0,), (1.0,), (1,))
    >>> sorted(merge_pieces(*({(0, i): FourierSums(grid)} for i in (2, 0, 4, 1, 3))))
    [(0, 4), (2, 0)]
    """
    nodes = {at: sums for part in parts for at, sums in part.items()}
    for at in sorted(nodes):
        while at in nodes and (beside := (at[0], at[1] ^ 1)) in nodes:
            left, right = sorted([at, beside])
            at = at[0] + 1, at[1] // 2
            nodes[at] = nodes.pop(left) + nodes.pop(right)
    return nodes


def add_pieces(pieces: Pieces, grid: FrequencyGrid) -> FourierSums:
    """Return the sums over a whole table, adding the sums over its pieces in order."""
    order = sorted(pieces, key=lambda at: at[1] << at[0])
    return reduce(add, (pieces[at] for at in order), FourierSums(grid))


def _sum_pieces(
    grid: FrequencyGrid,
    scaler: OutputScaler,
    run: tuple[int, list[tuple[Int[Array, " _"], Float[Array, "_ P"], Float[Array, "_ D"]]]],
) -> Pieces:
    first, parts = run
    tables = []
    for rows, x, Y in parts:
        with rows_of_table(rows):
            tables.append(Observations.from_table(x, scaler.standardise(Y)))
    return merge_pieces(
        {
            (0, first + i): FourierSums.from_observations(grid, table)
            for i, table in enumerate(tables)
        }
    )
