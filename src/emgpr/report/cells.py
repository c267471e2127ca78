"""Cells and tables of the report, and the formatting of numbers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, isfinite, log10
from typing import Any

MISSING = "–"
SIGNIFICANT_DIGITS = 3
# Numbers outside this range are written as powers of ten.
MIN_DECIMAL, MAX_DECIMAL = 1e-4, 1e7
MIN_GROUPED = 1e4  # Larger numbers are written with thousands separators.

Row = Mapping[Any, Any]


@dataclass(frozen=True)
class Cell:
    """A table cell: its text, the unrounded number if the text is a number, and its CSS class."""

    text: str
    value: float | None = None
    style: str = ""
    is_name: bool = False  # whether the cell is the header of its row


Columns = Mapping[str, Callable[[Row], Cell]]


@dataclass(frozen=True)
class Table:
    """A table with a caption, column headers, rows of cells, and a note below it."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    is_heat_map: bool = False

    @classmethod
    def build(cls, caption: str, columns: Columns, rows: Iterable[Row], note: str = "") -> "Table":
        """Create a table. Columns with only empty cells, such as unknown units, are left out."""
        records = list(rows)
        cells = {head: [cell(row) for row in records] for head, cell in columns.items()}
        kept = [head for head, column in cells.items() if any(cell.text for cell in column)]
        return cls(caption, kept, list(zip(*(cells[head] for head in kept), strict=True)), note)

    @classmethod
    def of_facts(cls, caption: str, facts: Mapping[str, Cell], note: str = "") -> "Table":
        """Create a table with a column of names and a column of values, without headers."""
        return cls(caption, ("", ""), [(name(fact), value) for fact, value in facts.items()], note)


def number(value: Any, digits: int = SIGNIFICANT_DIGITS) -> Cell:
    """Return a cell with a number rounded to significant digits. Integers are not rounded.

    >>> [number(v).text for v in (0.012345, 12345, 98765.4, -2.5, 1.5e-9, float("nan"))]
    ['0.0123', '12\u202f345', '98\u202f765', '−2.50', '1.5e−09', '–']
    """
    if value is None or not isfinite(value):
        return Cell(MISSING, style="number")
    if float(value).is_integer() and abs(value) < MAX_DECIMAL:
        text = f"{int(value):_d}"
    elif not MIN_DECIMAL <= abs(value) < MAX_DECIMAL:
        text = f"{value:.{digits}g}"
    else:
        text = f"{value:_.{max(0, digits - 1 - floor(log10(abs(value))))}f}"
    text = text.replace("_", "" if abs(value) < MIN_GROUPED else "\u202f").replace("-", "−")
    return Cell(text, float(value), "number")


def measured(value: Any, digits: int = 5) -> Cell:
    """Return a cell with a number rounded to significant digits, without trailing zeros.

    >>> [measured(v).text for v in (0.626, 12.345678, 1e5)]
    ['0.626', '12.346', '100\u202f000']
    """
    cell = number(value, digits)
    return replace(cell, text=cell.text.rstrip("0").rstrip(".")) if "." in cell.text else cell


def plus_minus(value: float, error: float) -> Cell:
    """Return a cell with a number and its standard error, given to two significant digits.

    >>> plus_minus(-0.00549, 0.00817).text, plus_minus(12.3, float("nan")).text
    ('−0.0055 ± 0.0082', '12.3')
    """
    if not isfinite(value) or not isfinite(error) or not MIN_DECIMAL <= error < MAX_DECIMAL:
        return number(value)
    places = max(0, 1 - floor(log10(error)))
    return Cell(f"{value:.{places}f} ± {error:.{places}f}".replace("-", "−"), value, "number")


def percent(share: Any) -> Cell:
    """Return a cell with a share in percent, with one decimal if it is close to 0% or 100%.

    >>> [percent(v).text for v in (0.9512, 0.004, 0.997, -0.03, float("nan"))]
    ['95%', '0.4%', '99.7%', '−3%', '–']
    """
    if share is None or not isfinite(share):
        return Cell(MISSING, style="number")
    fine = 0 < abs(share) < 0.01 or 0.99 < share < 1
    return Cell(f"{100 * share:.{int(fine)}f}%".replace("-", "−"), float(share), "number")


def name(text: Any) -> Cell:
    """Return a cell that is the header of a row."""
    return Cell(str(text), is_name=True)


def words(text: Any, style: str = "") -> Cell:
    """Return a cell with plain text."""
    return Cell(str(text), style=style)


def code(text: Any, style: str = "") -> Cell:
    """Return a cell with text in a monospaced font."""
    return Cell(str(text), style=f"code {style}".strip())


def join_names(names: Iterable[Any]) -> str:
    """Join names with commas and "and".

    >>> join_names(["Cd", "Ni", "Zn"]), join_names(["Cd"])
    ('Cd, Ni and Zn', 'Cd')
    """
    *others, last = map(str, names)
    return f"{', '.join(others)} and {last}" if others else last


def quantity(n: int, singular: str, plural: str | None = None) -> str:
    """Return a number followed by a noun in the singular or plural.

    >>> quantity(1, "site"), quantity(12345, "site"), quantity(0, "match", "matches")
    ('1 site', '12\u202f345 sites', '0 matches')
    """
    return f"{number(n).text} {singular if n == 1 else plural or singular + 's'}"
