"""Interpretation of the text in table cells, for files and for columns of text in pandas.

Cells can contain numbers with decimal points or commas, codes for missing values ("n.d.", "NA"),
values below a detection limit ("<0.5") or dates ("2024-01-31").
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float

Array = np.ndarray

# Text that stands for a missing value in a column of numbers, in lower case.
MISSING = frozenset(
    [
        "na", "n.a.", "n.a", "n/a", "#n/a", "#n/a n/a", "#na", "<na>", "nan", "-nan", "null",
        "none", "nil", "nd", "n.d.", "n.d", "n/d", "n.b.", "n.m.", "nm", "-", "--", "---", "–", "—",
        ".", "..", "...", "?", "*", "<empty>", "empty", "missing", "no data", "nodata",
        "not measured",
        "#value!", "#div/0!", "#ref!", "#num!", "#name?", "#null!",
    ]
)  # fmt: skip
NOT_DETECTED = frozenset(["nd", "n.d.", "n.d", "n/d"])  # can also mean "not determined"
# Text for a value below a detection limit that is not stated, besides "<LOD" and similar.
BELOW_UNKNOWN = frozenset(
    ["lod", "loq", "bdl", "b.d.l.", "bd", "b.d.", "bld", "blod", "bql", "blq", "n.n."]
)
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
NUMBER_WITH_POINT = re.compile(r"[-+]?\d*\.\d*(?:[eE][-+]?\d+)?")
NUMBER_WITH_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(?:[ .,'\u2019\u00a0\u202f]\d{3})+(?:[.,]\d+)?")
ONE_GROUP = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")  # 1,234: a decimal comma, or thousands
GROUPS = {".": re.compile(r"(?<=\d)[ ,'\u2019\u00a0\u202f](?=\d{3}(?:\D|$))"),
          ",": re.compile(r"(?<=\d)[ .'\u2019\u00a0\u202f](?=\d{3}(?:\D|$))")}  # fmt: skip
COMPARED = re.compile(r"(<=|>=|[<>≤≥])\s*(.*)", re.DOTALL)
ISO_DATE = re.compile(
    r"\d{4}-\d{2}|\d{4}([-/])\d{2}\1\d{2}"
    r"(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s*(?:Z|[+-]\d{2}:?\d{2})?)?"
)
NUMBER_WITH_UNIT = re.compile(r"[-+]?[\d.,]*\d\s*(?:%|‰|[^\W\d_][^\d]*)")
OTHER_DATE = re.compile(r"\d{1,2}([./-])\d{1,2}\1(?:\d{4}|\d{2})(?: \d{1,2}:\d{2}(?::\d{2})?)?")
MAX_SHOWN = 3  # texts in a message


class WrongCell(NamedTuple):
    """A cell that is not a number: its row, counted from 0, its value, and what is wrong with it.

    The kind is "above" for ">100", "thousands" for "1,200.5", "comma" for "1,234", which can have
    a decimal comma or a thousands separator, "mark" for the other decimal mark than in most cells
    of the column, "unit" for "5 mg/kg", "degrees" for "47°30'N", "date" for other dates than ISO
    dates, "below" for a detection limit that is unknown, and "text" for any other text.
    """

    row: int
    value: Any
    kind: str

    @property
    def remedy(self) -> str:
        """A sentence that says how to change the cell."""
        sentences = {
            "above": "It is above a limit of measurement, whose value is unknown: write a number, "
            "or leave the cell empty.",
            "thousands": "Remove the thousands separators.",
            "comma": "It can have a decimal comma or a thousands separator: write a decimal point, "
            "or no separator.",
            "mark": "Most cells of the column have the other decimal mark: use the same in all.",
            "unit": "Write the number without its unit.",
            "degrees": "Write degrees as decimal numbers, such as 47.5.",
            "below": "Its detection limit is unknown: write the limit, such as <0.5.",
            "date": "Write dates as 2024-01-31 in all cells.",
        }
        return sentences.get(self.kind, "Write a number, or leave the cell empty.")


@dataclass(frozen=True)
class Cells:
    """The content of a column of text.

    `values` are numbers or dates; it is None if the column contains anything else. Then `wrong` is
    the first such cell, and `wrong_rows` has the rows of each such value. `missing` counts the
    codes for missing values. `below` counts the values below a detection limit, and `replaced` has
    the number for each.
    """

    values: Array | None
    n_filled: int
    missing: Mapping[str, int] = field(default_factory=dict)
    below: Mapping[str, int] = field(default_factory=dict)
    replaced: Mapping[str, float] = field(default_factory=dict)
    wrong: WrongCell | None = None
    wrong_rows: Mapping[Any, list[int]] = field(default_factory=dict)

    def below_message(self, name: object) -> str | None:
        """Return a message about values below a detection limit, or None if there are none."""
        if not self.below:
            return None
        unstated = [text for text in self.below if _limit(text) is None]
        shown = _listed(
            f"{text!r} in {n} cell{'s' * (n > 1)} as {self.replaced[text]:g}"
            for text, n in self.below.items()
        )
        hint = (
            f" The limit of {unstated[0]!r} is not stated; it was taken to be the smallest value "
            "of the column. Write the limit, such as <0.5."
            if unstated
            else ""
        )
        return (
            f"Column {name!r} has {sum(self.below.values())} of {self.n_filled} values below a "
            f"detection limit, which are read as half the limit: {shown}.{hint}"
        )


def read_cells(column: pd.Series, decimal: str | None = None, *, assume: bool = False) -> Cells:
    """Read a column of text or of mixed objects.

    `decimal` is the decimal mark; with None, it is determined from the cells. With `assume`, a
    comma in numbers such as 1,234 is assumed to be a decimal mark.

    >>> read_cells(pd.Series(["0,7", "<0,5", "n.d."])).values
    array([0.7 , 0.25,  nan])
    >>> read_cells(pd.Series(["2024-01-31", "NA"])).values
    array(['2024-01-31T00:00:00.000000', 'NaT'], dtype='datetime64[us]')
    >>> read_cells(pd.Series(["0.7", "high"])).wrong
    WrongCell(row=1, value='high', kind='text')
    """
    objects = column.to_numpy(dtype=object)
    is_text = np.array([isinstance(value, str) for value in objects], dtype=bool)
    filled = ~np.asarray(pd.isna(objects), dtype=bool)
    texts = [value.strip().replace("\u2212", "-") for value in objects[is_text]]  # minus signs
    filled[is_text] = [text != "" for text in texts]
    numbers = np.full(len(objects), np.nan)
    numbers[~is_text] = [_number(value) for value in objects[~is_text]]
    mark, ambiguous = _decimal_mark(texts, decimal, assume=assume)
    numbers[is_text] = _to_numbers(texts, mark, explicit=decimal is not None)
    rest = np.flatnonzero(filled & np.isnan(numbers))
    found = _classify(objects, rest, mark, ambiguous, explicit=decimal is not None)
    n_filled, missing = int(filled.sum()), _counts(found, "missing")
    if _all_dates(found, numbers):
        dates = {value: rows for (kind, value), rows in found.items() if kind == "iso"}
        return Cells(_to_dates(len(objects), dates), n_filled, missing)
    below = _counts(found, "below")
    replaced = _half_limits(below, numbers)
    wrong = {
        (kind, text): rows
        for (kind, text), rows in found.items()
        if kind not in ("missing", "below") or np.isnan(replaced.get(text, 0.0))
    }
    if wrong:
        first = _wrong_cell(wrong, has_numbers=not np.isnan(numbers).all())
        wrong_rows = {text: rows for (_, text), rows in wrong.items()}
        return Cells(None, n_filled, wrong=first, wrong_rows=wrong_rows)
    for text_below, half in replaced.items():
        numbers[found["below", text_below]] = half
    return Cells(numbers, n_filled, missing, below, replaced)


def read_text_columns(
    table: pd.DataFrame, decimal: str | None = None, *, assume: bool = False
) -> tuple[pd.DataFrame, list[str]]:
    """Convert columns of text that contain only numbers or dates, and return messages about them.

    >>> read_text_columns(pd.DataFrame({"Cd": ["0.7", "NA"], "soil": ["clay", "NA"]}))[1]
    ["Some cells are read as missing: 'NA' in column 'Cd' (1 of 2 cells)."]
    """
    changed: dict[int, Array] = {}
    missing: dict[str, Cells] = {}
    messages: list[str] = []
    for i, dtype in enumerate(table.dtypes):
        if not is_text_type(dtype):
            continue
        cells, name = read_cells(table.iloc[:, i], decimal, assume=assume), str(table.columns[i])
        if cells.values is not None:
            changed[i], missing[name] = cells.values, cells
            messages += filter(None, [cells.below_message(name)])
    if not changed:
        return table, messages
    converted = table.copy(deep=False)
    for i, values in changed.items():
        converted.isetitem(i, values)
    return converted, messages + missing_messages(missing)


def is_text_type(dtype: Any) -> bool:
    """Tell whether a column of this type can contain text."""
    is_text = pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype)
    return bool(is_text and not isinstance(dtype, pd.CategoricalDtype))


def missing_messages(columns: Mapping[str, Cells]) -> list[str]:
    """Return a message about the codes that were read as missing, or an empty list."""
    parts = [
        f"{code!r} in column {name!r} ({n} of {cells.n_filled} cells)"
        for name, cells in columns.items()
        for code, n in cells.missing.items()
    ]
    if not parts:
        return []
    codes = {code for cells in columns.values() for code in cells.missing}
    unclear = sorted(code for code in codes if code.lower() in NOT_DETECTED)
    hint = (
        f" If {unclear[0]!r} means that a value was below the detection limit, write the limit "
        "instead, such as <0.5."
        if unclear
        else ""
    )
    return [f"Some cells are read as missing: {_listed(parts)}.{hint}"]


def _listed(parts: Iterable[str]) -> str:
    parts = list(parts)
    more = len(parts) - MAX_SHOWN
    return "; ".join(parts[:MAX_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def _wrong_cell(found: Mapping[tuple[str, str], list[int]], *, has_numbers: bool) -> WrongCell:
    """Return the first cell that is wrong."""
    # Dates, and numbers with the other decimal mark, can be right once other text is removed.
    kind, text = min(found, key=lambda key: (key[0] in ("comma", "mark", "iso"), found[key][0]))
    is_date = kind in ("iso", "date")
    return WrongCell(
        found[kind, text][0], text, ("text" if has_numbers else "date") if is_date else kind
    )


def _number(value: Any) -> float:
    """Return a number that is not text; NaN for other objects."""
    is_number = isinstance(value, Real | Decimal | np.bool_) and not isinstance(
        value, np.timedelta64
    )
    return float(value) if is_number else np.nan


def _decimal_mark(
    texts: Sequence[str], decimal: str | None, *, assume: bool
) -> tuple[str, Sequence[str]]:
    """Return the decimal mark of a column, and texts in which a comma can have two meanings."""
    if decimal is not None:
        return decimal, ()
    with_mark = [value for value in texts if "," in value or "." in value]
    bare = [value.lstrip("<>=≤≥ ") for value in with_mark]
    commas = [value for value in bare if NUMBER_WITH_COMMA.fullmatch(value)]
    if not commas:
        return ".", ()
    points = [value for value in bare if NUMBER_WITH_POINT.fullmatch(value)]
    if len(points) > len(commas):
        return ".", ()
    ambiguous = all(ONE_GROUP.fullmatch(value) for value in commas)
    if ambiguous and (points or not assume):
        return ".", commas
    return ",", ()


def _to_numbers(texts: Sequence[str], mark: str, *, explicit: bool) -> Float[Array, " n"]:
    """Convert text to numbers, NaN where this is impossible.

    If the decimal mark was given explicitly, numbers can have thousands separators.
    """
    if explicit:
        groups = GROUPS[mark]
        texts = [groups.sub("", text) if THOUSANDS.fullmatch(text) else text for text in texts]
    if mark == ",":
        texts = ["" if "." in text else text.replace(",", ".") for text in texts]
    numbers = pd.to_numeric(np.array(texts, dtype=object), errors="coerce")
    return np.asarray(numbers, dtype=float)


def _classify(
    objects: Array, rows: Array, mark: str, ambiguous: Sequence[str], *, explicit: bool
) -> dict[tuple[str, str], list[int]]:
    """Return the rows of each distinct value that is not a number, by kind and value."""
    found: dict[tuple[str, str], list[int]] = {}
    kinds: dict[str, str] = {}
    for row in rows.tolist():
        value = objects[row]
        if isinstance(value, str):
            value = value.strip()
            if value not in kinds:
                kinds[value] = _kind(value, mark, ambiguous, explicit=explicit)
            kind = kinds[value]
        else:
            kind = "iso" if isinstance(value, date | np.datetime64) else "text"
            value = str(value)
        found.setdefault((kind, value), []).append(row)
    return found


def _kind(text: str, mark: str, ambiguous: Sequence[str], *, explicit: bool) -> str:
    """Return the kind of a text that is not a number."""
    lower = text.lower()
    if lower in MISSING:
        return "missing"
    if lower in BELOW_UNKNOWN:
        return "below"
    compared = COMPARED.fullmatch(text)
    if compared:
        sign, limit = compared.groups()
        is_number = bool(re.fullmatch(NUMBER, limit.replace(",", ".")))
        if sign in (">", ">=", "≥"):
            return "above" if is_number else "text"
        if is_number:
            wrong_mark = ("." if mark == "," else ",") in limit
            return "mark" if wrong_mark else "text" if limit.startswith("-") else "below"
        return "below" if re.fullmatch(r"[A-Za-z.]{2,4}", limit) else "text"
    if text in ambiguous:
        return "comma"
    if ISO_DATE.fullmatch(text):
        return "iso" if _parse_date(text) else "text"
    if OTHER_DATE.fullmatch(text):
        return "date"
    other = NUMBER_WITH_POINT if mark == "," else NUMBER_WITH_COMMA
    if other.fullmatch(text) and not (explicit and THOUSANDS.fullmatch(text)):
        return "mark"
    if "°" in text:
        return "degrees"
    if THOUSANDS.fullmatch(text):
        return "thousands"
    return "unit" if NUMBER_WITH_UNIT.fullmatch(text) else "text"


def _parse_date(text: str) -> datetime | None:
    """Return an ISO date or a month in UTC; None if it does not exist."""
    try:
        moment = datetime.fromisoformat(text.replace("/", "-") + "-01" * (len(text) == 7))
    except ValueError:
        return None
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _limit(text: str) -> float | None:
    """Return the detection limit in a text such as "<0.5", or None if it is not stated."""
    compared = COMPARED.fullmatch(text)
    number = compared.group(2).replace(",", ".") if compared else ""
    return float(number) if re.fullmatch(NUMBER, number) else None


def _half_limits(below: Mapping[str, int], numbers: Float[Array, " n"]) -> dict[str, float]:
    """Return half the detection limit for each text; NaN if it is unknown."""
    limits = {text: _limit(text) for text in below}
    stated = [limit for limit in limits.values() if limit is not None]
    positive = [value for value in [*stated, *numbers[numbers > 0].tolist()] if value > 0]
    unknown = min(positive, default=np.nan)
    return {text: (unknown if limit is None else limit) / 2 for text, limit in limits.items()}


def _all_dates(found: Mapping[tuple[str, str], Any], numbers: Float[Array, " n"]) -> bool:
    """Tell whether all cells that are not missing are dates."""
    kinds = {kind for kind, _ in found}
    return "iso" in kinds and kinds <= {"iso", "missing"} and bool(np.isnan(numbers).all())


def _counts(found: Mapping[tuple[str, str], list[int]], kind: str) -> dict[str, int]:
    return {value: len(rows) for (k, value), rows in found.items() if k == kind}


def _to_dates(n: int, found: Mapping[str, list[int]]) -> Array:
    """Return dates in UTC, NaT where there are none."""
    values = np.full(n, np.datetime64("NaT"), dtype="datetime64[us]")
    for text, rows in found.items():
        values[rows] = _parse_date(text)
    return values
