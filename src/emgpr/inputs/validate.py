"""Validation of inputs and outputs, and their conversion to numeric arrays.

`InputSpec` describes the inputs that a fitted model expects.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.utils.validation import check_array

from emgpr.geo import CoordinateColumns
from emgpr.inputs.convert import as_table
from emgpr.inputs.date_objects import check_no_dates
from emgpr.inputs.numeric import check_no_date_numbers, days_from_numbers, numeric_columns
from emgpr.inputs.rows import match_rows
from emgpr.observations import first_true
from emgpr.printable import escape_controls
from emgpr.row_numbers import rows_from_zero
from emgpr.user_warnings import warn

Array = np.ndarray

MAX_INPUT = 1e100  # so that ratios of squared distances are finite
MAX_OUTPUT = 1e153  # so that squares are finite
MAX_NAMES = 5  # maximum number of names in an error message
DATES_REMEDY = (
    "Pass dates as a column of a DataFrame, where they are read as days, for example "
    "X = index.to_frame() of a DatetimeIndex."
)


@dataclass(frozen=True)
class InputSpec:
    """Names and number of the input columns, their reference system, and the training rows.

    `feature_names` is None unless the training inputs had string names. `index` labels all rows of
    the training table; `rows` are the numbers of the rows in which something was measured. Kernel
    coordinates are the inputs of the kernels: the columns of X, in which points on the sphere
    replace longitude and latitude, divided by `scales` if the columns are standardised. `units` are
    the known units of inputs and outputs, by name.
    """

    estimator: str
    feature_names: tuple[str, ...] | None
    n_features: int
    crs: str | None
    index: pd.Index
    rows: Int[Array, " N"]
    scales: Float[Array, " p"] | None = None
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Names of the input columns, or column numbers if there are no names."""
        names: Iterable[Any] = self.feature_names or range(self.n_features)
        return [str(name) for name in names]

    @cached_property
    def coordinates(self) -> CoordinateColumns:
        """The columns that hold coordinates."""
        return CoordinateColumns.from_names(self.names, self.crs)

    def read(self, X: Any) -> Float[Array, "M p"]:
        """Validate new inputs and return them in kernel coordinates."""
        X = X if is_plain(X) else as_table(X)
        self.check_columns(X)
        return self.to_kernel(validate_inputs(X, self.estimator, training=False))

    def check_columns(self, X: Any) -> None:
        """Raise or warn if the columns differ from those of the training inputs."""
        check_feature_names(self.feature_names, string_names(X), self.estimator)
        n = np.shape(X)[1] if np.ndim(X) == 2 else self.n_features
        if n != self.n_features:
            raise ValueError(
                f"X has {n} features, but {self.estimator} is expecting {self.n_features} features "
                "as input."
            )

    def to_kernel(self, X: Float[Array, "N P"]) -> Float[Array, "N p"]:
        """Return inputs in kernel coordinates; degrees are converted to points on the sphere."""
        x = X if self.crs is None else self.coordinates.to_kernel(X)
        return x if self.scales is None else x / self.scales

    def to_user(self, x: Float[Array, "N p"]) -> Float[Array, "N P"]:
        """Convert inputs from kernel coordinates back to the original columns."""
        x = x if self.scales is None else x * self.scales
        return x if self.crs is None else self.coordinates.from_kernel(x)

    def named(self, X: Float[Array, "M P"]) -> Any:
        """Return inputs as a DataFrame if the training inputs had names, otherwise unchanged."""
        names = self.feature_names
        return X if names is None else pd.DataFrame(X, columns=list(names))


def is_plain(table: Any) -> bool:
    """Tell whether a table is a numeric array or frame that needs no conversion."""
    if type(table) is np.ndarray:
        return table.dtype.kind in "fiub"
    if type(table) is pd.DataFrame:
        return all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in table.dtypes)
    return False


