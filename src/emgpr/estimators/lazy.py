"""Predictions at places that Dask holds: lazy, and worked out block after block.

Each is what the model says in memory of the rows of a block. The model is one piece of the graph,
which every worker gets once and keeps, with the k-d trees that it grows there.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.estimators.door import check_inputs
from emgpr.estimators.gathered import columns_of, is_labelled
from emgpr.estimators.wanted import Wanted
from emgpr.execution import chunks, threads_for
from emgpr.geo import needed

Array = np.ndarray


def lazy_predict(model: Any, X: Any, observed: Any, **settings: Any) -> Any:
    """As `predict`, as Dask's arrays."""
    more = model.n_outputs_ if settings["return_cov"] else int(settings["return_std"])
    told = _by_blocks(model, X, observed, "predict", 1 + more, settings)
    centre = _as_fitted(model, told[..., 0])
    if not more:
        return centre
    if settings["return_cov"]:
        return centre, told[..., 1:]
    return centre, _as_fitted(model, told[..., 1])


def lazy_quantiles(model: Any, X: Any, observed: Any, q: Array, **settings: Any) -> Any:
    """As `predict_quantiles`, as one of Dask's arrays."""
    settings = {"q": np.atleast_1d(q), **settings}
    told = _by_blocks(model, X, observed, "predict_quantiles", q.size, settings)
    values = _as_fitted(model, told.transpose(2, 0, 1))
    return values if q.ndim else values[0]


def lazy_exceedance(model: Any, X: Any, observed: Any, **settings: Any) -> Any:
    """As `predict_exceedance`, as one of Dask's arrays."""
    told = _by_blocks(model, X, observed, "predict_exceedance", 1, settings)
    return _as_fitted(model, told[..., 0])


def lazy_frame(model: Any, X: Any, observed: Any, columns: list[str], **settings: Any) -> Any:
    """As `predict_frame`, as a frame of Dask; rows are numbered through if blocks have lengths."""
    frames = needed("dask.dataframe", "A frame of predictions", "dask")
    _refuse_known(observed)
    if hasattr(X, "to_dask_array") and X.ndim == 2:
        _check_columns(model, (len(X.columns),), X.columns)
        meta = pd.DataFrame(dict.fromkeys(columns, 0.0), index=X._meta.index, dtype=float)
        tell, own = needed("dask", "A lazy prediction", "dask").delayed(_frame_of), sent(model)
        parts = [tell(part, own, settings, columns, i) for i, part in enumerate(X.to_delayed())]
        return frames.from_delayed(parts, meta=meta, divisions=X.divisions)
    rows = _rows_of(model, X, needed("dask.array", "A lazy prediction", "dask"))
    told = rows.map_blocks(
        _row_of_each,
        model=sent(model),
        settings=settings,
        columns=columns,
        chunks=(rows.chunks[0], (len(columns),)),
        dtype=float,
        meta=np.empty((0, 0)),
    )
    return frames.from_dask_array(told, columns=columns)


def lazy_map(
    model: Any,
    inputs: Sequence[Any],
    dims: tuple[str, ...],
    chunksizes: Mapping[str, tuple[int, ...]],
    wanted: Wanted,
) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Shape of these variables together, and what is wanted at every cell, lazy."""
    arrays = needed("dask.array", "A lazy map", "dask")
    pairs: list[Any] = []
    for one in inputs:
        values = one.data
        if not hasattr(values, "dask"):  # coordinates are in memory
            own = tuple(chunksizes.get(dim, -1) for dim in one.dims)
            values = arrays.from_array(np.asarray(values, float), chunks=own)
        pairs += [values, tuple(map(dims.index, one.dims))]
    widths = {kind: int(np.prod(lead)) for kind, lead in wanted.shapes().items()}
    n, D = len(dims), model.n_outputs_
    told = arrays.blockwise(
        _cells_of,
        tuple(range(n + 2)),
        *pairs,
        model=sent(model),
        where=pairs[1::2],
        wanted=wanted,
        new_axes={n: D, n + 1: sum(widths.values())},
        dtype=wanted.dtype,
        meta=np.empty((0,) * (n + 2), wanted.dtype),
    )
    found: dict[str, Any] = {}
    start = 0
    for kind, width in widths.items():
        part = told[..., start : start + width]
        found[kind] = arrays.moveaxis(part, -1, 0) if wanted.shapes()[kind] else part[..., 0]
        start += width
    return told.shape[:n], found


def _by_blocks(
    model: Any, X: Any, observed: Any, method: str, width: int, settings: Mapping[str, Any]
) -> Any:
    """What a method tells of each block of rows: Dask's array (M, D, width)."""
    arrays = needed("dask.array", "A lazy prediction", "dask")
    _refuse_known(observed)
    rows = _rows_of(model, X, arrays)
    return rows.map_blocks(
        _told_of,
        model=sent(model),
        method=method,
        width=width,
        settings=dict(settings),
        new_axis=2,
        chunks=(rows.chunks[0], (model.n_outputs_,), (width,)),
        dtype=float,
        meta=np.empty((0, 0, 0)),
    )


def _rows_of(model: Any, X: Any, arrays: Any) -> Any:
    """The inputs as one of Dask's arrays, all columns of a row in one block."""
    rows, head = array_and_head(X, arrays)
    _check_columns(model, rows.shape[1:], getattr(head, "columns", None))
    return rows.rechunk({1: -1})


