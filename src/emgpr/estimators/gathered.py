"""Tables that Dask or xarray hold, brought here whole: as NumPy's or pandas', rows in order.

Nothing of these packages is imported: who brings such a table has done so.
"""

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from emgpr.geo import needed

COPIES = 2  # of the readings in memory while they arrive: the parts, and the whole


def is_lazy(table: Any) -> bool:
    """Whether Dask holds it, or the parts of it if it is xarray's.

    >>> is_lazy([[1.0, 2.0]])
    False
    """
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(table))


def gathered(*tables: Any) -> list[Any]:
    """These tables in memory, those that Dask holds worked out together.

    Raises MemoryError if they would not fit.
    """
    lazy = [table for table in tables if is_lazy(table)]
    if lazy:
        _refuse_too_large(_numbers(lazy))
        found = iter(sys.modules["dask"].compute(*lazy))
        tables = tuple(next(found) if is_lazy(table) else table for table in tables)
    return [_unlabelled(table) for table in tables]


def columns_of(data: Any) -> list[Any]:
    """The columns of a Dataset that is a table, a row for each place along its only dimension."""
    names = list(data.data_vars) or list(data.coords)
    dims = {data[name].dims for name in names}
    if len(dims) != 1 or len(next(iter(dims))) != 1:
        raise ValueError(
            f"The variables of a Dataset have dimensions {sorted(map(list, dims))}; a table has "
            "one that all share, along which its rows are. Lay them out first: "
            "data.stack(site=[...]).reset_index('site').reset_coords()."
        )
    return [data[name] for name in names]


def refuse_stray_coordinates(X: Any) -> None:
    """Raise if a Dataset has variables, which are its columns, and beside them coordinates."""
    if not _is(X, "Dataset") or not len(X.data_vars):
        return
    (dim,) = columns_of(X)[0].dims
    stray = [str(name) for name in X.coords if name != dim and X[name].dims == (dim,)]
    if stray:
        raise ValueError(
            f"X has {stray} as coordinates beside the variables {list(map(str, X.data_vars))}, and "
            "only variables are inputs. If they are inputs too, give X.reset_coords(); if not, "
            f"X.drop_vars({stray})."
        )


def is_labelled(table: Any) -> bool:
    """Whether it is a Dataset or a DataArray."""
    return _is(table, "Dataset") or _is(table, "DataArray")


def _is(table: Any, kind: str) -> bool:
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(table, getattr(xarray, kind))


def _unlabelled(table: Any) -> Any:
    """xarray's as pandas', if it has names or an index; else as an array."""
    if _is(table, "Dataset"):
        columns = columns_of(table)
        (dim,) = columns[0].dims
        index = table.indexes.get(dim)
        return pd.DataFrame({str(c.name): c.to_numpy() for c in columns}, index=index)
    if not _is(table, "DataArray"):
        return table
    values, (rows, *columns) = table.to_numpy(), table.dims or (None,)
    if table.ndim == 1:
        return pd.Series(values, index=table.indexes.get(rows), name=table.name)
    if table.ndim != 2 or columns[0] not in table.coords:
        return values
    names = table[columns[0]].to_numpy()
    return pd.DataFrame(values, index=table.indexes.get(rows), columns=names)


def _numbers(tables: Sequence[Any]) -> int:
    """How many numbers these hold; Dask is asked for lengths that are not known, once for all."""
    dask: Any = sys.modules["dask"]
    total, unknown = 0, []
    for table in tables:
        if _is(table, "Dataset"):
            total += sum(int(variable.size) for variable in table.variables.values())
        elif hasattr(table, "to_dask_array") or math.isnan(table.size):
            parts = np.asarray(table.to_delayed(), dtype=object)
            rows = parts[:, 0] if parts.ndim == 2 else parts
            width = int(table.shape[1]) if table.ndim == 2 else 1
            unknown += [(width, dask.delayed(len)(part)) for part in rows]
        else:
            total += int(table.size)
    (lengths,) = dask.compute(unknown)
    return total + sum(width * rows for width, rows in lengths)


def _refuse_too_large(numbers: int) -> None:
    free = free_memory()
    if COPIES * 8 * numbers > free:
        raise MemoryError(
            f"{numbers:,} numbers are to be brought into memory: {8 * numbers / 1e9:.1f} GB, "
            f"{COPIES} times while they arrive, and {free / 1e9:.1f} GB are free. Predictions are "
            "conditioned on the readings, so fit holds all N sites of P inputs and D outputs, "
            "8·N·(P + D) bytes. Fit to some of the rows, such as X[::10] and y[::10], or where "
            "there is more memory; predictions may be of any size."
        )


def free_memory() -> float:
    """Bytes that this process may still take."""
    free = needed("psutil", "Reading what Dask holds", "dask").virtual_memory().available
    limit = needed("distributed.system", "Reading what Dask holds", "dask").MEMORY_LIMIT
    return float(min(free, limit))
