"""Warnings about tables that can be used but may contain errors.

There are warnings about numbers that look like codes for missing values, loss of digits, degrees
that are used as lengths, rows without readings, and outputs with few or constant readings, with
many readings at a detection limit, or with class codes.
"""

import re
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.geo import flat_degrees_warning
from emgpr.row_numbers import MAX_SHOWN, rows_from_zero
from emgpr.transforms import is_constant

Array = np.ndarray

MIN_READINGS = 10  # of an output, if another output has more than twice as many readings
# Codes for missing values: numbers that consist of nines, limits of 16-bit integers, powers of ten,
# and the codes used by netCDF, Surfer and FITS.
CODES = (
    *(-99.0, -999.0, -9999.0, -99999.0, 999.0, 9999.0, 99999.0, -999.9, -999.25, -32768.0, 32767.0),
    *(1e20, -1e20, 1e30, -1e30, 9.96921e36, 1.70141e38, -3.4028235e38),
)
# Minimum distance of a code from the other values, relative to their range: for a code that occurs
# once, and for a code that occurs repeatedly.
CODE_DISTANCE, REPEATED_CODE_DISTANCE = 2.0, 0.2
# Minimum distance of a code in absolute terms, and in multiples of the largest gap between the
# other values, because a number such as 999 can also be a regular member of a sequence.
CODE_STEPS = 5.0
# An output has many readings at its minimum if there are at least so many, if this is at least such
# a share of all readings, and if no other value is half as frequent.
MIN_AT_MINIMUM, MIN_SHARE_AT_MINIMUM = 5, 0.05
# Whole numbers from 0 to MAX_CODE are questioned as class codes if there are at most so many
# different ones, each with so many readings on average.
MAX_CODE, MAX_CLASSES, MIN_READINGS_PER_CLASS = 99, 10, 5
SPLIT_SHARE = 0.2  # of rows that share a site with rows of other outputs, above which to warn
MAX_SPACING = 1e-4  # spacing of floating-point numbers, relative to the range of a column
LONGITUDE = re.compile(r"(lon|lng|long|longitude)([^a-z].*)?$", re.IGNORECASE)
MAX_SEAM = 10.0  # gap, in degrees, between the ends of longitudes that span the whole globe


class DataWarning(str):
    """A warning about a table; its `kind` allows callers to add a specific remedy.

    The kind is "code" for a number that looks like a code for missing values and is stored in
    `code`, "degrees" for degrees that are used as lengths, and "" for all other warnings.
    """

    kind: str
    code: float | None

    def __new__(cls, message: str, kind: str = "", code: float | None = None) -> "DataWarning":
        """Create the warning from its message and kind."""
        warning = super().__new__(cls, message)
        warning.kind, warning.code = kind, code
        return warning


def input_warnings(
    X: Float[Array, "N P"],
    names: Sequence[str],
    spacing: Float[Array, " P"],
    crs: str | None = None,
) -> Iterator[DataWarning]:
    """Yield warnings about inputs; `spacing` is the floating-point precision of each column."""
    for p, name in enumerate(names):
        column = f"Input column {name!r}"
        yield from _code_warnings(X[:, p], column, "Drop these rows, or insert the values.")
        yield from _rounding_warnings(X[:, p], column, spacing[p])
    if crs is None:
        date_line = list(_date_line_warnings(X, names))
        flat = flat_degrees_warning(names)
        yield from date_line or ([DataWarning(flat, "degrees")] if flat else [])


def output_warnings(
    Y: Float[Array, "N D"],
    names: Sequence[str],
    spacing: Float[Array, " D"],
    *,
    centred: bool = True,
) -> Iterator[DataWarning]:
    """Yield warnings about outputs; `spacing` is the floating-point precision of each column."""
    for d, name in enumerate(names):
        values = Y[~np.isnan(Y[:, d]), d]
        yield from _code_warnings(values, f"Output {name!r}", "Write NaN there.")
        yield from _rounding_warnings(values, f"Output {name!r}", spacing[d])
        yield from _minimum_warnings(values, name)
        yield from _class_warnings(values, name)
    yield from _empty_row_warnings(Y)
    yield from _constant_output_warnings(Y, names, centred=centred)
    yield from _few_readings_warnings(Y, names)


