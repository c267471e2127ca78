"""Tables and maps as NetCDF 4 files."""

from pathlib import Path
from typing import Any

import pandas as pd

from emgpr.io.base import MapFormat, TableFormat
from emgpr.optional_imports import import_optional

NAME, PACKAGES, ENGINE = "NetCDF 4", ("xarray", "h5netcdf"), "h5netcdf"


def _read(path: Path) -> Any:
    """Read a whole file into memory, and return it as a Dataset."""
    xarray = import_optional("xarray", f"Reading {NAME}")
    with xarray.open_dataset(path, engine=ENGINE) as data:
        return data.load()


def _write(data: Any, path: Path) -> None:
    data.to_netcdf(path, engine=ENGINE)


def _read_table(path: Path) -> pd.DataFrame:
    """Read a table with one row for each combination of coordinates that has a value."""
    data = _read(path)
    names = [name for name in data.variables if data[name].ndim]  # "crs" has no dimensions.
    units = {str(name): data[name].attrs["units"] for name in names if "units" in data[name].attrs}
    table = data[names].to_dataframe().reset_index()
    measured = [name for name in data.data_vars if name in table.columns]
    table = table.dropna(subset=measured, how="all") if measured else table
    counters = [name for name in data.dims if name not in data.coords]
    table = table.drop(columns=[name for name in counters if name in table.columns])
    table = table.reset_index(drop=True)
    table.attrs["units"] = units
    return table


def _write_table(table: pd.DataFrame, path: Path) -> None:
    xarray = import_optional("xarray", f"Writing {NAME}")
    units = table.attrs.get("units", {})
    columns = {
        str(name): ("site", table[name].to_numpy(), {"units": units[name]} if name in units else {})
        for name in table.columns
    }
    attributes = {"Conventions": "CF-1.11", "featureType": "point"}
    _write(xarray.Dataset(columns, attrs=attributes), path)


TABLES = TableFormat(
    name=NAME,
    endings=(".nc", ".nc4", ".h5"),
    packages=PACKAGES,
    read=_read_table,
    write=_write_table,
)
MAPS = MapFormat(name=NAME, endings=(".nc", ".nc4"), packages=PACKAGES, read=_read, write=_write)
