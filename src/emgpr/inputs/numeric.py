"""Conversion of columns of text and of dates to numbers.

Dates become days since 1970-01-01, so that they have the same origin in `fit` and in predictions.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from pandas.api.types import is_datetime64_any_dtype

from emgpr.io.cells import Cells, WrongCell, is_text_type, missing_messages, read_cells
from emgpr.row_numbers import rows_from_zero
from emgpr.user_warnings import warn

Array = np.ndarray

MICROSECONDS_PER_DAY = 86_400_000_000
FIRST_DATE, LAST_DATE = 19000101, 21001231  # dates written as numbers, YYYYMMDD
MIN_VALID_SHARE = 0.9  # of the numbers in a column of dates, if some of them are not dates


def numeric_columns(table: Any, what: str, remedy: str, *, are_inputs: bool = False) -> Any:
    """Convert columns of text to numbers.

    Values below a detection limit become half the limit, with a warning. Codes for missing values
    become NaN in outputs, with a warning, and raise an error in inputs, since these must be
    complete. Dates become days in inputs. If a cell is not a number, the error names its column and
    row. Tables other than pandas objects are returned unchanged.

    >>> table = pd.DataFrame({"day": ["1970-01-02", "1970-02-01"], "Cd": ["0,25", "1,5"]})
    >>> numeric_columns(table, "X", "Encode it.", are_inputs=True)
        day    Cd
    0   1.0  0.25
    1  31.0  1.50
    """
    if isinstance(table, pd.Series):
        frame = numeric_columns(table.to_frame(), what, remedy, are_inputs=are_inputs)
        return frame.iloc[:, 0].rename(table.name)
    if not isinstance(table, pd.DataFrame):
        return table
    converted, read = table.copy(deep=False), {}
    assume = bool(table.attrs.get("decimal_comma", False))
    for i, dtype in enumerate(table.dtypes):
        name, column = table.columns[i], table.iloc[:, i]
        if is_text_type(dtype):
            cells = read[str(name)] = read_cells(column, assume=assume)
            if cells.wrong is None and are_inputs and cells.missing:
                cells = replace(cells, values=None, wrong=_first_code(column, cells))
            if cells.values is None:
                raise ValueError(_wrong_cell_message(column, name, what, cells, remedy))
            if cells.values.dtype.kind == "f":
                converted.isetitem(i, cells.values)
                continue
            column = pd.Series(cells.values)
        if are_inputs and is_datetime64_any_dtype(column.dtype):
            converted.isetitem(i, to_days(column))
    below = (cells.below_message(name) for name, cells in read.items())
    for message in [*filter(None, below), *missing_messages(read)]:
        warn(f"{what}: {message}")
    return converted


def to_days(dates: pd.Series) -> Float[Array, " n"]:
    """Return the days since 1970-01-01, NaN where a date is missing.

    >>> to_days(pd.Series(pd.to_datetime(["1970-01-02 06:00", None])))
    array([1.25,  nan])
    """
    if getattr(dates.dtype, "tz", None) is not None:
        dates = dates.dt.tz_convert(None)
    values = dates.to_numpy(dtype="datetime64[us]")
    days = values.astype(np.int64) / MICROSECONDS_PER_DAY
    return np.where(np.isnat(values), np.nan, days)


def days_from_numbers(X: Float[Array, "N P"], names: Sequence[str]) -> Float[Array, "N P"]:
    """Convert columns of dates that are written as numbers (YYYYMMDD), with a warning."""
    for p in date_number_columns(X):
        dates = X[:, p]
        days = _days_since_1970(dates)
        wrong = np.flatnonzero(np.isnan(days) & ~np.isnan(dates))
        if len(wrong):
            raise ValueError(
                f"Input column {names[p]!r} contains dates written as numbers, such as "
                f"{np.nanmin(dates):.0f}, but {dates[wrong[0]]:.10g} in "
                f"{rows_from_zero(wrong[:1])} is not a date. Correct it, or leave the row out."
            )
        warn(
            f"Input column {names[p]!r} contains dates written as numbers ({np.nanmin(dates):.0f} "
            f"to {np.nanmax(dates):.0f}); they are converted to days since 1970-01-01."
        )
        X = X.copy()
        X[:, p] = days
    return X


def date_number_columns(table: Float[Array, "N C"]) -> list[int]:
    """Return the columns that contain dates written as numbers, YYYYMMDD.

    >>> date_number_columns(np.array([[20240131.0, 20240131.5], [20240229.0, 20240301.0]]))
    [0]
    """
    return [c for c in range(table.shape[1]) if _are_dates(table[:, c])]


def check_no_date_numbers(Y: Float[Array, "N D"], names: Sequence[str]) -> None:
    """Raise if an output consists of dates written as numbers."""
    for d in date_number_columns(Y):
        raise ValueError(
            f"Output {names[d]!r} contains dates written as numbers, such as "
            f"{np.nanmin(Y[:, d]):.0f}; expected readings. Leave it out of the outputs; dates can "
            "be inputs."
        )


def date_columns(X: Any) -> tuple[int, ...]:
    """Return the columns of a table of inputs that are converted from dates to days."""
    if not isinstance(X, pd.DataFrame):
        array = np.asarray(X)
        is_numeric = array.dtype.kind in "fiu" and array.ndim == 2
        return tuple(date_number_columns(array.astype(float))) if is_numeric else ()
    return tuple(i for i in range(X.shape[1]) if _is_date_column(X.iloc[:, i]))


def _is_date_column(column: pd.Series) -> bool:
    if is_text_type(column.dtype):
        values = read_cells(column).values
    elif is_datetime64_any_dtype(column.dtype):
        return True
    else:
        values = column.to_numpy(dtype=float, na_value=np.nan)
    return values is not None and (values.dtype.kind == "M" or _are_dates(values))


def _are_dates(numbers: Float[Array, " n"]) -> bool:
    """Tell whether almost all numbers of a column are dates, YYYYMMDD."""
    known = numbers[~np.isnan(numbers)]
    if not len(known) or known.min() < FIRST_DATE or known.max() > LAST_DATE:
        return False
    return float(np.mean(~np.isnan(_days_since_1970(known)))) >= MIN_VALID_SHARE


def _days_since_1970(numbers: Float[Array, " n"]) -> Float[Array, " n"]:
    """Convert YYYYMMDD to days; NaN where this is not a date."""
    year, rest = np.divmod(numbers, 10_000)
    month, day = np.divmod(rest, 100)
    parts = pd.DataFrame({"year": year, "month": month, "day": np.where(day % 1, np.nan, day)})
    return to_days(pd.to_datetime(parts, errors="coerce"))


def _first_code(column: pd.Series, cells: Cells) -> WrongCell:
    """Return the first cell that contains a code for a missing value."""
    texts = column.astype(object).map(lambda value: value.strip() if isinstance(value, str) else "")
    row = int(np.flatnonzero(texts.isin(list(cells.missing)))[0])
    return WrongCell(row, texts.iloc[row], "text")


def _wrong_cell_message(
    column: pd.Series, name: object, what: str, cells: Cells, remedy: str
) -> str:
    assert cells.wrong is not None
    row, value, kind = cells.wrong
    remedy = remedy if kind == "text" else cells.wrong.remedy
    return (
        f"Column {name!r} of {what} contains {column.dtype} values, not numbers: could not convert "
        f"{value!r} in {rows_from_zero([row])} to float. {remedy}"
    )