def table_warnings(X: Float[Array, "N P"], Y: Float[Array, "N D"]) -> Iterator[DataWarning]:
    """Yield a warning if the readings of a site are in several rows, one for each output.

    >>> X, Y = np.zeros((2, 1)), np.array([[1.0, np.nan], [np.nan, 2.0]])
    >>> [message[:39] for message in table_warnings(X, Y)]
    ['2 of 2 rows have the same location as a']
    """
    observed = ~np.isnan(Y)
    if Y.shape[1] < 2 or not len(X):
        return
    repeated = pd.DataFrame(X).duplicated(keep=False).to_numpy()
    if not repeated.any():
        return
    n_read = observed.any(axis=1).sum()
    X, observed = X[repeated], observed[repeated]
    _, site = np.unique(X, axis=0, return_inverse=True)
    readings = np.zeros((site.max() + 1, Y.shape[1]), int)
    np.add.at(readings, site.ravel(), observed)
    rows = np.bincount(site.ravel(), weights=observed.any(axis=1))
    # Several rows, and no output was measured in more than one of them.
    split = (rows > 1) & (readings <= 1).all(axis=1)
    n = int(rows[split].sum())
    if n > SPLIT_SHARE * n_read:
        yield DataWarning(
            f"{n} of {len(Y)} rows have the same location as another row with readings of other "
            "outputs. If these are readings of the same site, write them in one row, for example "
            "with table.groupby(coordinates, as_index=False).first(): outputs can be predicted by "
            "regressions on known outputs only if they are in one row."
        )


def observed_warnings(
    observed: Float[Array, "M D"],
    Y: Float[Array, "N D"],
    names: Sequence[str],
    what: str = "observed",
) -> Iterator[DataWarning]:
    """Yield warnings about numbers in `observed` that look like codes for missing values.

    The numbers are compared with the training readings Y.
    """
    for d, name in enumerate(names):
        values, readings = observed[~np.isnan(observed[:, d]), d], Y[~np.isnan(Y[:, d]), d]
        yield from _code_warnings(values, f"{what} {name!r}", "Write NaN there.", readings)


def _code_warnings(
    values: Float[Array, " n"], what: str, remedy: str, valid: Float[Array, " m"] | None = None
) -> Iterator[DataWarning]:
    """Yield a warning for each code for missing values that is far from all other values.

    The other values include those in `valid`.

    >>> list(_code_warnings(np.array([1.0, 2.5, -9999.0]), "Output 'Zn'", "Write NaN there."))
    ["Output 'Zn' contains -9999 (1 of 3 values), far from the others (1 to 2.5): it looks like a
      code for a missing value. Write NaN there."]
    >>> list(_code_warnings(np.array([-150.0, -99.0, 40.0]), "Input column 'depth'", ""))
    []
    """
    is_code = np.column_stack([np.abs(values - code) <= 1e-6 * abs(code) for code in CODES])
    others = values[~is_code.any(axis=1)]
    others = others if valid is None else np.concatenate([valid, others])
    if not len(others):
        return
    low, high = float(others.min()), float(others.max())
    for code, n in zip(CODES, is_code.sum(axis=0).tolist(), strict=True):
        if n and _is_far(code, others, repeated=n > 1):
            yield DataWarning(
                f"{what} contains {code:g} ({n} of {len(values)} values), far from the others "
                f"({low:g} to {high:g}): it looks like a code for a missing value. {remedy}",
                "code",
                code,
            )


