"""Conversion of masked arrays and of polars, Arrow, xarray and Dask tables to NumPy or pandas.

Dask tables are loaded into memory. Missing values become NaN. None of these libraries is imported
here: if the user passes such a table, its library has already been imported.
"""

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from emgpr.optional_imports import import_optional

COPIES_WHILE_LOADING = 2  # copies of the data in memory: as blocks and as a whole table


def is_lazy(table: Any) -> bool:
    """Tell whether a table is a Dask collection, or an xarray object that contains Dask arrays.

    >>> is_lazy([[1.0, 2.0]])
    False
    """
    dask = sys.modules.get("dask")
    return dask is not None and bool(dask.is_dask_collection(table))


def is_xarray(table: Any) -> bool:
    """Tell whether a table is an xarray Dataset or DataArray."""
    return _is_xarray_type(table, "Dataset") or _is_xarray_type(table, "DataArray")


def as_table(table: Any) -> Any:
    """Return a NumPy array or pandas object with NaN for missing values.

    >>> as_table(np.ma.masked_equal([1.0, -9999.0], -9999.0))
    array([ 1., nan])
    """
    if is_lazy(table) or is_xarray(table):
        (table,) = to_memory(table)
    if isinstance(table, list | tuple) and any(isinstance(r, np.ma.MaskedArray) for r in table):
        table = np.ma.stack([np.ma.asarray(row) for row in table])  # noqa: PD013
    if isinstance(table, np.ma.MaskedArray):
        # Masked values become NaN: their fill value, such as 1e20, could be mistaken for a reading.
        return np.where(np.ma.getmaskarray(table), np.nan, table.data.astype(float))
    if isinstance(table, pd.DataFrame):
        return _replace_na(table)
    if isinstance(table, pd.Series):
        column = _replace_na(table.to_frame()).iloc[:, 0]
        column.name = table.name
        return column
    if isinstance(table, list | tuple | np.ndarray):
        return _replace_na_objects(table)
    if not hasattr(table, "__arrow_c_stream__"):
        return np.asarray(table) if hasattr(table, "__array__") else table
    columns = getattr(table, "column_names", getattr(table, "columns", None))
    if columns is None:  # a single polars or Arrow column
        return pd.Series(table.to_numpy(), name=getattr(table, "name", None))
    return _replace_na(pd.DataFrame({name: table[name].to_numpy() for name in columns}))


def as_tables(X: Any, y: Any) -> list[Any]:
    """Convert inputs and outputs as in `as_table`; Dask tables are computed together."""
    check_stray_coordinates(X)
    return [as_table(table) for table in to_memory(X, y)]


def to_memory(*tables: Any) -> list[Any]:
    """Load tables into memory; raise MemoryError if there is not enough memory."""
    lazy = [table for table in tables if is_lazy(table)]
    if lazy:
        _check_memory(_count_values(lazy))
        computed = iter(sys.modules["dask"].compute(*lazy))
        tables = tuple(next(computed) if is_lazy(table) else table for table in tables)
    return [_from_xarray(table) for table in tables]


def dataset_columns(data: Any) -> list[Any]:
    """Return the columns of a Dataset; raise unless all variables share one dimension."""
    names = list(data.data_vars) or list(data.coords)
    dims = {data[name].dims for name in names}
    if len(dims) != 1 or len(next(iter(dims))) != 1:
        raise ValueError(
            f"The variables of the Dataset have dimensions {sorted(map(list, dims))}; expected a "
            "single dimension, along the rows, for all variables. Reshape the Dataset "
            "first: data.stack(site=[...]).reset_index('site').reset_coords()."
        )
    return [data[name] for name in names]


def check_stray_coordinates(X: Any) -> None:
    """Raise if a Dataset of inputs has coordinates that the user may have meant as inputs."""
    if not _is_xarray_type(X, "Dataset") or not len(X.data_vars):
        return
    (dim,) = dataset_columns(X)[0].dims
    stray = [str(name) for name in X.coords if name != dim and X[name].dims == (dim,)]
    if stray:
        raise ValueError(
            f"X has coordinates {stray} besides the variables {list(map(str, X.data_vars))}, but "
            "only variables are used as inputs. If the coordinates are inputs too, pass "
            f"X.reset_coords(); otherwise pass X.drop_vars({stray})."
        )


def free_memory() -> float:
    """Return the number of bytes that this process can still allocate."""
    free = import_optional("psutil", "Reading Dask tables", "dask").virtual_memory().available
    limit = import_optional("distributed.system", "Reading Dask tables", "dask").MEMORY_LIMIT
    return float(min(free, limit))


def _replace_na_objects(table: Any) -> Any:
    """Replace `pandas.NA` and `numpy.ma.masked` with NaN in an array or list of objects."""
    if isinstance(table, np.ndarray) and table.dtype != object:
        return table
    try:
        objects = np.asarray(table, dtype=object)
    except ValueError:  # scikit-learn's check reports rows of different lengths
        return table
    is_missing = np.frompyfunc(lambda value: value is pd.NA or value is np.ma.masked, 1, 1)
    missing = np.asarray(is_missing(objects), dtype=bool)
    return np.where(missing, np.nan, objects) if missing.any() else table


def _replace_na(table: pd.DataFrame) -> pd.DataFrame:
    """Replace missing values in object columns with NaN, and convert sparse columns to dense."""
    clean = table.copy(deep=False)
    for i, dtype in enumerate(table.dtypes):
        column = clean.iloc[:, i]
        if pd.api.types.is_object_dtype(dtype):
            clean.isetitem(i, column.where(column.notna(), np.nan).to_numpy())
        elif isinstance(dtype, pd.SparseDtype):
            clean.isetitem(i, np.asarray(column))
    return clean


def _is_xarray_type(table: Any, name: str) -> bool:
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(table, getattr(xarray, name))


def _from_xarray(table: Any) -> Any:
    """Convert an xarray object to pandas if it has names or an index, otherwise to an array."""
    if _is_xarray_type(table, "Dataset"):
        columns = dataset_columns(table)
        (dim,) = columns[0].dims
        index = table.indexes.get(dim)
        return pd.DataFrame({str(c.name): c.to_numpy() for c in columns}, index=index)
    if not _is_xarray_type(table, "DataArray"):
        return table
    values, (rows, *columns) = table.to_numpy(), table.dims or (None,)
    if table.ndim == 1:
        return pd.Series(values, index=table.indexes.get(rows), name=table.name)
    if table.ndim != 2 or columns[0] not in table.coords:
        return values
    names = table[columns[0]].to_numpy()
    return pd.DataFrame(values, index=table.indexes.get(rows), columns=names)


def _count_values(tables: Sequence[Any]) -> int:
    """Count the values in lazy tables; one Dask computation determines all unknown lengths."""
    dask: Any = sys.modules["dask"]
    total, unknown = 0, []
    for table in tables:
        if _is_xarray_type(table, "Dataset"):
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


def _check_memory(n_values: int) -> None:
    free = free_memory()
    if COPIES_WHILE_LOADING * 8 * n_values > free:
        raise MemoryError(
            f"The table has {n_values:,} values ({8 * n_values / 1e9:.1f} GB), and loading it "
            f"needs {COPIES_WHILE_LOADING} copies, but only {free / 1e9:.1f} GB are free. "
            "Predictions are conditioned on the readings, so that fit keeps N sites with P inputs "
            "and D outputs in memory: 8·N·(P + D) bytes. Fit to a subset of the rows, such as "
            "X[::10] and y[::10], or use a machine with more memory. There is no such limit for "
            "predictions."
        )
