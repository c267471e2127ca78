"""Tables as delimited text (CSV and similar), as written by spreadsheets, data loggers and R."""

import csv
import gzip
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from pandas.api.types import is_float_dtype
from pandas.errors import EmptyDataError, ParserError

from emgpr.io.base import TableFormat
from emgpr.io.cells import NUMBER_WITH_COMMA, NUMBER_WITH_POINT
from emgpr.io.files import FileContentError
from emgpr.user_warnings import warn

MAX_HEADER_LINES = 120  # Only these lines are searched for the header.
SPACES = r"\s+"  # any number of spaces as a separator
SEPARATORS = {
    "comma": ",",
    "semicolon": ";",
    "tab": "\t",
    "\\t": "\t",
    "space": SPACES,
    " ": SPACES,
}
# Encodings by the first bytes of a file: a byte order mark, or the zero bytes of a Latin letter.
BEGINNINGS = {
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\0": "utf-16-be",
}
WESTERN = "cp1252"  # encoding of Western Windows files
QUOTED = re.compile(r'"[^"]*"')
SEPARATOR_LINE = re.compile(r"sep=(.)\s*", re.IGNORECASE)  # written by Excel before the header


class _Layout(NamedTuple):
    """The layout of a text file, detected from its first lines."""

    encoding: str
    gzipped: bool
    n_skipped: int  # lines before the header or, if `names` is not None, before the first row
    header: str
    first_row: str
    separator: str
    names: list[str] | None = None  # if the names are in a comment or in a GeoEAS header

    def read(self, file: Path, **options: Any) -> pd.DataFrame:
        """Read the file, passing further options to `pandas.read_csv`."""
        return pd.read_csv(
            file, sep=self.separator, skiprows=self.n_skipped, encoding=self.encoding,
            compression="gzip" if self.gzipped else None, skipinitialspace=True, low_memory=False,
            keep_default_na=False, na_values=[""], **options,
        )  # fmt: skip


def _read(
    file: Path,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    *,
    as_text: bool = False,
) -> pd.DataFrame:
    """Read a table; a separator, decimal mark or encoding that is None is detected.

    Cells that are not empty and not numbers remain text; with `as_text`, all cells do. Column names
    that occur more than once are listed in `attrs["repeated"]`. `attrs["decimal_comma"]` tells
    whether a comma in a number such as 1,234 is a decimal mark.
    """
    try:
        return _read_encoded(file, separator, decimal, encoding, as_text)
    except UnicodeDecodeError as error:
        if encoding is not None:
            raise FileContentError(_encoding_message(file, encoding, error)) from error
        try:
            table = _read_encoded(file, separator, decimal, WESTERN, as_text)
        except UnicodeDecodeError:
            raise FileContentError(_encoding_message(file, "utf-8", error)) from error
        byte = error.object[error.start : error.start + 1]
        warn(
            f"{file} is not encoded in UTF-8; it is read as a Western Windows file ({WESTERN}), "
            f"with {byte.decode(WESTERN, 'replace')!r} for the byte 0x{byte.hex()}. If this is "
            "wrong, pass the encoding, such as encoding='cp1250'."
        )
        return table
    except LookupError as error:
        raise FileContentError(
            f"The encoding {encoding!r} is unknown; expected a name such as utf-8, cp1252 or "
            "latin-1."
        ) from error


def _read_encoded(
    file: Path, separator: str | None, decimal: str | None, encoding: str | None, as_text: bool
) -> pd.DataFrame:
    layout = _find_layout(file, separator, encoding)
    try:
        table, names = _read_rows(layout, file, decimal, as_text)
    except ParserError as error:
        raise FileContentError(_parser_message(file, error)) from error
    table = _drop_row_names(table, layout, file)
    table = table.set_axis([_on_one_line(name) for name in table.columns], axis=1)
    repeated = sorted(name for name, n in Counter(names).items() if name and n > 1)
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