def array_and_head(table: Any, arrays: Any) -> tuple[Any, Any]:
    """What Dask holds as one of its arrays, and an empty table of its names and kinds of numbers.

    Blocks of a frame have lengths that nobody knows yet.
    """
    if is_labelled(table) and hasattr(table, "data_vars"):
        columns = columns_of(table)
        kinds = {str(column.name): np.empty(0, column.dtype) for column in columns}
        parts = [arrays.asarray(column.data)[:, None] for column in columns]
        return arrays.concatenate(parts, axis=1), pd.DataFrame(kinds)
    if hasattr(table, "to_dask_array"):
        return table.to_dask_array(), table._meta
    values = table.data if is_labelled(table) else table
    head: Any = np.empty((0, *values.shape[1:]), values.dtype)
    if is_labelled(table) and values.ndim == 2 and table.dims[-1] in table.coords:
        head = pd.DataFrame(head, columns=table[table.dims[-1]].to_numpy())
    if is_labelled(table) and values.ndim == 1:
        head = pd.Series(head, name=table.name)
    return values, head


def _check_columns(model: Any, shape: tuple[int, ...], names: Any) -> None:
    """Raise, or warn, now as every block would."""
    row = np.zeros((1, *shape))
    check_inputs(model, row if names is None else pd.DataFrame(row, columns=names), fitting=False)


def _refuse_known(observed: Any) -> None:
    if observed is not None:
        raise ValueError(
            "observed is given with places that Dask holds: what is known in one block would not "
            "be heard of in the next. Bring both into memory (X.compute()), some rows at a time, "
            "or add those readings to what the model is fitted to."
        )


def sent(model: Any) -> Any:
    """The model as it is now, as one piece of a graph; it works alone, without bars."""
    return needed("dask", "A lazy prediction", "dask").delayed(
        model._for_blocks(), name=f"model-{uuid4().hex}", traverse=False
    )


def _as_fitted(model: Any, values: Any) -> Any:
    """Without the axis of outputs, if y had none."""
    return values[..., 0] if model._flat else values


def _told_of(
    block: Array,
    model: Any,
    method: str,
    width: int,
    settings: Mapping[str, Any],
    block_id: tuple[int, ...] = (0,),
) -> Float[Array, "m D width"]:
    """What the model tells of a block, as many rows at a time as a map has cells."""
    L, D = len(model.weights_), model.n_outputs_
    told = np.empty((len(block), D, width))
    runs = chunks(len(block), 64.0 * L * D * D, 1) if len(block) else []
    for run in runs:
        at = slice(run.start, run.stop)
        with one_of_many(f"row {run.start} of block {block_id[0]} of the places"):
            answer = getattr(model, method)(named(block[at], model), **settings)
        if method == "predict_quantiles":
            answer = np.moveaxis(answer, 0, -1)
        parts = answer if isinstance(answer, tuple) else (answer,)
        told[at] = np.concatenate([np.reshape(p, (len(run), D, -1)) for p in parts], axis=-1)
    return told


def _row_of_each(
    block: Array,
    model: Any,
    settings: Mapping[str, Any],
    columns: list[str],
    block_id: tuple[int, ...] = (0,),
) -> Float[Array, "m columns"]:
    """What a frame has of each place of a block."""
    if not len(block):
        return np.empty((0, len(columns)))
    with one_of_many(f"row 0 of block {block_id[0]} of the places"):
        return model.predict_frame(named(block, model), **settings).to_numpy()


def _frame_of(
    block: pd.DataFrame, model: Any, settings: Mapping[str, Any], columns: list[str], number: int
) -> pd.DataFrame:
    """What a frame has of each place of a partition, beside its index."""
    told = _row_of_each(block.to_numpy(), model, settings, columns, (number,))
    return pd.DataFrame(told, index=block.index, columns=columns)


def named(block: Array, model: Any) -> Any:
    """A block's rows, with the names of the columns that the model was fitted to, if it was."""
    names = getattr(model, "feature_names_in_", None)
    return block if names is None else pd.DataFrame(block, columns=list(names))


@contextmanager
def one_of_many(start: str) -> Iterator[None]:
    """Work on a block: those beside it have the other cores, and errors tell which it is."""
    try:
        with threads_for(0):
            yield
    except Exception as error:
        error.add_note(f"Rows are counted from {start}.")
        raise


def _cells_of(
    *blocks: Array, model: Any, where: Sequence[tuple[int, ...]], wanted: Wanted
) -> Float[Array, "..."]:
    """What is wanted at the cells of blocks that lie along some of the dimensions each."""
    n = 1 + max(max(dims, default=0) for dims in where)
    wide = [
        np.expand_dims(
            np.asarray(block, float).transpose(np.argsort(dims)),
            tuple(i for i in range(n) if i not in dims),
        )
        for block, dims in zip(blocks, where, strict=True)
    ]
    cells = np.broadcast_arrays(*wide)
    shape = cells[0].shape
    places = np.column_stack([one.ravel() for one in cells])
    with threads_for(0):
        values = model._mapped(places, np.isfinite(places).all(axis=1), wanted)
    parts = [np.moveaxis(part.reshape(-1, *part.shape[-2:]), 0, -1) for part in values.values()]
    told = np.concatenate(parts, axis=-1)
    return told.reshape(*shape, *told.shape[1:])
