"""Tables as delimited text (CSV and similar), as written by spreadsheets, data loggers and R."""

import csv
import gzip
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pandas.api.types import is_numeric_dtype
from pandas.errors import EmptyDataError

from emgpr.io.base import TableFormat
from emgpr.io.files import FileContentError

MAX_HEADER_LINES = 60  # Only these lines are searched for the header.
SPACES = r"\s+"  # any number of spaces as a separator
BYTE_ORDER_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}


class _Layout(NamedTuple):
    """The layout of a text file, detected from its first lines."""

    encoding: str
    gzipped: bool
    n_skipped: int  # comments and empty lines before the header
    header: str
    first_row: str
    separator: str
    commented_header: bool  # whether the header begins with "#"

    def read(self, file: Path, **options: Any) -> pd.DataFrame:
        """Read the file, passing further options to `pandas.read_csv`."""
        return pd.read_csv(
            file, sep=self.separator, skiprows=self.n_skipped, encoding=self.encoding,
            compression="gzip" if self.gzipped else None, skipinitialspace=True, **options,
        )  # fmt: skip


def _read(file: Path) -> pd.DataFrame:
    """Read a table, after detecting its separator, decimal mark, encoding and compression.

    Column names that occur more than once are listed in `attrs["repeated"]`.
    """
    try:
        layout = _find_layout(file)
        table, names = _read_rows(layout, file)
    except UnicodeDecodeError as error:
        raise FileContentError(_encoding_message(file, error)) from error
    table = _drop_row_names(table, layout, file)
    table = table.set_axis([_on_one_line(name) for name in table.columns], axis=1)
    repeated = sorted({name for name in names if name and names.count(name) > 1})
    if repeated:
        table.attrs["repeated"] = repeated
    return table


def _write(table: pd.DataFrame, path: Path) -> None:
    name = path.name.lower()
    table.to_csv(
        path, index=False, sep="\t" if name.endswith(".tsv") else ",",
        compression="gzip" if name.endswith(".gz") else None,
    )  # fmt: skip


def _find_header(file: Path, columns: Sequence[str]) -> int | None:
    """Return the number of a line after the header that contains all these names, or None."""
    layout = _find_layout(file)
    separator = ";" if layout.separator == SPACES else layout.separator
    lines = _first_lines(file, layout.encoding, layout.gzipped)
    for number, line in enumerate(lines, start=1):
        for delimiter in {separator, ",", ";", "\t"} if number > layout.n_skipped + 1 else ():
            if set(columns) <= set(_fields(line, delimiter)):
                return number
    return None


def _read_rows(layout: _Layout, file: Path) -> tuple[pd.DataFrame, list[str]]:
    """Return the table, and the column names exactly as in its header."""
    options: dict[str, Any] = {}
    if layout.commented_header:
        names = _fields(layout.header, layout.separator)
        options = {"header": None, "names": names}
        layout = layout._replace(n_skipped=layout.n_skipped + 1)
    else:
        head = layout.read(file, header=None, nrows=1, dtype=str, keep_default_na=False)
        names = [_on_one_line(name) for name in head.iloc[0]]
    table = layout.read(file, **options)
    text = [name for name in table.columns if not is_numeric_dtype(table[name])]
    if text and layout.separator != ",":  # The text can be numbers with decimal commas.
        with_commas = layout.read(file, decimal=",", **options)
        table = table.assign(**{str(name): with_commas[name] for name in text})
    return table, names


def _drop_row_names(table: pd.DataFrame, layout: _Layout, file: Path) -> pd.DataFrame:
    """Drop fields that have no name in the header: an empty last field, or row names.

    R writes row names without a header. If rows have more fields than the header, pandas uses the
    first fields as row names. If commas separate the columns, extra fields can also be due to
    decimal commas, in which case an error is raised.
    """
    has_plain_index = table.index.equals(pd.RangeIndex(len(table)))
    if has_plain_index and len(_fields(layout.first_row, layout.separator)) <= table.shape[1]:
        return table
    n_extra = table.index.nlevels
    if n_extra == 1 and table.iloc[:, -1].isna().all():
        return table.reset_index().iloc[:, :-1].set_axis(table.columns, axis=1)
    has_row_names = layout.separator != "," or layout.first_row.lstrip().startswith('"')
    if n_extra == 1 and has_row_names:
        return table.reset_index(drop=True)
    raise FileContentError(
        f"{file} has {table.shape[1]} names in its header, but {table.shape[1] + n_extra} fields "
        "in its rows. If numbers have decimal commas, separate the fields with semicolons; "
        "otherwise give every column a name."
    )


