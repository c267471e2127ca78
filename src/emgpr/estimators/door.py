"""The door: what users bring becomes arrays here, or an error that says what to do."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, validate_data

from emgpr.geo import Places, doubt_flat
from emgpr.observations import first_bad

Array = np.ndarray

FEW = 10  # readings of an output beside others that have far more


def enter_inputs(estimator: BaseEstimator, X: Any, *, fitting: bool) -> Float[Array, "N P"]:
    """The inputs as kernels see them; remembers (or checks) the names and number of columns.

    Longitude and latitude of an estimator with a `crs` are points on the sphere from here on.
    """
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
    _refuse_infinite(array, "X", _names(X, array.shape[1]), "input column", nan_too=True)
    names, crs = input_names(estimator), getattr(estimator, "crs", None)
    doubt = doubt_flat(names, crs) if fitting else None
    if doubt:
        warnings.warn(doubt, UserWarning, stacklevel=4)  # the user's call of fit
    return Places.of(names, crs).enter(array)


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
    Y = _without_na(Y)
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
    flat = array.ndim == 1
    table = array.reshape(-1, 1) if flat else array
    if len(table) != n_sites:
        raise ValueError(
            f"X has {n_sites} rows and Y has {len(table)}; each row of Y must be one "
            "place in X. Write NaN where an output was not measured."
        )
    if table.shape[1] == 0:
        raise ValueError("Y has no columns; give at least one output.")
    names = _names(Y, table.shape[1])
    _refuse_infinite(table, what, names, "output", nan_too=False)
    return table, names, flat


def doubt_outputs(Y: Float[Array, "N D"], names: Sequence[str]) -> None:
    """Warn of outputs that little can be learned of: of one value, or read rarely."""
    counts = (~np.isnan(Y)).sum(axis=0)
    single = np.nanmin(Y, axis=0) == np.nanmax(Y, axis=0)
    rare = (counts < FEW) & (2 * counts < counts.max())
    for d in np.flatnonzero(single | rare).tolist():
        doubt = (
            f"has one value only ({counts[d]} readings of {np.nanmax(Y[:, d]):g}), which says "
            "nothing of how it varies; its uncertainty means nothing. Leave it out, or give "
            "readings that differ."
            if single[d]
            else f"was read {counts[d]} times only, others up to {counts.max()}: how it follows "
            "them can hardly be learned from so few, and its intervals hold less than they say."
        )
        # The fourth frame from here is the user's: _enter, fit, and their call of it.
        warnings.warn(f"Output {names[d]!r} {doubt}", UserWarning, stacklevel=4)


def refuse_unobserved(Y: Float[Array, "N D"], names: Sequence[str]) -> None:
    """An output that was never measured cannot be learned."""
    for d in np.flatnonzero(np.isnan(Y).all(axis=0)).tolist():
        raise ValueError(
            f"Output {names[d]!r} was never measured: all {len(Y)} of its values are NaN "
            "(Input y contains NaN only). Leave that column out of Y, or give some readings."
        )


def enter_known(
    observed: Any, n_sites: int, names: Sequence[str], flat: bool
) -> Float[Array, "M D"]:
    """Outputs known at the new places. A frame may hold some of the outputs, by name."""
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


def _names(table: Any, n: int) -> list[str]:
    if isinstance(table, pd.Series):
        return [str(table.name if table.name is not None else 0)]
    columns = getattr(table, "columns", None)
    return (
        [str(column) for column in columns] if columns is not None else [str(i) for i in range(n)]
    )


def _without_na(table: Any) -> Any:
    """pandas' own mark of a missing value, in columns of objects, as NaN."""
    if not isinstance(table, pd.DataFrame):
        return table
    objects = [i for i, dtype in enumerate(table.dtypes) if pd.api.types.is_object_dtype(dtype)]
    clean = table.copy(deep=False)
    for i in objects:
        column = clean.iloc[:, i]
        clean.isetitem(i, column.where(column.notna(), np.nan).to_numpy())
    return clean


def _refuse_text(table: Any, what: str, remedy: str) -> None:
    """Name the column of a frame that does not hold numbers."""
    if isinstance(table, np.ndarray) and table.dtype.kind in "OUS" and table.ndim in (1, 2):
        words = [isinstance(value, str) and not _is_number(value) for value in table.flat]
        if any(words):
            row, column = first_bad(np.reshape(words, (len(table), -1)))
            word = table.reshape(len(table), -1)[row, column]
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