def _is_far(code: float, others: Float[Array, " n"], *, repeated: bool) -> bool:
    """Tell whether a code is too far from the other values to be one of them.

    >>> pressures = np.arange(1000.0, 1004.0)
    >>> _is_far(999.0, pressures, repeated=True), _is_far(9999.0, pressures, repeated=True)
    (False, True)
    """
    low, high = float(others.min()), float(others.max())
    span, distance = high - low, max(low - code, code - high)
    if not repeated:
        return distance > max(CODE_DISTANCE * span, CODE_STEPS)
    if code < 0 <= low:  # the only negative value
        return distance > REPEATED_CODE_DISTANCE * span
    gap = float(np.diff(np.unique(others)).max(initial=1.0))
    limit = max(REPEATED_CODE_DISTANCE * span, CODE_STEPS * gap)
    return distance > min(limit, max(span, CODE_STEPS))


def _rounding_warnings(
    values: Float[Array, " n"], what: str, spacing: float
) -> Iterator[DataWarning]:
    """Yield a warning if values are so far from zero that rounding affects their differences."""
    largest, span = float(np.abs(values).max()), float(values.max() - values.min())
    if 0 < MAX_SPACING * span < spacing * largest:
        yield DataWarning(
            f"{what} spans {span:.2g} around {largest:.3g}, where its floating-point numbers are "
            f"{spacing * largest:.1g} apart, so digits were lost when the data were stored. "
            "Subtract a constant before storing them, or store them as 64-bit numbers."
        )


def _minimum_warnings(values: Float[Array, " n"], name: str) -> Iterator[DataWarning]:
    """Yield a warning if many readings are equal to the smallest one.

    >>> cadmium = np.array([0.1] * 6 + [0.3, 0.4, 0.5, 0.7, 0.9, 1.2])
    >>> [str(warning)[:64] for warning in _minimum_warnings(cadmium, "Cd")]
    ["Output 'Cd' has its smallest value, 0.1, in 6 of 12 readings. If"]
    """
    levels, counts = np.unique(values, return_counts=True)
    if len(levels) <= MAX_CLASSES and _are_whole(levels):
        return  # counts or classes
    n, enough = int(counts[0]), max(MIN_AT_MINIMUM, MIN_SHARE_AT_MINIMUM * len(values))
    if len(levels) > 1 and n >= enough and n > 2 * counts[1:].max():
        cause = "it stands" if levels[0] else "these are not true zeros, but stand"
        yield DataWarning(
            f"Output {name!r} has its smallest value, {levels[0]:g}, in {n} of {len(values)} "
            f"readings. If {cause} for values below a detection limit, low predictions are "
            "uncertain by about this limit. The readings are used as they are."
        )


def _class_warnings(values: Float[Array, " n"], name: str) -> Iterator[DataWarning]:
    """Yield a warning if the readings look like the codes of classes.

    >>> [str(warning)[:60] for warning in _class_warnings(np.tile([1.0, 2.0, 3.0], 5), "soil")]
    ["Output 'soil' has only the values 1, 2, 3 in 15 readings. If"]
    """
    levels = np.unique(values)
    if not len(levels) or levels[0] < 0 or levels[-1] > MAX_CODE:
        return
    few = 1 < len(levels) <= min(MAX_CLASSES, len(values) / MIN_READINGS_PER_CLASS)
    if few and _are_whole(levels) and levels.tolist() != [0.0, 1.0]:
        listed = ", ".join(f"{level:g}" for level in levels)
        yield DataWarning(
            f"Output {name!r} has only the values {listed} in {len(values)} readings. If these are "
            "codes of classes, such as soil types, numbers between them have no meaning: leave the "
            "output out, or replace it with one column of 0 and 1 for each class."
        )


def _are_whole(numbers: Float[Array, " n"]) -> bool:
    return bool((numbers % 1 == 0).all())