def _line_numbers(
    file: Path,
    rows: Sequence[int],
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> list[int]:
    """Return the numbers of the lines in which rows begin, counted from 1."""
    layout = _find_layout(file, separator, encoding)
    opener: Any = gzip.open if layout.gzipped else open
    with opener(file, "rt", encoding=layout.encoding, errors="replace", newline="") as text:
        lines = islice(text, layout.n_skipped, None)
        delimiter = " " if layout.separator == SPACES else layout.separator
        records = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
        found, end = [], layout.n_skipped
        for record in records:
            if len(record) > 1 or any(field.strip() for field in record):  # not an empty line
                found.append(end + 1)
            end = layout.n_skipped + records.line_num
            if len(found) > max(rows) + 1:
                break
    n_header = 0 if layout.names is not None else 1
    return [found[row + n_header] for row in rows]


def _read_rows(
    layout: _Layout, file: Path, decimal: str | None, as_text: bool
) -> tuple[pd.DataFrame, list[str]]:
    """Return the table, and the column names exactly as in its header."""
    mark = decimal or _decimal_mark(layout)
    options: dict[str, Any] = {"dtype": str} if as_text else {"decimal": mark}
    if layout.names is not None:
        names = layout.names
        table = layout.read(file, header=None, names=names, **options)
    else:
        names = [_on_one_line(name) for name in _header_fields(layout, file)]
        table = layout.read(file, **options)
    table.attrs["decimal_comma"] = layout.separator != "," and not (
        mark == "." and _has_fractions(table)
    )
    return table, names


def _decimal_mark(layout: _Layout) -> str:
    """Return the decimal mark of the numbers in the first row."""
    fields = _fields(layout.first_row, layout.separator)
    if layout.separator == "," or any(NUMBER_WITH_POINT.fullmatch(field) for field in fields):
        return "."
    return "," if any(NUMBER_WITH_COMMA.fullmatch(field) for field in fields) else "."


def _header_fields(layout: _Layout, file: Path) -> list[str]:
    """Return the column names; names in quotation marks can contain line breaks."""
    if layout.separator == SPACES:
        return _fields(layout.header, SPACES)
    opener: Any = gzip.open if layout.gzipped else open
    with opener(file, "rt", encoding=layout.encoding, newline="") as text:
        lines = islice(text, layout.n_skipped, None)
        return next(csv.reader(lines, delimiter=layout.separator, skipinitialspace=True))


def _has_fractions(table: pd.DataFrame) -> bool:
    """Tell whether any number in the table has a fractional part."""
    floats = (table.iloc[:, i] for i, t in enumerate(table.dtypes) if is_float_dtype(t))
    return any(bool((column.dropna() % 1 != 0).any()) for column in floats)


def _drop_row_names(table: pd.DataFrame, layout: _Layout, file: Path) -> pd.DataFrame:
    """Drop fields that have no name in the header: empty last fields, or row names.

    R writes row names without a header. If rows have more fields than the header, pandas uses the
    first fields as row names. If commas separate the columns, extra fields can also be due to
    decimal commas, in which case an error is raised.
    """
    has_plain_index = table.index.equals(pd.RangeIndex(len(table)))
    if has_plain_index and len(_fields(layout.first_row, layout.separator)) <= table.shape[1]:
        return table
    n_extra = table.index.nlevels
    fields = table.reset_index()
    if fields.iloc[:, -n_extra:].isna().all(axis=None):
        return fields.iloc[:, :-n_extra].set_axis(table.columns, axis=1)
    has_row_names = layout.separator != "," or layout.first_row.lstrip().startswith('"')
    if n_extra == 1 and has_row_names:
        return table.reset_index(drop=True)
    raise FileContentError(
        f"{file} has {table.shape[1]} names in its header, but {table.shape[1] + n_extra} fields "
        "in its rows. If numbers have decimal commas, separate the fields with semicolons; "
        "otherwise give every column a name."
    )


def _find_layout(file: Path, separator: str | None = None, encoding: str | None = None) -> _Layout:
    """Detect the layout of a file from its first lines."""
    with open(file, "rb") as content:
        gzipped = content.read(2) == b"\x1f\x8b"
    encoding = encoding or _find_encoding(file, gzipped)
    lines = _first_lines(file, encoding, gzipped)
    filled = [i for i, line in enumerate(lines) if line.strip()]
    if not filled:
        raise EmptyDataError("it is empty")
    separator = SEPARATORS.get(separator, separator) if separator is not None else None
    stated = SEPARATOR_LINE.fullmatch(lines[filled[0]])
    if stated and len(filled) > 1:
        separator, filled = separator or stated.group(1), filled[1:]
    names = _geoeas_names(lines)
    if names is not None:
        n = len(names) + 2
        return _Layout(encoding, gzipped, n, lines[n - 1], lines[n], SPACES, names)
    content_lines = [i for i in filled if not lines[i].lstrip().startswith("#")]
    first = content_lines[0] if content_lines else filled[-1]
    comments = [i for i in filled if i < first]
    if comments and _all_numbers(lines[first]):  # The last comment contains the column names.
        header = lines[comments[-1]]
        bare = header.lstrip()[1:]
        header = header if bare[:1] in (",", ";", "\t") else bare  # "#" can be a column name.
        separator = separator or _find_separator(header, lines[first])
        names, n = _fields(header, separator), comments[-1] + 1
        return _Layout(encoding, gzipped, n, header, lines[first], separator, names)
    row = next((lines[i] for i in content_lines if i > first), lines[first])
    separator = separator or _find_separator(lines[first], row)
    return _Layout(encoding, gzipped, first, lines[first], row, separator)


def _geoeas_names(lines: Sequence[str]) -> list[str] | None:
    """Return the names in the header of a GeoEAS (GSLIB) file, or None if it has another header.

    The header consists of a title, the number of variables, and one line for each name.

    >>> _geoeas_names(["Meuse", "2", "x (m)", "Cd", " 181072  11.7"])
    ['x (m)', 'Cd']
    """
    count = lines[1].split()[:1] if len(lines) > 1 else []
    n = int(count[0]) if count and count[0].isdecimal() else 0
    names = [line.strip() for line in lines[2 : n + 2]]
    if not 0 < n < len(lines) - 2 or any(not name or _all_numbers(name) for name in names):
        return None
    row = lines[n + 2]
    return names if _all_numbers(row) and len(row.split()) == n else None


def _find_encoding(file: Path, gzipped: bool) -> str:
    """Return the encoding that the first bytes indicate, otherwise UTF-8."""
    opener: Any = gzip.open if gzipped else open
    with opener(file, "rb") as content:
        start = content.read(4)
    found = next((name for mark, name in BEGINNINGS.items() if start.startswith(mark)), None)
    return found or ("utf-16-le" if start[1:2] == b"\0" else "utf-8")


def _first_lines(file: Path, encoding: str, gzipped: bool) -> list[str]:
    opener: Any = gzip.open if gzipped else open
    # Reading the whole file reports bytes that cannot be decoded.
    with opener(file, "rt", encoding=encoding, errors="replace") as text:
        return [line.rstrip("\n") for line in islice(text, MAX_HEADER_LINES)]


def _find_separator(header: str, row: str) -> str:
    r"""Return the column separator, judging from the header and the first row.

    >>> _find_separator("x;Cd, dry;Zn", "1;2;3"), _find_separator("x  Cd", "0.5 1")
    (';', '\\s+')

    R writes a column of row names, but no name for this column:

    >>> _find_separator('"x" "Cd dry"', '"1" 0.5 1')
    '\\s+'
    """
    bare = QUOTED.sub("", header)
    separator = max(",;\t|", key=bare.count)
    if separator in bare:
        return separator
    n_names, n_fields = (len(_fields(line, SPACES)) for line in (header, row))
    return SPACES if n_names > 1 and n_fields - n_names in (0, 1) else separator


def _fields(line: str, separator: str) -> list[str]:
    """Split a line into its fields, and remove quotes."""
    if separator == SPACES:
        line, separator = " ".join(line.split()), " "
    csv.field_size_limit(max(csv.field_size_limit(), len(line) + 1))  # such as a WKT polygon
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


def _encoding_message(file: Path, encoding: str, error: UnicodeDecodeError) -> str:
    byte = error.object[error.start : error.start + 1]
    return (
        f"{file} is not encoded in {encoding.upper()}: it contains the byte 0x{byte.hex()} "
        f"({byte.decode(WESTERN, 'replace')!r} in Western Windows files). Pass its encoding, "
        "such as encoding='cp1250', or save it in UTF-8; in spreadsheets, choose the format 'CSV "
        "UTF-8'."
    )


def _parser_message(file: Path, error: ParserError) -> str:
    """Return a message about a row that is longer than the header, or about quotation marks."""
    unclosed = re.search(r"EOF inside string starting at row (\d+)", str(error))
    if unclosed is not None:
        return (
            f"Line {int(unclosed[1]) + 1} of {file} has a quotation mark that is not closed. "
            "Remove it, or close it."
        )
    found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
    if found is None:
        return f"{file} cannot be read as CSV ({' '.join(str(error).split())}). Check its quotes."
    expected, line, n = found.groups()
    return (
        f"Line {line} of {file} has {n} fields, but the header has {expected}. Quote text that "
        "contains the separator, or remove the additional fields. If numbers have decimal commas, "
        "separate the fields with semicolons."
    )


FORMAT = TableFormat(
    name="CSV",
    endings=(".csv", ".csv.gz", ".tsv", ".txt", ".dat"),
    read=_read,
    read_verbatim=partial(_read, as_text=True),
    write=_write,
    find_header=_find_header,
    is_text=True,
    row_numbers=_line_numbers,
    row_words="line {}",
)
