"""What a table makes one doubt: it can be used, but may not say what its owner thinks it says."""

import re
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from emgpr.geo import doubt_flat
from emgpr.transforms import is_constant

Array = np.ndarray

FEW = 10  # readings of an output beside others that have far more
# What files write for "missing": round negatives and nines, ends of 16 bits, netCDF, Surfer, FITS.
CODES = (
    *(-99.0, -999.0, -9999.0, -99999.0, 999.0, 9999.0, 99999.0, -999.9, -999.25, -32768.0, 32767.0),
    *(1e20, -1e20, 1e30, -1e30, 9.96921e36, 1.70141e38, -3.4028235e38),
)
LONE, REPEATED = 2.0, 0.2  # spans of the other values, between them and such a code
STEPS = 5.0  # units, and gaps among the others: a grid may begin or end at a code
COARSE = 1e-4  # of the span: a step between floats that blurs what is learned
LONGITUDE = re.compile(r"(lon|lng|long|longitude)([^a-z].*)?$", re.IGNORECASE)
SEAM = 10.0  # degrees between the ends of longitudes that go all the way round


class Doubt(str):
    """What is doubted, in words, and of what `kind`: for those who know a remedy of their own.

    A "code" for missing values has its value in `code`; "degrees" are taken for lengths.
    """

    kind: str
    code: float | None

    def __new__(cls, said: str, kind: str = "", code: float | None = None) -> "Doubt":
        """What is said, and what is known about it."""
        made = super().__new__(cls, said)
        made.kind, made.code = kind, code
        return made


def about_inputs(
    X: Float[Array, "N P"],
    names: Sequence[str],
    steps: Float[Array, " P"],
    crs: str | None = None,
) -> Iterator[Doubt]:
    """Codes for missing values, digits that float cannot hold, and degrees taken for lengths."""
    for p, name in enumerate(names):
        yield from _codes(X[:, p], f"Input column {name!r}", "Drop those rows, or fill them in.")
        yield from _blurred(X[:, p], f"Input column {name!r}", steps[p])
    if crs is None:
        flat = doubt_flat(names)
        seams = list(_across_the_date_line(X, names))
        yield from seams or ([Doubt(flat, "degrees")] if flat else [])


def about_outputs(
    Y: Float[Array, "N D"],
    names: Sequence[str],
    steps: Float[Array, " D"],
    *,
    centred: bool = True,
) -> Iterator[Doubt]:
    """Codes for missing values, digits lost, and outputs that little can be learned of."""
    for d, name in enumerate(names):
        values = Y[~np.isnan(Y[:, d]), d]
        yield from _codes(values, f"Output {name!r}", "Write NaN there.")
        yield from _blurred(values, f"Output {name!r}", steps[d])
    yield from _rows_without_readings(Y)
    yield from _constant(Y, names, centred=centred)
    yield from _rare(Y, names)


def about_known(
    given: Float[Array, "M D"],
    Y: Float[Array, "N D"],
    names: Sequence[str],
    what: str = "observed",
) -> Iterator[Doubt]:
    """Codes for missing values among outputs that come later, beside those learned from."""
    for d, name in enumerate(names):
        values, learned = given[~np.isnan(given[:, d]), d], Y[~np.isnan(Y[:, d]), d]
        yield from _codes(values, f"{what} {name!r}", "Write NaN there.", learned)


def _codes(
    values: Float[Array, " n"], what: str, remedy: str, beside: Float[Array, " m"] | None = None
) -> Iterator[Doubt]:
    """Values that files write for "missing", away from all others.

    >>> list(_codes(np.array([1.0, 2.5, -9999.0]), "Output 'Zn'", "Write NaN there."))
    ["Output 'Zn' holds -9999 (1 of 3 values), far from its others (1 to 2.5): it looks like a
      code for a missing value. Write NaN there."]
    >>> list(_codes(np.array([-150.0, -99.0, 40.0]), "Input column 'depth'", ""))
    []
    """
    is_code = np.isclose(values[:, None], CODES, rtol=1e-6, atol=0.0)
    others = values[~is_code.any(axis=1)]
    others = others if beside is None else np.concatenate([beside, others])
    if not len(others):
        return
    low, high = float(others.min()), float(others.max())
    for code, times in zip(CODES, is_code.sum(axis=0).tolist(), strict=True):
        if times and _is_far(code, others, repeated=times > 1):
            yield Doubt(
                f"{what} holds {code:g} ({times} of {len(values)} values), far from its others "
                f"({low:g} to {high:g}): it looks like a code for a missing value. {remedy}",
                "code",
                code,
            )