def _date_line_warnings(X: Float[Array, "N P"], names: Sequence[str]) -> Iterator[DataWarning]:
    """Yield warnings about longitudes that are close on the globe, but far apart as numbers.

    >>> X = np.array([[179.0, 51.0], [178.0, 52.0], [-179.5, 51.5]])
    >>> [warning[:38] for warning in _date_line_warnings(X, ["lon", "lat"])]
    ["Input column 'lon' contains longitudes"]
    >>> list(_date_line_warnings(X - [90.0, 0.0], ["lon", "lat"]))
    []
    """
    for p, name in enumerate(names):
        lon = np.unique(X[:, p])
        span = lon[-1] - lon[0]
        seam = 360.0 - span  # from the largest to the smallest, across the date line
        if lon[0] < -180 or lon[-1] > 360 or span <= 180 or seam < 0:
            continue
        gap = np.diff(lon).max()
        # A column with another name is assumed to hold longitudes if it has a gap of half the globe
        # and another column may hold latitudes.
        others = np.delete(X, p, axis=1)
        unnamed = lon[-1] <= 180 and span > 300 and gap > 180 and _has_latitudes(others)
        if unnamed or (LONGITUDE.match(name) and (gap > seam or seam < MAX_SEAM)):
            yield DataWarning(
                f"Input column {name!r} contains longitudes from {lon[0]:g} to {lon[-1]:g}: sites "
                f"on either side of the date line (or of 0) are treated as {span:.0f} degrees "
                "apart. Set crs='EPSG:4326' on the estimator, or replace longitude and latitude by "
                "points in space: emgpr.on_sphere(longitude, latitude).",
                "degrees",
            )


def _has_latitudes(columns: Float[Array, "N p"]) -> bool:
    """Tell whether any of these columns could contain latitudes."""
    return bool((np.abs(columns).max(axis=0) <= 90).any()) if columns.shape[1] else False


def _empty_row_warnings(Y: Float[Array, "N D"]) -> Iterator[DataWarning]:
    rows = np.flatnonzero(np.isnan(Y).all(axis=1))
    if len(rows):
        yield DataWarning(
            f"Nothing was measured in {len(rows)} of {len(Y)} rows, which are ignored: "
            f"{rows_from_zero(rows)}{', …' * (len(rows) > MAX_SHOWN)}. Check these rows, or leave "
            "them out."
        )


def _constant_output_warnings(
    Y: Float[Array, "N D"], names: Sequence[str], *, centred: bool
) -> Iterator[DataWarning]:
    counts = (~np.isnan(Y)).sum(axis=0)
    constant = np.flatnonzero(is_constant(Y)).tolist()
    if not constant:
        return
    listed = ", ".join(repr(names[d]) for d in constant)
    outputs = f"Output {listed} has" if len(constant) == 1 else f"Outputs {listed} have"
    words = ["reading" if counts[d] == 1 else "readings" for d in constant]
    readings = ", ".join(
        f"{counts[d]} {word} of {np.nanmax(Y[:, d]):g}"
        for d, word in zip(constant, words, strict=True)
    )
    # With normalize_y=False, the prior mean is 0, and a constant other than 0 is a signal.
    predicted = ", which is predicted everywhere" if centred else ""
    yield DataWarning(
        f"{outputs} one value only ({readings}){predicted}: the data do not show how it varies, "
        "and its standard deviation is meaningless. Leave it out, or add different readings."
    )


def _few_readings_warnings(Y: Float[Array, "N D"], names: Sequence[str]) -> Iterator[DataWarning]:
    counts = (~np.isnan(Y)).sum(axis=0)
    few = (counts < MIN_READINGS) & (2 * counts < counts.max()) & ~is_constant(Y)
    for d in np.flatnonzero(few).tolist():
        yield DataWarning(
            f"Output {names[d]!r} was measured only {counts[d]} times, others up to "
            f"{counts.max()} times: its relation to them can hardly be estimated from so few "
            "readings, and its prediction intervals will be too narrow. Add readings, or leave "
            "the output out."
        )