def validate_inputs(X: Any, estimator: str, *, training: bool = True) -> Float[Array, "N P"]:
    """Return the inputs as a numeric array; `estimator` is the name used in error messages.

    Columns in which all values are close to zero cannot be used for training.
    """
    if X is None:
        raise ValueError("X is None; pass one row for each site and one column for each input.")
    remedy = "Encode it as numbers, or leave it out of the inputs."
    if isinstance(X, pd.DataFrame) and not X.shape[1]:
        raise ValueError(
            f"X has {len(X)} rows but no columns; expected one column for each input. If the "
            "coordinates or dates are in the index, pass X.index.to_frame()."
        )
    X = X if is_plain(X) else numeric_columns(as_table(X), "X", remedy, are_inputs=True)
    _check_numeric(X, "X", remedy)
    array = check_array(
        X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0, estimator=estimator,
        input_name="X",
    )  # fmt: skip
    if not len(array):
        raise ValueError(
            f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required "
            f"by {estimator}. Check the filter or the file that X comes from."
        )
    names = column_names(X, array.shape[1])
    _check_finite(array, "X", names, "input column", allow_nan=False)
    _check_range(array, names, "Input column", MAX_INPUT, training=training)
    return days_from_numbers(array, names)


def validate_outputs(
    Y: Any, n_rows: int, what: str = "y", *, training: bool = True
) -> tuple[Float[Array, "N D"], tuple[str, ...], bool]:
    """Return the outputs as a numeric array, their names, and whether Y was 1-D.

    Columns in which all values are close to zero cannot be used for training.
    """
    if Y is None:
        raise ValueError(
            "This estimator requires y to be passed, but the target y is None. Pass one row for "
            "each site and one column for each output, NaN where an output was not measured."
        )
    table_name = "Y" if what == "y" else what
    remedy = "Outputs must be numbers; write NaN where one was not measured."
    Y = Y if is_plain(Y) else numeric_columns(as_table(Y), table_name, remedy)
    _check_numeric(Y, table_name, remedy)
    if isinstance(Y, pd.DataFrame) and not len(Y.columns):
        raise ValueError("Y has no columns; pass at least one output.")
    array = check_array(
        Y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="y",
        ensure_min_samples=0, ensure_min_features=0,
    )  # fmt: skip
    if array.ndim == 0:
        raise ValueError(
            f"{what} is a single number, {array:g}; pass one row for each site and one column for "
            "each output."
        )
    one_dimensional = array.ndim == 1
    table = array.reshape(-1, 1) if one_dimensional else array
    if len(table) != n_rows:
        raise ValueError(row_count_message(n_rows, len(table)))
    if table.shape[1] == 0:
        raise ValueError("Y has no columns; pass at least one output.")
    names = column_names(Y, table.shape[1])
    _check_finite(table, what, names, "output", allow_nan=True)
    _check_range(table, names, "Output", MAX_OUTPUT, training=training)
    check_no_date_numbers(table, names)
    return table, names, one_dimensional


def row_count_message(n_inputs: int, n_outputs: int) -> str:
    """Return the error message for inputs and outputs with different numbers of rows."""
    return (
        f"X has {n_inputs} rows and Y has {n_outputs}; each row of Y must belong to the same row "
        "of X. Write NaN where an output was not measured."
    )


def check_each_output_observed(Y: Float[Array, "n D"], n_rows: int, names: Sequence[str]) -> None:
    """Raise if an output was never measured; Y contains the readings, or their extremes."""
    for d in np.flatnonzero(np.isnan(Y).all(axis=0)).tolist():
        raise ValueError(
            f"Output {names[d]!r} was never measured: all {n_rows} of its values are NaN "
            "(Input y contains NaN only). Leave this column out of Y, or add readings."
        )


