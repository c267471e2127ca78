"""Sampling and summation of Dask tables, block by block on Dask workers.

The samples of blocks, or the sums over blocks, are merged a few at a time. No process ever holds
the whole table in memory. If a worker dies, Dask recomputes its blocks on another one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.dask import array_and_head, delayed, one_block
from emgpr.fourier.accumulate import (
    PIECE_ROWS,
    Chunk,
    Columns,
    TableSample,
    add_pieces,
    merge_pieces,
)
from emgpr.fourier.grid import FourierSums
from emgpr.fourier.model import FourierModel
from emgpr.inputs import as_table, is_lazy, validate_outputs
from emgpr.inputs.validate import column_names, float_spacing, row_count_message, validate_inputs
from emgpr.optional_imports import import_optional
from emgpr.parallel import Execution
from emgpr.transforms import OutputScaler

Array = np.ndarray

N_MERGED = 4  # number of results that a worker loads into memory and merges


@dataclass(frozen=True)
class LazyChunk:
    """Inputs and outputs as Dask arrays, split into the same blocks, each made of whole pieces."""

    columns: Columns
    X: Any
    Y: Any
    spacing: tuple[Float[Array, " p"], Float[Array, " D"]]

    @classmethod
    def read(
        cls, X: Any, y: Any, columns: Columns | None, *, estimator: str, crs: str | None
    ) -> "LazyChunk":
        """Return a chunk for a table, computing only the lengths of blocks if they are unknown."""
        if y is None:
            validate_outputs(y, 0)  # This raises.
        (X, head), (Y, outputs_head) = (_array_and_head(table) for table in (X, y))
        columns = Chunk.read(
            _one_row(head), _one_row(outputs_head), columns, estimator=estimator, crs=crs
        ).columns
        Y = Y[:, None] if Y.ndim == 1 else Y
        given, names = column_names(outputs_head, Y.shape[1]), columns.output_names
        if given != names:
            Y = Y[:, [given.index(name) for name in names]]
            outputs_head = outputs_head[list(names)]
        X, Y = _with_known_lengths(X, Y)
        if X.shape[0] != Y.shape[0]:
            raise ValueError(row_count_message(X.shape[0], Y.shape[0]))
        if not X.shape[0]:
            validate_inputs(np.empty(X.shape), estimator)  # This raises.
        cuts = _whole_pieces((X if is_lazy(X) else Y).chunks[0])
        X, Y = (_dask("array").asarray(table).rechunk({0: cuts, 1: -1}) for table in (X, Y))
        spacing = float_spacing(head, X.shape[1]), float_spacing(outputs_head, Y.shape[1])
        return cls(columns, X, Y, spacing)

    @property
    def n_rows(self) -> int:
        """Number of rows in the table."""
        return int(self.X.shape[0])

    def sample(self) -> TableSample:
        """Return a sample of all rows (the first pass over the table)."""
        return self._map_blocks(Chunk.sample, _add_samples)

    def sums(self, model: FourierModel, scaler: OutputScaler, execution: Execution) -> FourierSums:
        """Return the Fourier sums over all rows (the second pass over the table)."""
        work = partial(Chunk.pieces, model=model, scaler=scaler, execution=execution.serial())
        return add_pieces(self._map_blocks(work, merge_pieces), model.features.grid)

    def _map_blocks(self, work: Callable[[Chunk], Any], merge: Callable[..., Any]) -> Any:
        """Apply the function `work` to every block, and merge the results."""
        arrays, merge_group = _dask("array"), _dask().delayed(_merge_group, pure=False)
        sizes = self.X.chunks[0]
        starts = arrays.from_array(np.cumsum([0, *sizes[:-1]]), chunks=1)
        results = arrays.blockwise(
            _work_on_block, "i", self.X, "ip", self.Y, "id", starts, "i",
            work=delayed(work), columns=self.columns, adjust_chunks={"i": (1,) * len(sizes)},
            concatenate=True, align_arrays=False, dtype=object, meta=np.empty(0, object),
        )  # fmt: skip
        parts = results.to_delayed().tolist()
        while len(parts) > 1:
            parts = [
                merge_group(merge, parts[i : i + N_MERGED]) for i in range(0, len(parts), N_MERGED)
            ]
        return parts[0].compute()[0]


def _dask(module: str = "") -> Any:
    """Import Dask or one of its modules."""
    name = f"dask.{module}" if module else "dask"
    return import_optional(name, "Fitting to a Dask table", "dask")


def _array_and_head(table: Any) -> tuple[Any, Any]:
    """Return a table as a NumPy or Dask array, and an empty table with the same columns."""
    if is_lazy(table):
        return array_and_head(table, _dask("array"))
    table = as_table(table)
    if isinstance(table, pd.DataFrame | pd.Series):
        return table.to_numpy(), table.iloc[:0]
    values = np.atleast_1d(table)
    return values, values[:0]


def _one_row(head: Any) -> Any:
    """Return a table with the columns of `head` and a single row of zeros."""
    row = np.zeros((1, *head.shape[1:]))
    if isinstance(head, pd.DataFrame):
        return pd.DataFrame(row, columns=head.columns)
    return pd.Series(row, name=head.name) if isinstance(head, pd.Series) else row


def _with_known_lengths(*tables: Any) -> list[Any]:
    """Return the tables with known block lengths, computing all unknown lengths together."""
    delayed_length = _dask().delayed(len)
    unknown = [is_lazy(table) and np.isnan(table.shape[0]) for table in tables]
    lengths = iter(
        _dask().compute(
            *(
                [delayed_length(block) for block in table.to_delayed()[:, 0]]
                for table, count in zip(tables, unknown, strict=True)
                if count
            )
        )
    )
    return [
        _dask("array").Array(
            table.dask, table.name, (tuple(next(lengths)), *table.chunks[1:]), meta=table._meta
        )
        if count
        else table
        for table, count in zip(tables, unknown, strict=True)
    ]


def _whole_pieces(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return lengths close to the given lengths for blocks that consist of whole pieces.

    >>> _whole_pieces([16384, 20000, 20000])
    (16384, 16384, 23616)
    """
    ends = np.cumsum(sizes)
    cuts = np.minimum(np.round(ends[:-1] / PIECE_ROWS).astype(int) * PIECE_ROWS, ends[-1])
    return tuple(np.diff(np.unique([0, *cuts, ends[-1]])).tolist())


def _work_on_block(
    X: Array, Y: Array, start: Array, *, work: Callable[[Chunk], Any], columns: Columns
) -> Array:
    """Apply the function `work` to a block, and return the result as an array of one element."""
    result = np.empty(1, object)
    if X.size and Y.size:
        first, inputs = int(start[0]), columns.inputs
        with one_block(f"row {first} of the table"):
            outputs = pd.DataFrame(Y, columns=list(columns.output_names))
            chunk = Chunk.read(
                inputs.named(X), outputs, columns,
                estimator=inputs.estimator, crs=inputs.crs, start=first,
            )  # fmt: skip
            result[0] = work(chunk)
    return result


def _add_samples(*samples: TableSample) -> TableSample:
    return reduce(add, samples)


def _merge_group(merge: Callable[..., Any], parts: Sequence[Array]) -> Array:
    result = np.empty(1, object)
    result[0] = merge(*(part[0] for part in parts))
    return result
