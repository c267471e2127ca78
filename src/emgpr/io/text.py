"""Tables of text (CSV and its kin) as spreadsheets, loggers and R write them."""

import csv
import gzip
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pandas.api.types import is_numeric_dtype
from pandas.errors import EmptyDataError

from emgpr.io.files import reading

LOOKED_AT = 60  # lines in which names are looked for if they are not where they should be
MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


class _Layout(NamedTuple):
    """How the text is laid out."""

    encoding: str
    packed: bool  # by gzip
    above: int  # lines before the header: comments, empty ones
    header: str
    row: str  # the first one
    separator: str
    hidden: bool  # the header is itself behind a "#"

    def read(self, file: Path, **how: Any) -> pd.DataFrame:
        """All of it, or as much as is asked for."""
        return pd.read_csv(
            file, sep=self.separator, skiprows=self.above, encoding=self.encoding,
            compression="gzip" if self.packed else None, skipinitialspace=True, **how,
        )  # fmt: skip


def read_text(file: Path) -> pd.DataFrame:
    """A table of text. Its separator, decimals, encoding and packing are found from itself.

    Names that are there twice are told in `attrs["repeated"]`.
    """
    try:
        with reading(file, "CSV"):
            layout = _layout(file)
            table, names = _table(layout, file)
    except ValueError as error:
        if isinstance(error.__cause__, UnicodeDecodeError):
            raise ValueError(_not_utf8(file, error.__cause__)) from error
        raise
    table = _without_row_names(table, layout, file)
    table = table.set_axis([_in_one_line(name) for name in table.columns], axis=1)
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    if repeated:
        table.attrs["repeated"] = repeated
    return table


def line_with(file: Path, columns: Sequence[str]) -> int | None:
    """The line, from 1, that holds all of these names, if one of the first lines does."""
    layout = _layout(file)
    delimiter = ";" if layout.separator == r"\s+" else layout.separator
    lines = _lines(file, layout.encoding, layout.packed)
    for number, line in enumerate(lines, start=1):
        for mark in {delimiter, ",", ";", "\t"} if number > layout.above + 1 else ():
            if set(columns) <= {word.strip() for word in next(csv.reader([line], delimiter=mark))}:
                return number
    return None


def _table(layout: _Layout, file: Path) -> tuple[pd.DataFrame, list[str]]:
    """The table, and the names of its header as they are there."""
    if layout.hidden:
        names = _fields(layout.header, layout.separator)
        how: dict[str, Any] = {"header": None, "names": names}
        layout = layout._replace(above=layout.above + 1)
    else:
        head = layout.read(file, header=None, nrows=1, dtype=str, keep_default_na=False)
        names = [_in_one_line(name) for name in head.iloc[0]]
        how = {}
    table = layout.read(file, **how)
    words = [name for name in table.columns if not is_numeric_dtype(table[name])]
    if words and layout.separator != ",":  # numbers may have decimal commas
        other = layout.read(file, decimal=",", **how)
        table = table.assign(**{str(name): other[name] for name in words})
    return table, names


def _without_row_names(table: pd.DataFrame, layout: _Layout, file: Path) -> pd.DataFrame:
    """Rows may be longer than the header, by a separator at their end or by R's names of rows.

    pandas takes what is too much for names of rows. With commas it may as well be decimals, and
    the numbers that are left would be other columns' numbers.
    """
    plain = table.index.equals(pd.RangeIndex(len(table)))
    if plain and len(_fields(layout.row, layout.separator)) <= table.shape[1]:
        return table
    if table.index.nlevels == 1 and table.iloc[:, -1].isna().all():
        return table.reset_index().iloc[:, :-1].set_axis(table.columns, axis=1)
    named = layout.separator != "," or layout.row.lstrip().startswith('"')
    if table.index.nlevels == 1 and named:
        return table.reset_index(drop=True)
    more = table.index.nlevels
    raise ValueError(
        f"{file} has {table.shape[1]} names in its header and {table.shape[1] + more} fields in "
        "its rows. If the commas in numbers are decimals, separate columns by semicolons; else "
        "give every column a name."
    )


def _layout(file: Path) -> _Layout:
    """What its beginning tells."""
    with open(file, "rb") as opened:
        packed = opened.read(2) == b"\x1f\x8b"
    opener: Any = gzip.open if packed else open
    with opener(file, "rb") as opened:
        first = opened.read(3)
    encoding = next((MARKS[mark] for mark in MARKS if first.startswith(mark)), "utf-8")
    lines = _lines(file, encoding, packed)
    full = [number for number, line in enumerate(lines) if line.strip()]
    if not full:
        raise EmptyDataError("it is empty")
    told = [number for number in full if not lines[number].lstrip().startswith("#")]
    at = told[0] if told else full[-1]
    row = next((lines[number] for number in told if number > at), lines[at])
    comments = [number for number in full if number < at]
    if comments and _all_numbers(lines[at]):  # the names are in the last comment
        header = lines[comments[-1]]
        bare = header.lstrip()[1:]
        header = header if bare[:1] in (",", ";", "\t") else bare  # a column may be called "#"
        separator = _separator(header, lines[at])
        return _Layout(encoding, packed, comments[-1], header, lines[at], separator, True)
    return _Layout(encoding, packed, at, lines[at], row, _separator(lines[at], row), hidden=False)


def _lines(file: Path, encoding: str, packed: bool) -> list[str]:
    opener: Any = gzip.open if packed else open
    with opener(file, "rt", encoding=encoding) as text:
        return [line.rstrip("\n") for line in islice(text, LOOKED_AT)]


def _separator(header: str, row: str) -> str:
    """The one that is there most often: a comma may be within a name, or a decimal.

    >>> _separator("x;Cd, dry;Zn", "1;2;3"), _separator("x  Cd", "0.5 1")
    (';', '\\\\s+')

    R puts names before rows, and none above them:

    >>> _separator('"x" "Cd dry"', '"1" 0.5 1')
    '\\\\s+'
    """
    found = max(",;\t", key=header.count)
    if found in header:
        return found
    names, fields = (len(_fields(line, r"\s+")) for line in (header, row))
    return r"\s+" if names > 1 and fields - names in (0, 1) else found


def _fields(line: str, separator: str) -> list[str]:
    """What is between separators, without quotes."""
    if separator == r"\s+":
        line, separator = " ".join(line.split()), " "
    return [word.strip() for word in next(csv.reader([line], delimiter=separator), [])]


def _in_one_line(name: object) -> str:
    """A name as it can be typed: a cell of a spreadsheet may have several lines.

    >>> _in_one_line(" Cd\\n(mg/kg)")
    'Cd (mg/kg)'
    """
    return " ".join(filter(None, (line.strip() for line in str(name).splitlines())))


def _all_numbers(line: str) -> bool:
    words = line.replace(";", " ").replace(",", " ").split()
    return bool(pd.to_numeric(pd.Series(words, dtype=object), errors="coerce").notna().all())


def _not_utf8(file: Path, error: UnicodeDecodeError) -> str:
    byte = error.object[error.start : error.start + 1]
    return (
        f"{file} is not text in UTF-8: it holds the byte 0x{byte.hex()} "
        f"({byte.decode('cp1252', 'replace')!r} in Western Windows files). Save it as UTF-8, which "
        "spreadsheets call 'CSV UTF-8'."
    )