def _is_far(code: float, others: Float[Array, " n"], *, repeated: bool) -> bool:
    """Whether a code lies where the others would not go on to.

    >>> pressures = np.arange(1000.0, 1004.0)
    >>> _is_far(999.0, pressures, repeated=True), _is_far(9999.0, pressures, repeated=True)
    (False, True)
    """
    low, high = float(others.min()), float(others.max())
    span, away = high - low, max(low - code, code - high)
    if not repeated:
        return away > max(LONE * span, STEPS)
    if code < 0 <= low:  # of another sign than all others
        return away > REPEATED * span
    gap = float(np.diff(np.unique(others)).max(initial=1.0))
    return away > min(max(REPEATED * span, STEPS * gap), max(span, STEPS))


def _blurred(values: Float[Array, " n"], what: str, step: float) -> Iterator[Doubt]:
    """Values so far from zero that float hardly tells them apart."""
    largest, span = float(np.abs(values).max()), float(values.max() - values.min())
    if 0 < COARSE * span < step * largest:
        yield Doubt(
            f"{what} spans {span:.2g} around {largest:.3g}, where its floating-point numbers are "
            f"{step * largest:.1g} apart: digits were lost before they came here. Subtract a "
            "constant where they are made, or store them in 64 bits."
        )


def _across_the_date_line(X: Float[Array, "N P"], names: Sequence[str]) -> Iterator[Doubt]:
    """Longitudes whose ends are neighbours on the globe, and far apart as numbers.

    >>> X = np.array([[179.0, 51.0], [178.0, 52.0], [-179.5, 51.5]])
    >>> [doubt[:32] for doubt in _across_the_date_line(X, ["lon", "lat"])]
    ["Input column 'lon' holds longitu"]
    >>> list(_across_the_date_line(X - [90.0, 0.0], ["lon", "lat"]))
    []
    """
    for p, name in enumerate(names):
        lon = np.unique(X[:, p])
        span, around = lon[-1] - lon[0], 360.0 - (lon[-1] - lon[0])
        if lon[0] < -180 or lon[-1] > 360 or span <= 180 or around < 0:
            continue
        gap = np.diff(lon).max()
        # Without a name to go by: a hole where the rest of the globe is, and latitudes beside it.
        beside = np.delete(X, p, axis=1)
        nameless = lon[-1] <= 180 and span > 300 and gap > 180 and _latitudes(beside)
        if nameless or (LONGITUDE.match(name) and (gap > around or around < SEAM)):
            yield Doubt(
                f"Input column {name!r} holds longitudes from {lon[0]:g} to {lon[-1]:g}: sites on "
                f"either side of the date line (or of 0) count as {span:.0f} degrees apart. Set "
                "crs='EPSG:4326' on the estimator, or give points in space in place of longitude "
                "and latitude: emgpr.on_sphere(longitude, latitude).",
                "degrees",
            )


def _latitudes(columns: Float[Array, "N p"]) -> bool:
    """Whether any of these can be latitudes."""
    return bool((np.abs(columns).max(axis=0) <= 90).any()) if columns.shape[1] else False


def _rows_without_readings(Y: Float[Array, "N D"]) -> Iterator[Doubt]:
    rows = np.flatnonzero(np.isnan(Y).all(axis=1))
    if len(rows):
        yield Doubt(
            f"Nothing was read in {len(rows)} of {len(Y)} rows (first {rows[:5].tolist()}); they "
            "teach nothing and are left out. Check them, or leave them out yourself."
        )


def _constant(Y: Float[Array, "N D"], names: Sequence[str], *, centred: bool) -> Iterator[Doubt]:
    counts = (~np.isnan(Y)).sum(axis=0)
    still = np.flatnonzero(is_constant(Y)).tolist()
    who = ", ".join(repr(names[d]) for d in still)
    readings = ", ".join(f"{counts[d]} readings of {np.nanmax(Y[:, d]):g}" for d in still)
    # About a mean of 0, as normalize_y=False asks for, a constant is a signal like any other.
    told = ", which is predicted everywhere" if centred else ""
    if still:
        yield Doubt(
            f"{f'Output {who} has' if len(still) == 1 else f'Outputs {who} have'} one value only "
            f"({readings}){told}: nothing says how it varies, and its "
            "standard deviation means nothing. Leave it out, or give readings that differ."
        )


def _rare(Y: Float[Array, "N D"], names: Sequence[str]) -> Iterator[Doubt]:
    counts = (~np.isnan(Y)).sum(axis=0)
    rare = (counts < FEW) & (2 * counts < counts.max()) & ~is_constant(Y)
    for d in np.flatnonzero(rare).tolist():
        yield Doubt(
            f"Output {names[d]!r} was read {counts[d]} times only, others up to {counts.max()}: "
            "how it follows them can hardly be learned from so few, and its intervals hold less "
            "than they say."
        )
