"""Tables of a page: every cell with its text, and the number that the text is rounded from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import floor, isfinite, log10
from typing import Any

NOTHING = "–"
FIGURES = 3  # significant figures, unless more are asked for
LARGEST, SMALLEST = 1e7, 1e-4  # beyond which numbers are powers of ten


@dataclass(frozen=True)
class Cell:
    """What is shown, the number behind it if there is one, and how it is marked."""

    text: str
    value: float | None = None
    mark: str = ""  # a class of the style sheet
    is_name: bool = False  # the head of its row


@dataclass(frozen=True)
class Table:
    """Heads, rows, and what they are about."""

    caption: str
    heads: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""
    is_heat_map: bool = False

    def full(self) -> "Table":
        """Without the columns in which nothing is said, such as those of units that none knows."""
        kept = [i for i in range(len(self.heads)) if any(row[i].text for row in self.rows)]
        rows = [[row[i] for i in kept] for row in self.rows]
        return replace(self, heads=[self.heads[i] for i in kept], rows=rows)


def number(value: Any, figures: int = FIGURES) -> Cell:
    """A number to so many significant figures; whole ones as they are.

    >>> [number(v).text for v in (0.012345, 12345, 98765.4, -2.5, 1.5e-9, float("nan"))]
    ['0.0123', '12\u202f345', '98\u202f765', '−2.50', '1.5e−09', '–']
    """
    if value is None or not isfinite(value):
        return Cell(NOTHING, mark="number")
    if float(value).is_integer() and abs(value) < LARGEST:
        text = f"{int(value):_d}"
    elif not SMALLEST <= abs(value) < LARGEST:
        text = f"{value:.{figures}g}"
    else:
        text = f"{value:_.{max(0, figures - 1 - floor(log10(abs(value))))}f}"
    short = abs(value) < 1e4  # four digits are read at a glance
    text = text.replace("_", "" if short else "\u202f").replace("-", "−")
    return Cell(text, float(value), "number")


def plain(value: Any, figures: int = 5) -> Cell:
    """A number as it was read, to so many figures at most: no zeros are added to it.

    >>> [plain(v).text for v in (0.626, 12.345678, 1e5)]
    ['0.626', '12.346', '100\u202f000']
    """
    cell = number(value, figures)
    return replace(cell, text=cell.text.rstrip("0").rstrip(".")) if "." in cell.text else cell


def plus_minus(value: float, error: float) -> Cell:
    """A number and its error, to two figures of the error.

    >>> plus_minus(-0.00549, 0.00817).text, plus_minus(12.3, float("nan")).text
    ('−0.0055 ± 0.0082', '12.3')
    """
    if not isfinite(value) or not isfinite(error) or not SMALLEST <= error < LARGEST:
        return number(value)
    places = max(0, 1 - floor(log10(error)))
    return Cell(f"{value:.{places}f} ± {error:.{places}f}".replace("-", "−"), value, "number")


def percent(share: Any) -> Cell:
    """A share of one as a percentage, whole unless it is small or close to all.

    >>> [percent(v).text for v in (0.9512, 0.004, 0.997, -0.03, float("nan"))]
    ['95%', '0.4%', '99.7%', '−3%', '–']
    """
    if share is None or not isfinite(share):
        return Cell(NOTHING, mark="number")
    fine = 0 < abs(share) < 0.01 or 0.99 < share < 1
    text = f"{100 * share:.{1 if fine else 0}f}%".replace("-", "−")
    return Cell(text, float(share), "number")


def name(text: Any) -> Cell:
    """What a row is of."""
    return Cell(str(text), is_name=True)


def words(text: Any, mark: str = "") -> Cell:
    """Text as it is."""
    return Cell(str(text), mark=mark)


def listed(names: Iterable[Any]) -> str:
    """Names in a sentence.

    >>> listed(["Cd", "Ni", "Zn"]), listed(["Cd"])
    ('Cd, Ni and Zn', 'Cd')
    """
    texts = [str(one) for one in names]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def counted(n: int, what: str, several: str | None = None) -> str:
    """So many of something.

    >>> counted(1, "site"), counted(12345, "site"), counted(0, "match", "matches")
    ('1 site', '12\u202f345 sites', '0 matches')
    """
    return f"{number(n).text} {what if n == 1 else several or what + 's'}"