def validate_observed(
    observed: Any, n_rows: int, names: Sequence[str], one_dimensional: bool
) -> Float[Array, "M D"]:
    """Return an array of outputs measured at new locations; a frame may have only some of them."""
    observed = observed if is_plain(observed) else as_table(observed)
    if isinstance(observed, pd.DataFrame):
        unknown = [str(column) for column in observed.columns if str(column) not in names]
        if unknown:
            raise ValueError(
                f"observed has columns {unknown} that are not outputs of this model; expected "
                f"columns from {list(names)}."
            )
        remedy = "Write NaN where an output is unknown."
        observed = numeric_columns(observed, "observed", remedy)
        _check_numeric(observed, "observed", remedy)
        observed = observed.set_axis([str(c) for c in observed.columns], axis=1)
        observed = observed.reindex(columns=list(names))
    elif one_dimensional and np.ndim(observed) == 1:
        observed = np.reshape(observed, (-1, 1))
    if np.shape(observed) != (n_rows, len(names)):
        raise ValueError(
            f"observed has shape {np.shape(observed)}; expected ({n_rows}, {len(names)}): one "
            f"column for each of {list(names)}, NaN where unknown. A DataFrame may have only some "
            "of these columns."
        )
    frame = pd.DataFrame(np.asarray(observed), columns=list(names))
    return validate_outputs(frame, n_rows, "observed", training=False)[0]


def order_outputs(Y: Any, names: Sequence[str], X: Any = None) -> Any:
    """Put the columns of a frame into the order used in `fit` if they have the same names.

    If X has an index, its labels determine the order of the rows.
    """
    Y = match_rows(X, Y, "y")
    if not isinstance(Y, pd.DataFrame) or set(map(str, Y.columns)) != set(names):
        return Y
    return Y.set_axis(list(map(str, Y.columns)), axis=1)[list(names)]


def column_names(table: Any, n: int) -> tuple[str, ...]:
    """Return the names of the columns, or column numbers if there are no names."""
    if isinstance(table, pd.Series):
        return (str(table.name if table.name is not None else 0),)
    if isinstance(table, pd.DataFrame):
        return tuple(str(column) for column in table.columns)
    return tuple(str(i) for i in range(n))


def float_spacing(table: Any, n: int) -> Float[Array, " n"]:
    """Return the relative spacing of floating-point numbers for the dtype of each column.

    >>> float_spacing(np.zeros((3, 2), dtype=np.float32), 2).round(9)
    array([1.19e-07, 1.19e-07])
    """
    frame = table.to_frame() if isinstance(table, pd.Series) else table
    dtypes = (
        frame.dtypes if isinstance(frame, pd.DataFrame) else [getattr(table, "dtype", "f8")] * n
    )
    known = {"float16": 2.0**-10, "float32": 2.0**-23, "float": 2.0**-23, "halffloat": 2.0**-10}
    return np.array([known.get(str(dtype).lower().partition("[")[0], 2.0**-52) for dtype in dtypes])


def _check_numeric(table: Any, what: str, remedy: str) -> None:
    """Raise if a column is not numeric; the message gives its name and the first bad value."""
    if isinstance(table, list | tuple):
        with suppress(ValueError):  # scikit-learn's check reports rows of different lengths
            table = np.asarray(table)
    if isinstance(table, np.ndarray):
        _check_numeric_array(table, what, remedy)
    if isinstance(table, pd.Series):
        table = table.to_frame()
    if not isinstance(table, pd.DataFrame):
        return
    names = table.columns.map(str)  # column 1 and column "1" have the same name, too
    duplicates = names[names.duplicated()].unique().tolist()
    if duplicates:
        raise ValueError(f"{what} has several columns named {duplicates}; rename all but one.")
    for name in table.columns:
        values = table[name]
        if pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
            continue
        numbers = pd.to_numeric(values.astype(object), errors="coerce")
        bad = np.flatnonzero(numbers.isna() & values.notna())
        if len(bad) or not pd.api.types.is_object_dtype(values):
            example = values.iloc[bad[0]] if len(bad) else values.iloc[0] if len(values) else ""
            row = int(bad[0]) if len(bad) else 0
            raise ValueError(
                f"Column {name!r} of {what} contains {values.dtype} values, not numbers: "
                f"could not convert {example!r} in {rows_from_zero([row])} to float. {remedy}"
            )


