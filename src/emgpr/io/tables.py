"""Tables: one row a site, one column an input or an output, from and to the usual formats."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from emgpr.geo import needed
from emgpr.io.files import PathLike, existing, kind, reading, writing
from emgpr.io.text import line_with, read_text

CSV = (".csv", ".csv.gz", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
NETCDF = (".nc", ".nc4", ".h5")
KINDS = (*CSV, *PARQUET, *NETCDF)


def read_table(path: PathLike, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """A table from CSV, Parquet or NetCDF, told by the ending; these columns, or all.

    The separator of a CSV file (comma, semicolon, tab, or else spaces) is found from its header;
    if it is no comma, decimals may be commas. Lines before it that begin with "#" are comments.
    NetCDF variables become columns, a row for each combination of their coordinates, less the rows
    in which every variable is missing. The units that the file tells are in `attrs["units"]`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_table(pd.DataFrame({"x": [1.0, 2.0], "Cd": [0.5, None]}), f"{folder}/sites.csv")
    ...     read_table(f"{folder}/sites.csv", ["Cd"])["Cd"].tolist()
    [0.5, nan]
    """
    file = existing(path)
    end = kind(path, KINDS)
    if not file.stat().st_size:
        raise ValueError(f"{file} is empty: 0 bytes. Check that it was written, or fetch it again.")
    table = _reader(end)(file)
    if not len(table.columns):
        raise ValueError(f"{file} holds no columns. Check that it is the file you mean.")
    return table if columns is None else chosen(table, columns, str(file), _elsewhere(end, file))


def _elsewhere(end: str, file: Path) -> Callable[[Sequence[str]], int | None]:
    """Where the names may be, if not in the first line: below a title."""
    return (lambda columns: line_with(file, columns)) if end in CSV else (lambda _: None)


def chosen(
    table: pd.DataFrame,
    columns: Sequence[str],
    what: str = "The table",
    elsewhere: Callable[[Sequence[str]], int | None] = lambda _: None,
) -> pd.DataFrame:
    """These columns, or an error with those that are there and spelled alike.

    >>> chosen(pd.DataFrame({"Xloc": [1.0]}), ["xloc"])
    Traceback (most recent call last):
    ValueError: The table has no column 'xloc' (is 'Xloc' meant?); it has: Xloc.
    """
    have = [str(name) for name in table.columns]
    missing = [name for name in columns if name not in have]
    if missing:
        said = ", ".join(repr(name) + _hint(name, have) for name in missing)
        columns_are = "columns" if len(missing) > 1 else "column"
        line = elsewhere(columns)
        if line is not None:
            raise ValueError(
                f"{what} has its names in line {line}, and must begin with them: delete the lines "
                "above, or put # before each."
            )
        shown = ", ".join(have[:30]) + (f", … ({len(have)} in all)" if len(have) > 30 else "")
        raise ValueError(f"{what} has no {columns_are} {said}; it has: {shown}.")
    repeated = [name for name in columns if name in table.attrs.get("repeated", [])]
    if repeated:
        raise ValueError(
            f"{what} has several columns {repeated[0]!r}; give each another name, so that it is "
            "clear which is meant."
        )
    return table.set_axis(have, axis=1)[list(columns)]


def without_codes(table: pd.DataFrame, codes: Sequence[str]) -> pd.DataFrame:
    """The table with values that stand for "missing", such as -9999 or "n.a.", as NaN.

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
            left = column.astype(object).mask(text.isin(list(codes)))
            values = pd.to_numeric(left, errors="coerce")
            whole = values.notna().equals(left.notna())
            clean.isetitem(i, (values if whole else left).to_numpy())
    return clean


def write_table(table: pd.DataFrame, path: PathLike) -> None:
    """A table to CSV, Parquet or NetCDF, told by the ending; its index is left out."""
    end, file = kind(path, KINDS), Path(path)
    with writing(file) as partial:
        if end in CSV:
            separator = "\t" if end == ".tsv" else ","
            table.to_csv(
                partial, index=False, sep=separator,
                compression="gzip" if end.endswith(".gz") else None,
            )  # fmt: skip
        elif end in PARQUET:
            needed("pyarrow", "Writing Parquet", "parquet")
            table.to_parquet(partial, index=False)
        else:
            _as_dataset(table).to_netcdf(partial, engine="h5netcdf")


def _reader(end: str) -> Callable[[Path], pd.DataFrame]:
    if end in CSV:
        return read_text
    return _read_parquet if end in PARQUET else _read_netcdf


def _read_parquet(file: Path) -> pd.DataFrame:
    needed("pyarrow", "Reading Parquet", "parquet")
    with reading(file, "Parquet"):
        return pd.read_parquet(file)


def _read_netcdf(file: Path) -> pd.DataFrame:
    xarray = needed("xarray", "Reading NetCDF")
    needed("h5netcdf", "Reading NetCDF")
    with reading(file, "NetCDF 4"), xarray.open_dataset(file, engine="h5netcdf") as opened:
        data = opened.load()
    flat = [name for name in data.variables if data[name].ndim]  # a reference system has no rows
    units = {str(name): data[name].attrs["units"] for name in flat if "units" in data[name].attrs}
    table = data[flat].to_dataframe().reset_index()
    measured = [name for name in data.data_vars if name in table.columns]
    table = table.dropna(subset=measured, how="all") if measured else table
    counters = [name for name in data.dims if name not in data.coords]
    table = table.drop(columns=[name for name in counters if name in table.columns])
    table = table.reset_index(drop=True)
    table.attrs["units"] = units
    return table


def _as_dataset(table: pd.DataFrame) -> Any:
    xarray = needed("xarray", "Writing NetCDF")
    needed("h5netcdf", "Writing NetCDF")
    units = table.attrs.get("units", {})
    columns = {
        str(name): ("site", table[name].to_numpy(), {"units": units[name]} if name in units else {})
        for name in table.columns
    }
    return xarray.Dataset(columns, attrs={"Conventions": "CF-1.11", "featureType": "point"})


def _hint(name: str, have: Sequence[str]) -> str:
    lower = {other.lower(): other for other in have}
    near = get_close_matches(name.lower(), list(lower), n=2)
    return f" (is {' or '.join(repr(lower[one]) for one in near)} meant?)" if near else ""
