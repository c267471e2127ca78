"""The door: what users bring becomes arrays here, or an error that says what to do."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from emgpr.estimators.gathered import (
    gathered,
    is_labelled,
    is_lazy,
    refuse_stray_coordinates,
)
from emgpr.geo import Places
from emgpr.observations import first_bad

Array = np.ndarray

FARTHEST = 1e100  # of an input; squares of such distances, over squares of short ones, are finite
LARGEST = 1e153  # of an output; its square is still a number


def enter_inputs(estimator: BaseEstimator, X: Any) -> Float[Array, "M p"]:
    """New inputs as kernels see them, after their names and number were found to be as at fit."""
    return placed(estimator, check_inputs(estimator, X, fitting=False))


def placed(estimator: Any, numbers: Float[Array, "N P"]) -> Float[Array, "N p"]:
    """Longitude and latitude of an estimator with a `crs` as points on the sphere."""
    return Places.of(input_names(estimator), getattr(estimator, "crs", None)).enter(numbers)


def check_inputs(estimator: BaseEstimator, X: Any, *, fitting: bool) -> Float[Array, "N P"]:
    """The inputs as numbers; remembers (or checks) the names and number of columns."""
    if X is None:
        raise ValueError("X is None; give one row a site, one column an input.")
    X = as_table(X)
    _refuse_text(X, "X", "Encode it as numbers, or leave it out of the inputs.")
    array = validate_data(
        estimator, X, reset=fitting, dtype=np.float64, ensure_all_finite=False,
        ensure_min_samples=0,
    )  # fmt: skip
    if not len(array):
        raise ValueError(
            f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required "
            f"by {type(estimator).__name__}. Check the filter or the file that X comes from."
        )
    names = names_of(X, array.shape[1])
    _refuse_infinite(array, "X", names, "input column", nan_too=True)
    _refuse_extreme(array, names, "Input column", FARTHEST)
    return array


def input_names(estimator: Any) -> list[str]:
    """Names of the input columns: as they were at fit, or their numbers."""
    names = getattr(estimator, "feature_names_in_", range(estimator.n_features_in_))
    return [str(name) for name in names]


def enter_outputs(
    Y: Any, n_sites: int, what: str = "y"
) -> tuple[Float[Array, "N D"], list[str], bool]:
    """The outputs as a table with NaN where not measured, their names, and whether Y was 1-D."""
    if Y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None. Give one row a site, "
            "one column an output, NaN where an output was not measured."
        )
    Y = as_table(Y)
    _refuse_text(
        Y,
        "Y" if what == "y" else what,
        "Outputs must be numbers; write NaN where one was not measured.",
    )
    if isinstance(Y, pd.DataFrame) and not len(Y.columns):
        raise ValueError("Y has no columns; give at least one output.")
    array = check_array(
        Y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="y",
        ensure_min_samples=0,
    )  # fmt: skip
    if array.ndim == 0:
        raise ValueError(
            f"{what} is a single number, {array:g}; give one row a site, one column an output."
        )
    flat = array.ndim == 1
    table = array.reshape(-1, 1) if flat else array
    if len(table) != n_sites:
        raise ValueError(
            f"X has {n_sites} rows and Y has {len(table)}; each row of Y must be one "
            "place in X. Write NaN where an output was not measured."
        )
    if table.shape[1] == 0:
        raise ValueError("Y has no columns; give at least one output.")
    names = names_of(Y, table.shape[1])
    _refuse_infinite(table, what, names, "output", nan_too=False)
    _refuse_extreme(table, names, "Output", LARGEST)
    return table, names, flat


def refuse_unobserved(Y: Float[Array, "n D"], n_rows: int, names: Sequence[str]) -> None:
    """An output that was never measured cannot be learned. Y may be the extremes of all rows."""
    for d in np.flatnonzero(np.isnan(Y).all(axis=0)).tolist():
        raise ValueError(
            f"Output {names[d]!r} was never measured: all {n_rows} of its values are NaN "
            "(Input y contains NaN only). Leave that column out of Y, or give some readings."
        )


def enter_known(
    observed: Any, n_sites: int, names: Sequence[str], flat: bool
) -> Float[Array, "M D"]:
    """Outputs known at the new places. A frame may hold some of the outputs, by name."""
    observed = as_table(observed)
    if isinstance(observed, pd.DataFrame):
        unknown = [str(column) for column in observed.columns if str(column) not in names]
        if unknown:
            raise ValueError(
                f"observed has columns {unknown} that are no outputs of this model; "
                f"its outputs are {list(names)}."
            )
        _refuse_text(observed, "observed", "Write NaN where an output is unknown.")
        observed = observed.set_axis([str(c) for c in observed.columns], axis=1)
        observed = observed.reindex(columns=list(names))
    elif flat and np.ndim(observed) == 1:
        observed = np.reshape(observed, (-1, 1))
    if np.shape(observed) != (n_sites, len(names)):
        raise ValueError(
            f"observed has shape {np.shape(observed)}; expected ({n_sites}, {len(names)}): a "
            f"column for each of {list(names)}, NaN where unknown. A DataFrame may hold only some."
        )
    named = pd.DataFrame(np.asarray(observed), columns=list(names))
    return enter_outputs(named, n_sites, "observed")[0]


def ordered(Y: Any, names: Sequence[str]) -> Any:
    """A frame of outputs with its columns in this order, if it has these and no others."""
    if not isinstance(Y, pd.DataFrame) or set(map(str, Y.columns)) != set(names):
        return Y
    return Y.set_axis(list(map(str, Y.columns)), axis=1)[list(names)]


def names_of(table: Any, n: int) -> list[str]:
    """Those of the columns, or their numbers."""
    if isinstance(table, pd.Series):
        return [str(table.name if table.name is not None else 0)]
    if isinstance(table, pd.DataFrame):
        return [str(column) for column in table.columns]
    return [str(i) for i in range(n)]


def steps_of(table: Any, n: int) -> Float[Array, " n"]:
    """Distance between neighbouring floating-point numbers of each column, relative to them.

    >>> steps_of(np.zeros((3, 2), dtype=np.float32), 2).round(9)
    array([1.19e-07, 1.19e-07])
    """
    frame = table.to_frame() if isinstance(table, pd.Series) else table
    dtypes = (
        frame.dtypes if isinstance(frame, pd.DataFrame) else [getattr(table, "dtype", "f8")] * n
    )
    known = {"float16": 2.0**-10, "float32": 2.0**-23, "float": 2.0**-23, "halffloat": 2.0**-10}
    return np.array([known.get(str(dtype).lower().partition("[")[0], 2.0**-52) for dtype in dtypes])


def as_tables(X: Any, y: Any) -> list[Any]:
    """What is to be learned from, as `as_table` has it; of one table of Dask's, in one pass."""
    refuse_stray_coordinates(X)
    return [as_table(table) for table in gathered(X, y)]