def _check_numeric_array(array: np.ndarray, what: str, remedy: str) -> None:
    if array.dtype.kind in "mM":
        if array.dtype.kind == "M" and what == "X":
            remedy = DATES_REMEDY
        raise ValueError(f"{what} contains {array.dtype} values, not numbers. {remedy}")
    if array.dtype.kind == "O" and array.ndim in (1, 2):
        check_no_dates(array, what)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {what} is {array.dtype}. {remedy}")
    if array.dtype.kind in "OUS" and array.ndim in (1, 2):
        is_text = [isinstance(value, str) and not _is_number(value) for value in array.flat]
        if any(is_text):
            row, column = first_true(np.reshape(is_text, (len(array), -1)))
            text = str(array.reshape(len(array), -1)[row, column])
            raise ValueError(
                f"{what} contains text: could not convert {text!r} in row {row}, column {column} "
                f"(both counted from 0) to float. {remedy}"
            )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _check_finite(
    table: Float[Array, "N C"], what: str, names: Sequence[str], kind: str, *, allow_nan: bool
) -> None:
    """Raise if a value is infinite or, without `allow_nan`, NaN; report its column and row."""
    bad = np.isinf(table) | (False if allow_nan else np.isnan(table))
    if not bad.any():
        return
    row, column = first_true(bad)
    found = "NaN"
    if not np.isnan(table[row, column]):
        found = "infinity or a value too large for dtype('float64')"
    remedy = (
        "Write NaN where an output was not measured."
        if allow_nan
        else "Drop these rows, or insert the values."
    )
    raise ValueError(
        f"Input {what} contains {found}: {kind} {names[column]!r}, {rows_from_zero([row])} "
        f"({int(bad.sum())} such values in total). {remedy}"
    )


def _check_range(
    table: Float[Array, "N C"], names: Sequence[str], kind: str, limit: float, *, training: bool
) -> None:
    """Raise if the square of a column's largest value would overflow or, in training, underflow."""
    for name, column in zip(names, table.T, strict=True):
        largest = np.abs(column).max(initial=0.0, where=~np.isnan(column))
        if largest > limit or (training and 0 < largest < 1 / limit):
            raise ValueError(
                f"{kind} {name!r} reaches {largest:g}, whose square is too "
                f"{'large' if largest > 1 else 'small'} for 64 bits; expected values between "
                f"{1 / limit:g} and {limit:g}. Choose another unit."
            )


def string_names(X: Any) -> tuple[str, ...] | None:
    """Return the column names of a frame if all are strings, otherwise None."""
    if not isinstance(X, pd.DataFrame):
        return None
    kinds = sorted({type(name).__qualname__ for name in X.columns})
    if len(kinds) > 1 and "str" in kinds:
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            f"input has {kinds} as feature name / column name types. If you want feature names to "
            "be stored and validated, you must convert them all to strings, by using X.columns = "
            "X.columns.astype(str) for example."
        )
    return tuple(X.columns) if kinds == ["str"] else None


def check_feature_names(
    fitted: tuple[str, ...] | None, given: tuple[str, ...] | None, estimator: str
) -> None:
    """Raise if input names differ from those in `fit`; warn if only one of the tables has names.

    The messages are those of scikit-learn.
    """
    if fitted == given:
        return
    if fitted is None:
        warn(f"X has feature names, but {estimator} was fitted without feature names")
        return
    if given is None:
        warn(f"X does not have valid feature names, but {estimator} was fitted with feature names")
        return
    message = "The feature names should match those that were passed during fit.\n"
    unexpected, missing = sorted(set(given) - set(fitted)), sorted(set(fitted) - set(given))
    if unexpected:
        message += "Feature names unseen at fit time:\n" + _listed(unexpected)
    if missing:
        message += "Feature names seen at fit time, yet now missing:\n" + _listed(missing)
    if not unexpected and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(message)


def _listed(names: Sequence[str]) -> str:
    lines = "".join(f"- {escape_controls(name)}\n" for name in names[:MAX_NAMES])
    return lines + ("- ...\n" if len(names) > MAX_NAMES else "")
