"""Reading and writing of tables: one row for each site, one column for each input and output."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from emgpr.io.base import TableFormat
from emgpr.io.cells import is_text_type, read_text_columns
from emgpr.io.delimited_text import SEPARATORS
from emgpr.io.files import (
    FileContentError,
    PathLike,
    existing_file,
    file_ending,
    read_errors,
    replace_when_complete,
)
from emgpr.io.registry import TABLE_FORMATS
from emgpr.user_warnings import warn

# The first bytes of files that are mistaken for text.
BINARY = {
    b"PK\x03\x04": "an Excel workbook (.xlsx) or another archive",
    b"\xd0\xcf\x11\xe0": "an Excel workbook in the old format (.xls)",
    b"PAR1": "a Parquet file (.parquet)",
    b"\x89HDF": "a NetCDF or HDF5 file (.nc)",
    b"%PDF": "a PDF document",
}
MAX_NAMES = 30  # maximum number of column names in an error message


def read_table(
    path: PathLike,
    columns: Sequence[str] | None = None,
    *,
    missing: Sequence[str] = (),
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Read a table, or only the given columns, from a CSV, Excel, Parquet or NetCDF file.

    The ending of the file name determines the format. NetCDF variables become columns, with one row
    for each combination of coordinates for which at least one variable has a value. Units in a
    NetCDF file are returned in `attrs["units"]`.

    In columns of text, the codes in `missing` and common codes such as "n.d." become NaN, and
    values below a detection limit, such as "<0.5", become half the limit; a warning says which. ISO
    dates become `datetime64`. A column that contains other text remains text.

    `separator` (comma, semicolon, tab or spaces), `decimal` (point or comma) and `encoding`
    describe a CSV file; by default, they are detected. Lines before the header that begin with "#"
    are comments. The header can also be that of a GeoEAS file, as used by GSLIB.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_table(pd.DataFrame({"x": [1.0, 2.0], "Cd": [0.5, None]}), f"{folder}/sites.csv")
    ...     read_table(f"{folder}/sites.csv", ["Cd"])["Cd"].tolist()
    [0.5, nan]
    """
    file = existing_file(path)
    file_format = TABLE_FORMATS[file_ending(path, TABLE_FORMATS)]
    if not file.stat().st_size:
        raise ValueError(f"{file} is empty (0 bytes). Download or create it again.")
    file_format.check_installed("Reading")
    layout = {"separator": separator, "decimal": decimal, "encoding": encoding}
    _check_layout(file, layout, is_text=file_format.is_text)
    if file_format.is_text:
        _check_is_text(file)
    with read_errors(file, file_format.name):
        try:
            table = file_format.read(file, **(layout if file_format.is_text else {}))
        except FileContentError as error:
            line = file_format.find_header(file, columns or ())
            if columns is None or line is None:
                raise
            raise FileContentError(_late_header_message(file, line, file_format)) from error
    if not len(table.columns):
        raise ValueError(f"{file} has no columns. Check that it is the right file.")
    if columns is not None:
        names = [str(name) for name in table.columns]
        absent = [name for name in columns if name not in names]
        if absent:
            line = file_format.find_header(file, columns)
            if line is not None:
                raise ValueError(_late_header_message(file, line, file_format))
            raise ValueError(_no_column_message(file, absent, names))
        repeated = [name for name in columns if name in table.attrs.get("repeated", [])]
        if repeated:
            raise ValueError(
                f"{file} has several columns named {repeated[0]!r}; expected distinct names. "
                "Rename these columns."
            )
        table = table.set_axis(names, axis=1)[list(columns)]
    table, messages = _interpret(table, missing, decimal)
    for message in messages:
        warn(f"{file}: {message}")
    return table


def _check_layout(file: Path, layout: dict[str, str | None], *, is_text: bool) -> None:
    """Raise if an option for text files is invalid, or given for another file."""
    given = [name for name, value in layout.items() if value is not None]
    if given and not is_text:
        raise ValueError(
            f"{file} is not a text file, so its {given[0]} cannot be set. Leave this option out."
        )
    if layout["decimal"] not in (None, ".", ","):
        raise ValueError(
            f"The decimal mark is {layout['decimal']!r}; expected a point or a comma ('.' or ',')."
        )
    separator = layout["separator"]
    if separator is not None and len(separator) != 1 and separator not in SEPARATORS:
        raise ValueError(
            f"The separator is {separator!r}; expected a single character, or one of "
            "comma, semicolon, tab and space."
        )
    if separator is not None and SEPARATORS.get(separator, separator) == layout["decimal"]:
        raise ValueError(
            "The separator and the decimal mark are the same; expected two different characters."
        )