def as_table(table: Any) -> Any:
    """Whatever stands for a missing value as NaN, and frames of other libraries as pandas'.

    What Dask holds is brought into memory.

    >>> as_table(np.ma.masked_equal([1.0, -9999.0], -9999.0))
    array([ 1., nan])
    """
    if is_lazy(table) or is_labelled(table):
        (table,) = gathered(table)
    if _lists_masks(table):
        table = np.ma.stack([np.ma.asarray(row) for row in table])  # noqa: PD013
    if isinstance(table, np.ma.MaskedArray):
        # Not filled in place of the mask: a fill value such as 1e20 would pass for a reading.
        return np.where(np.ma.getmaskarray(table), np.nan, table.data.astype(float))
    if isinstance(table, pd.DataFrame):
        return _without_na(table)
    if isinstance(table, pd.Series):
        column = _without_na(table.to_frame()).iloc[:, 0]
        column.name = table.name
        return column
    if isinstance(table, list | tuple | np.ndarray):
        return _objects_without_na(table)
    if not hasattr(table, "__arrow_c_stream__"):
        return table
    columns = getattr(table, "column_names", getattr(table, "columns", None))
    if columns is None:  # one column of polars or Arrow
        return pd.Series(table.to_numpy(), name=getattr(table, "name", None))
    return _without_na(pd.DataFrame({name: table[name].to_numpy() for name in columns}))


def _lists_masks(table: Any) -> bool:
    """Whether it is a list of rows of which some have a mask; NumPy would forget it."""
    listed = isinstance(table, list | tuple)
    return listed and any(isinstance(row, np.ma.MaskedArray) for row in table)


