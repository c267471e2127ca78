"""Tables in the first sheet of an Excel workbook."""

from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from tempfile import gettempdir

import pandas as pd

from emgpr.io.base import TableFormat
from emgpr.user_warnings import warn

MAX_HEADER_ROWS = 120  # Only these rows are searched for the header.


def _read(file: Path) -> pd.DataFrame:
    with pd.ExcelFile(file, engine="openpyxl") as book:
        sheet, *others = book.sheet_names
        header = pd.read_excel(book, sheet_name=sheet, header=None, nrows=1, dtype=str)
        table = pd.read_excel(book, sheet_name=sheet, keep_default_na=False, na_values=[""])
    if others:
        warn(
            f"{file} has {len(others) + 1} sheets; only the first, {sheet!r}, is read. To read "
            "another sheet, make it the first."
        )
    counts = Counter(_on_one_line(name) for name in header.to_numpy().ravel() if not pd.isna(name))
    table = table.set_axis([_on_one_line(name) for name in table.columns], axis=1)
    table.attrs["repeated"] = sorted(name for name, n in counts.items() if n > 1)
    return table


def _find_header(file: Path, columns: Sequence[str]) -> int | None:
    """Return the number of a row after the header that contains all these names, or None."""
    cells = pd.read_excel(file, header=None, nrows=MAX_HEADER_ROWS, dtype=str, engine="openpyxl")
    for number, row in enumerate(cells.to_numpy(), start=1):
        if number > 1 and set(columns) <= {_on_one_line(name) for name in row}:
            return number
    return None


def _on_one_line(name: object) -> str:
    return " ".join(str(name).split())


def _write(table: pd.DataFrame, path: Path) -> None:
    # On a full disk, openpyxl would leave an open file, whose closing fails when Python exits.
    content = BytesIO()
    try:
        table.to_excel(content, index=False, engine="openpyxl")
    except Exception as error:
        if type(error).__name__ != "SerialisationError":  # of lxml, which may not be installed
            raise
        raise OSError(f"{error} in the temporary folder {gettempdir()}") from error
    path.write_bytes(content.getvalue())


FORMAT = TableFormat(
    name="Excel",
    endings=(".xlsx",),
    packages=("openpyxl",),
    extra="excel",
    read=_read,
    write=_write,
    find_header=_find_header,
    row_numbers=lambda file, rows: [row + 2 for row in rows],  # after the header, in row 1
    row_words="row {} of the sheet",
)
