"""Maps as Zarr stores, which are folders."""

from pathlib import Path
from typing import Any

from emgpr.io.base import MapFormat
from emgpr.optional_imports import import_optional

GROUP_FILES = ("zarr.json", ".zgroup")  # of version 3 and 2 of the format


def _write(data: Any, path: Path) -> None:
    # Metadata of all arrays in one file is an extension that other readers warn about.
    data.to_zarr(path, mode="w", consolidated=False)


def _read(path: Path) -> Any:
    """Read a whole store into memory, and return it as a Dataset."""
    xarray = import_optional("xarray", "Reading Zarr")
    with xarray.open_zarr(path, consolidated=False) as data:
        return data.load()


def _is_store(folder: Path) -> bool:
    return any((folder / name).is_file() for name in GROUP_FILES)


FORMAT = MapFormat(
    name="Zarr",
    endings=(".zarr",),
    packages=("xarray", "zarr"),
    extra="geo,dask",
    read=_read,
    write=_write,
    is_store=_is_store,
)