def _find_layout(file: Path) -> _Layout:
    """Detect the layout of a file from its first lines."""
    with open(file, "rb") as content:
        gzipped = content.read(2) == b"\x1f\x8b"
    opener: Any = gzip.open if gzipped else open
    with opener(file, "rb") as content:
        start = content.read(3)
    encoding = next((e for mark, e in BYTE_ORDER_MARKS.items() if start.startswith(mark)), "utf-8")
    lines = _first_lines(file, encoding, gzipped)
    filled = [i for i, line in enumerate(lines) if line.strip()]
    if not filled:
        raise EmptyDataError("it is empty")
    content_lines = [i for i in filled if not lines[i].lstrip().startswith("#")]
    first = content_lines[0] if content_lines else filled[-1]
    comments = [i for i in filled if i < first]
    if comments and _all_numbers(lines[first]):  # The last comment contains the column names.
        header = lines[comments[-1]]
        bare = header.lstrip()[1:]
        header = header if bare[:1] in (",", ";", "\t") else bare  # "#" can be a column name.
        separator = _find_separator(header, lines[first])
        return _Layout(encoding, gzipped, comments[-1], header, lines[first], separator, True)
    row = next((lines[i] for i in content_lines if i > first), lines[first])
    separator = _find_separator(lines[first], row)
    return _Layout(encoding, gzipped, first, lines[first], row, separator, False)


def _first_lines(file: Path, encoding: str, gzipped: bool) -> list[str]:
    opener: Any = gzip.open if gzipped else open
    with opener(file, "rt", encoding=encoding) as text:
        return [line.rstrip("\n") for line in islice(text, MAX_HEADER_LINES)]


def _find_separator(header: str, row: str) -> str:
    r"""Return the column separator, judging from the header and the first row.

    >>> _find_separator("x;Cd, dry;Zn", "1;2;3"), _find_separator("x  Cd", "0.5 1")
    (';', '\\s+')

    R writes a column of row names, but no name for this column:

    >>> _find_separator('"x" "Cd dry"', '"1" 0.5 1')
    '\\s+'
    """
    separator = max(",;\t", key=header.count)
    if separator in header:
        return separator
    n_names, n_fields = (len(_fields(line, SPACES)) for line in (header, row))
    return SPACES if n_names > 1 and n_fields - n_names in (0, 1) else separator


def _fields(line: str, separator: str) -> list[str]:
    """Split a line into its fields, and remove quotes."""
    if separator == SPACES:
        line, separator = " ".join(line.split()), " "
    return [field.strip() for field in next(csv.reader([line], delimiter=separator), [])]


def _on_one_line(name: object) -> str:
    r"""Join the lines of a column name, since spreadsheet cells can contain line breaks.

    >>> _on_one_line(" Cd\n(mg/kg)")
    'Cd (mg/kg)'
    """
    return " ".join(filter(None, (line.strip() for line in str(name).splitlines())))


def _all_numbers(line: str) -> bool:
    words = line.replace(";", " ").replace(",", " ").split()
    return bool(pd.to_numeric(pd.Series(words, dtype=object), errors="coerce").notna().all())


def _encoding_message(file: Path, error: UnicodeDecodeError) -> str:
    byte = error.object[error.start : error.start + 1]
    return (
        f"{file} is not encoded in UTF-8: it contains the byte 0x{byte.hex()} "
        f"({byte.decode('cp1252', 'replace')!r} in Western Windows files). Save it in UTF-8; in "
        "spreadsheets, choose the format 'CSV UTF-8'."
    )


FORMAT = TableFormat(
    name="CSV",
    endings=(".csv", ".csv.gz", ".tsv", ".txt"),
    read=_read,
    write=_write,
    find_header=_find_header,
)