def _objects_without_na(table: Any) -> Any:
    """An array, or a list, in which pandas' own mark of a missing value may be."""
    if isinstance(table, np.ndarray) and table.dtype != object:
        return table
    try:
        objects = np.asarray(table, dtype=object)
    except ValueError:  # rows of different lengths: refused in scikit-learn's words
        return table
    marks = np.frompyfunc(lambda value: value is pd.NA or value is np.ma.masked, 1, 1)
    missing = np.asarray(marks(objects), dtype=bool)
    return np.where(missing, np.nan, objects) if missing.any() else table


def _without_na(table: pd.DataFrame) -> pd.DataFrame:
    """pandas' own mark of a missing value, in columns of objects, as NaN; sparse columns whole."""
    clean = table.copy(deep=False)
    for i, dtype in enumerate(table.dtypes):
        column = clean.iloc[:, i]
        if pd.api.types.is_object_dtype(dtype):
            clean.isetitem(i, column.where(column.notna(), np.nan).to_numpy())
        elif isinstance(dtype, pd.SparseDtype):
            clean.isetitem(i, np.asarray(column))
    return clean


def _refuse_text(table: Any, what: str, remedy: str) -> None:
    """Name the column of a frame that does not hold numbers."""
    if isinstance(table, np.ndarray) and table.dtype.kind in "mM":
        raise ValueError(f"{what} holds {table.dtype} values, not numbers. {remedy}")
    if isinstance(table, np.ndarray) and table.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what} is {table.dtype}. {remedy}")
    if isinstance(table, np.ndarray) and table.dtype.kind in "OUS" and table.ndim in (1, 2):
        words = [isinstance(value, str) and not _is_number(value) for value in table.flat]
        if any(words):
            row, column = first_bad(np.reshape(words, (len(table), -1)))
            word = str(table.reshape(len(table), -1)[row, column])
            raise ValueError(
                f"{what} holds text: could not convert {word!r} (row {row}, column {column}) "
                f"to float. {remedy}"
            )
    if isinstance(table, pd.Series):
        table = table.to_frame()
    if not isinstance(table, pd.DataFrame):
        return
    twice = table.columns[table.columns.duplicated()].unique().tolist()
    if twice:
        raise ValueError(f"{what} has several columns named {twice}; give each its own name.")
    for name in table.columns:
        values = table[name]
        if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
            continue
        numbers = pd.to_numeric(values.astype(object), errors="coerce")
        bad = np.flatnonzero(numbers.isna() & values.notna())
        if len(bad) or not pd.api.types.is_object_dtype(values):
            example = values.iloc[bad[0]] if len(bad) else values.iloc[0] if len(values) else ""
            at = int(bad[0]) if len(bad) else 0
            raise ValueError(
                f"Column {name!r} of {what} holds {values.dtype} values, not numbers: "
                f"could not convert {example!r} (row {at}) to float. {remedy}"
            )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _refuse_infinite(
    table: Float[Array, "N C"], what: str, names: Sequence[str], kind: str, *, nan_too: bool
) -> None:
    """Name the first column and row with a value that is no number."""
    bad = np.isinf(table) | (np.isnan(table) if nan_too else False)
    if not bad.any():
        return
    row, column = first_bad(bad)
    value = "NaN" if np.isnan(table[row, column]) else "infinity"
    remedy = (
        "Drop those rows, or fill them in."
        if nan_too
        else "Write NaN where an output was not measured."
    )
    raise ValueError(
        f"Input {what} contains {value} or a value too large for dtype('float64'): {kind} "
        f"{names[column]!r}, row {row} ({int(bad.sum())} such values in all). {remedy}"
        if value == "infinity"
        else f"Input {what} contains NaN: {kind} {names[column]!r}, row {row} "
        f"({int(bad.sum())} such values in all). {remedy}"
    )


def _refuse_extreme(
    table: Float[Array, "N C"], names: Sequence[str], kind: str, most: float
) -> None:
    """Name a column whose squares would be infinite, or all zero."""
    for name, column in zip(names, table.T, strict=True):
        largest = np.abs(column).max(initial=0.0, where=~np.isnan(column))
        if largest > most or 0 < largest < 1 / most:
            raise ValueError(
                f"{kind} {name!r} reaches {largest:g}, whose square is too "
                f"{'large' if largest > 1 else 'small'} for 64 bits; expected between {1 / most:g} "
                f"and {most:g}. Choose another unit."
            )