def _check_is_text(file: Path) -> None:
    """Raise if the first bytes of a file are those of a binary format."""
    with file.open("rb") as content:
        start = content.read(max(map(len, BINARY)))
    for beginning, kind in BINARY.items():
        if start.startswith(beginning):
            raise ValueError(
                f"{file} is not a text file, but {kind}. Use the ending of its format in the name "
                "of the file, or save the table as CSV."
            )


def _interpret(
    table: pd.DataFrame, missing: Sequence[str], decimal: str | None
) -> tuple[pd.DataFrame, list[str]]:
    """Convert columns of text that contain numbers, and return messages about what was converted.

    The codes in `missing` are removed first.
    """
    assume = bool(table.attrs.get("decimal_comma", False))
    numbers, messages = read_text_columns(
        without_codes(table, missing) if missing else table, decimal, assume=assume
    )
    return (without_codes(numbers, missing) if missing else numbers), messages


def write_table(table: pd.DataFrame, path: PathLike) -> None:
    """Write a table to a CSV, Parquet or NetCDF file, depending on the ending of its name.

    The index is not written.
    """
    file_format = TABLE_FORMATS[file_ending(path, TABLE_FORMATS)]
    with replace_when_complete(Path(path)) as partial:
        file_format.check_installed("Writing")
        file_format.write(table, partial)


def without_codes(table: pd.DataFrame, codes: Sequence[str]) -> pd.DataFrame:
    """Replace codes for missing values, such as -9999 or "n.a.", with NaN.

    >>> without_codes(pd.DataFrame({"Cd": ["0.5", "n.a."], "Zn": [-9999, 7]}), ["-9999", "n.a."])
        Cd   Zn
    0  0.5  NaN
    1  NaN  7.0
    """
    clean = table.copy(deep=False)
    numbers = pd.to_numeric(pd.Series(list(codes), dtype=object), errors="coerce").dropna()
    for i in range(table.shape[1]):
        column = table.iloc[:, i]
        if is_numeric_dtype(column):
            clean.isetitem(i, column.mask(column.isin(numbers)).to_numpy())
        elif is_text_type(column.dtype):
            text = column.astype(object).map(lambda value: str(value).strip())
            kept = column.astype(object).mask(text.isin(list(codes)))
            values = pd.to_numeric(kept, errors="coerce")
            all_numbers = values.notna().equals(kept.notna())
            clean.isetitem(i, (values if all_numbers else kept).to_numpy())
    return clean


def _late_header_message(file: Path, number: int, file_format: TableFormat) -> str:
    """Return the error message for a header that is not in the first line or row."""
    where = file_format.row_words.format(number)
    comments = ", or put # at the beginning of each" if file_format.is_text else ""
    return (
        f"{file} has its column names in {where}, but they must come first. Delete the "
        f"{where.split()[0]}s above it{comments}."
    )


def _no_column_message(file: Path, missing: Sequence[str], names: Sequence[str]) -> str:
    """Return the error message for missing columns, which suggests similar names.

    >>> _no_column_message(Path("sites.csv"), ["xloc"], ["Xloc", "Cd"])
    "sites.csv has no column 'xloc' (did you mean 'Xloc'?); its columns are: Xloc, Cd."
    """
    by_lower_case = {name.lower(): name for name in names}
    described = []
    for name in missing:
        similar = get_close_matches(name.lower(), list(by_lower_case), n=2)
        hint = " or ".join(repr(by_lower_case[match]) for match in similar)
        described.append(repr(name) + (f" (did you mean {hint}?)" if hint else ""))
    listed = ", ".join(names[:MAX_NAMES])
    listed += f", … ({len(names)} in all)" if len(names) > MAX_NAMES else ""
    columns = "columns" if len(missing) > 1 else "column"
    numbers = pd.to_numeric(pd.Series(list(names), dtype=object), errors="coerce")
    remedy = " If these are values, insert a line with column names above them."
    remedy = remedy if numbers.notna().all() else ""
    return f"{file} has no {columns} {', '.join(described)}; its columns are: {listed}.{remedy}"
