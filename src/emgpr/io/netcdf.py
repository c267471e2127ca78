"""Tables and maps as NetCDF 4 files."""

import errno
import io
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd

from emgpr.io.base import MapFormat, TableFormat
from emgpr.optional_imports import import_optional
from emgpr.user_warnings import warn

NAME, PACKAGES, ENGINE = "NetCDF 4", ("xarray", "h5netcdf"), "h5netcdf"


def _read(path: Path) -> Any:
    """Read a whole file into memory, and return it as a Dataset."""
    xarray = import_optional("xarray", f"Reading {NAME}")
    with xarray.open_dataset(path, engine=ENGINE) as data:
        return data.load()


def _write(data: Any, path: Path) -> None:
    """Write a Dataset; a lazy one is computed and written chunk by chunk."""
    if data.chunks:  # Workers of a cluster open the file themselves.
        if shutil.disk_usage(path.parent).free < data.nbytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        data.to_netcdf(path, engine=ENGINE)
        return
    xarray, h5netcdf = (import_optional(name, f"Writing {NAME}") for name in PACKAGES)
    with open(path, "w+b", buffering=0) as file:
        stream = _ErrorsLater(file)
        store = xarray.backends.H5NetCDFStore(h5netcdf.File(stream, "w"))
        try:
            data.dump_to_store(store)
        finally:  # HDF5 would otherwise close the file when the interpreter exits.
            store.close()
        if stream.error is not None:
            raise stream.error


class _ErrorsLater(io.RawIOBase):
    """A file that keeps the first error in writing instead of raising it.

    HDF5 cannot close a file after an error in writing, and crashes when the interpreter exits.
    """

    def __init__(self, file: io.RawIOBase) -> None:
        self.error: OSError | None = None
        self.seek, self.tell, self.readinto = file.seek, file.tell, file.readinto  # type: ignore
        self._file = file

    def write(self, data: Any) -> int:
        rest = memoryview(data).cast("B")
        try:
            while len(rest):
                rest = rest[self._file.write(rest) or 0 :]
        except OSError as error:
            self.error = self.error or error
        return memoryview(data).nbytes

    def truncate(self, size: int | None = None) -> int:
        try:
            return self._file.truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0


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
    names = [str(name).replace("/", "_") for name in table.columns]
    changed = [str(name) for name in table.columns if "/" in str(name)]
    repeated = [name for name, n in Counter(names).items() if n > 1]
    if repeated:
        raise ValueError(
            f"Several columns would be named {repeated[0]!r}, since names in {NAME} files cannot "
            "contain slashes. Rename these columns."
        )
    if changed:
        warn(
            f"Names in {NAME} files cannot contain slashes: {changed[0]!r} is written as "
            f"{changed[0].replace('/', '_')!r}{' and so on' if len(changed) > 1 else ''}."
        )
    columns = {
        written: ("site", _values(table[name]), {"units": units[name]} if name in units else {})
        for written, name in zip(names, table.columns, strict=True)
    }
    attributes = {"Conventions": "CF-1.11", "featureType": "point"}
    _write(xarray.Dataset(columns, attrs=attributes), path)


def _values(column: pd.Series) -> Any:
    """Return the values of a column. In a column of text, missing values become empty text."""
    is_text = column.dtype == object or isinstance(column.dtype, pd.StringDtype)
    return (column.fillna("").astype(str).astype(object) if is_text else column).to_numpy()


TABLES = TableFormat(
    name=NAME,
    endings=(".nc", ".nc4", ".h5"),
    packages=PACKAGES,
    read=_read_table,
    write=_write_table,
)
MAPS = MapFormat(name=NAME, endings=(".nc", ".nc4"), packages=PACKAGES, read=_read, write=_write)
