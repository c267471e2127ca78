"""Reading and writing of tables: one row for each site, one column for each input and output."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from emgpr.io.files import (
    PathLike,
    existing_file,
    file_ending,
    read_errors,
    replace_when_complete,
)
from emgpr.io.registry import TABLE_FORMATS

MAX_NAMES = 30  # maximum number of column names in an error message


def read_table(path: PathLike, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Read a table, or only the given columns, from a CSV, Parquet or NetCDF file.

    The ending of the file name determines the format. The separator of a CSV file (comma,
    semicolon, tab or spaces) is detected from its header. If it is not a comma, numbers can have
    decimal commas. Lines before the header that begin with "#" are comments. NetCDF variables
    become columns, with one row for each combination of coordinates for which at least one
    variable has a value. Units in a NetCDF file are returned in `attrs["units"]`.

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
    with read_errors(file, file_format.name):
        table = file_format.read(file)
    if not len(table.columns):
        raise ValueError(f"{file} has no columns. Check that it is the right file.")
    if columns is None:
        return table
    names = [str(name) for name in table.columns]
    missing = [name for name in columns if name not in names]
    if missing:
        line = file_format.find_header(file, columns)
        raise ValueError(_no_column_message(file, missing, names, line))
    repeated = [name for name in columns if name in table.attrs.get("repeated", [])]
    if repeated:
        raise ValueError(
            f"{file} has several columns named {repeated[0]!r}; expected distinct names. Rename "
            "these columns."
        )
    return table.set_axis(names, axis=1)[list(columns)]


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
        else:
            text = column.astype(object).map(lambda value: str(value).strip())
            kept = column.astype(object).mask(text.isin(list(codes)))
            values = pd.to_numeric(kept, errors="coerce")
            all_numbers = values.notna().equals(kept.notna())
            clean.isetitem(i, (values if all_numbers else kept).to_numpy())
    return clean


def _no_column_message(
    file: Path, missing: Sequence[str], names: Sequence[str], line: int | None
) -> str:
    """Return the error message for missing columns, which suggests similar names or another header.

    >>> _no_column_message(Path("sites.csv"), ["xloc"], ["Xloc", "Cd"], None)
    "sites.csv has no column 'xloc' (did you mean 'Xloc'?); its columns are: Xloc, Cd."
    """
    if line is not None:
        return (
            f"{file} has its column names in line {line}, but they must come first. Delete the "
            "lines above it, or put # at the beginning of each."
        )
    by_lower_case = {name.lower(): name for name in names}
    described = []
    for name in missing:
        similar = get_close_matches(name.lower(), list(by_lower_case), n=2)
        hint = " or ".join(repr(by_lower_case[match]) for match in similar)
        described.append(repr(name) + (f" (did you mean {hint}?)" if hint else ""))
    listed = ", ".join(names[:MAX_NAMES])
    listed += f", … ({len(names)} in all)" if len(names) > MAX_NAMES else ""
    columns = "columns" if len(missing) > 1 else "column"
    return f"{file} has no {columns} {', '.join(described)}; its columns are: {listed}."
