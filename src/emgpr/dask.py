"""Lazy predictions at the locations of a Dask array or frame, computed block by block.

The predictions for a block are the same as for an array in memory. The fitted model is one node of
the Dask graph. Each worker receives the model once and keeps it, together with its k-d trees.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.arrays import limit_threads
from emgpr.inputs import InputSpec
from emgpr.inputs.convert import dataset_columns, is_xarray
from emgpr.optional_imports import import_optional
from emgpr.predictor import Function, Predictor
from emgpr.statistics import Statistic

Array = np.ndarray


def lazy_evaluate(
    predictor: Predictor,
    X: Any,
    functions: Sequence[Function],
    widths: Sequence[int],
    observed: Any = None,
    **options: Any,
) -> list[Any]:
    """Return a lazy Dask array (k, M, D) for each function of the predictive distribution.

    `widths` holds the number k of values that each function returns for every output.
    """
    arrays = import_optional("dask.array", "A lazy prediction", "dask")
    _check_not_observed(observed)
    rows = _rows(predictor.inputs, X)
    D, width = predictor.scaler.n_outputs, sum(widths)
    values = rows.map_blocks(
        _evaluate_block,
        predictor=delayed(predictor.for_worker()),
        functions=tuple(functions),
        width=width,
        options=options,
        new_axis=2,
        chunks=(rows.chunks[0], (D,), (width,)),
        dtype=float,
        meta=np.empty((0, 0, 0)),
    )
    ends = np.cumsum(widths).tolist()
    parts = [values[..., start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
    return [arrays.moveaxis(part, -1, 0) for part in parts]


def lazy_frame(
    predictor: Predictor,
    X: Any,
    statistics: Sequence[Statistic],
    observed: Any = None,
    *,
    include_noise: bool = True,
) -> Any:
    """Return predictions as a lazy Dask frame, with known divisions if X has known divisions."""
    frames = import_optional("dask.dataframe", "A frame of predictions", "dask")
    _check_not_observed(observed)
    columns = predictor.frame_columns(statistics)
    if hasattr(X, "to_dask_array") and X.ndim == 2:
        _check_columns(predictor.inputs, (len(X.columns),), X.columns)
    else:
        X = frames.from_dask_array(_rows(predictor.inputs, X))
    options = {"statistics": tuple(statistics), "include_noise": include_noise}
    model = delayed(predictor.for_worker())
    predict = import_optional("dask", "A lazy prediction", "dask").delayed(_frame_of_block)
    parts = [predict(part, model, options, columns, i) for i, part in enumerate(X.to_delayed())]
    meta = pd.DataFrame(dict.fromkeys(columns, 0.0), index=X._meta.index, dtype=float)
    return frames.from_delayed(parts, meta=meta, divisions=X.divisions)


def lazy_cells(
    cells: Callable[[Float[Array, "M P"]], Float[Array, "M D k"]],
    variables: Sequence[Any],
    dims: tuple[str, ...],
    chunksizes: Mapping[str, tuple[int, ...]],
    n_outputs: int,
    n_values: int,
    dtype: str,
) -> Any:
    """Evaluate a function lazily at all cells of a Dataset; return a Dask array (*dims, D, k).

    The function `cells` takes the inputs of M cells as an array (M, P) and returns an array
    (M, D, k). Each variable can have all or only some of the dimensions.
    """
    arrays = import_optional("dask.array", "A lazy map", "dask")
    pairs: list[Any] = []
    for variable in variables:
        values = variable.data
        if not hasattr(values, "dask"):  # coordinates are in memory
            sizes = tuple(chunksizes.get(dim, -1) for dim in variable.dims)
            values = arrays.from_array(np.asarray(values, float), chunks=sizes)
        pairs += [values, tuple(map(dims.index, variable.dims))]
    n = len(dims)
    return arrays.blockwise(
        _evaluate_cells,
        tuple(range(n + 2)),
        *pairs,
        cells=delayed(cells),
        where=pairs[1::2],
        new_axes={n: n_outputs, n + 1: n_values},
        dtype=dtype,
        meta=np.empty((0,) * (n + 2), dtype),
    )


def delayed(value: Any) -> Any:
    """Wrap an object as a single node of a Dask graph."""
    dask = import_optional("dask", "A lazy prediction", "dask")
    return dask.delayed(value, name=f"model-{uuid4().hex}", traverse=False)


def array_and_head(table: Any, arrays: Any) -> tuple[Any, Any]:
    """Return a Dask table as an array, and an empty table with its column names and dtypes.

    If the table is a Dask frame, the numbers of rows in the blocks of the array are unknown.
    """
    if is_xarray(table) and hasattr(table, "data_vars"):
        columns = dataset_columns(table)
        types = {str(column.name): np.empty(0, column.dtype) for column in columns}
        parts = [arrays.asarray(column.data)[:, None] for column in columns]
        return arrays.concatenate(parts, axis=1), pd.DataFrame(types)
    if hasattr(table, "to_dask_array"):
        return table.to_dask_array(), table._meta
    values = table.data if is_xarray(table) else table
    head: Any = np.empty((0, *values.shape[1:]), values.dtype)
    if is_xarray(table) and values.ndim == 2 and table.dims[-1] in table.coords:
        head = pd.DataFrame(head, columns=table[table.dims[-1]].to_numpy())
    if is_xarray(table) and values.ndim == 1:
        head = pd.Series(head, name=table.name)
    return values, head


@contextmanager
def one_block(start: str) -> Iterator[None]:
    """Process a block with one thread; add to errors which row of the table is row 0."""
    try:
        with limit_threads(0):
            yield
    except Exception as error:
        error.add_note(f"Row 0 is {start}.")
        raise


def _rows(inputs: InputSpec, X: Any) -> Any:
    """Return the inputs as a Dask array with all columns of a row in one block."""
    rows, head = array_and_head(X, import_optional("dask.array", "A lazy prediction", "dask"))
    _check_columns(inputs, rows.shape[1:], getattr(head, "columns", None))
    return rows.rechunk({1: -1})


def _check_columns(inputs: InputSpec, shape: tuple[int, ...], names: Any) -> None:
    """Check the columns before the computation, so that errors and warnings appear immediately."""
    row = np.zeros((1, *shape))
    inputs.read(row if names is None else pd.DataFrame(row, columns=names))


def _check_not_observed(observed: Any) -> None:
    if observed is not None:
        raise ValueError(
            "observed cannot be combined with a lazy X: each block is predicted separately, so "
            "readings in one block would not be used in the others. Load X and observed into "
            "memory (X.compute()), some rows at a time, or add these readings to the training data."
        )


def _evaluate_block(
    block: Array,
    predictor: Predictor,
    functions: Sequence[Function],
    width: int,
    options: Mapping[str, Any],
    block_id: tuple[int, ...] = (0,),
) -> Float[Array, "m D width"]:
    if not len(block):
        return np.empty((0, predictor.scaler.n_outputs, width))
    with one_block(_start_of_block(block_id[0])):
        values = predictor.evaluate(predictor.inputs.named(block), functions, **options)
    return np.moveaxis(np.concatenate(values), 0, -1)


def _frame_of_block(
    block: pd.DataFrame,
    predictor: Predictor,
    options: Mapping[str, Any],
    columns: list[str],
    number: int,
) -> pd.DataFrame:
    values = np.empty((0, len(columns)))
    if len(block):
        with one_block(_start_of_block(number)):
            X = predictor.inputs.named(block.to_numpy())
            values = predictor.frame_values(X, **options)
    return pd.DataFrame(values, index=block.index, columns=columns)


def _start_of_block(block: int) -> str:
    return f"the first row of block {block} of the locations"


def _evaluate_cells(
    *blocks: Array, cells: Any, where: Sequence[tuple[int, ...]]
) -> Float[Array, "..."]:
    """Broadcast one block of each variable to common dimensions, and call `cells` on its cells."""
    n = 1 + max(max(dims, default=0) for dims in where)
    expanded = [
        np.expand_dims(
            np.asarray(block, float).transpose(np.argsort(dims)),
            tuple(i for i in range(n) if i not in dims),
        )
        for block, dims in zip(blocks, where, strict=True)
    ]
    columns = np.broadcast_arrays(*expanded)
    with limit_threads(0):
        values = cells(np.column_stack([column.ravel() for column in columns]))
    return values.reshape(*columns[0].shape, *values.shape[1:])
