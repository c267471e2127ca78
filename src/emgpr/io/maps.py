"""Writing of maps as NetCDF, Zarr or GeoTIFF, and reading of maps from NetCDF or Zarr."""

from pathlib import Path
from typing import Any

from emgpr.io.base import MapFormat
from emgpr.io.files import (
    PathLike,
    check_folder_exists,
    existing_file,
    file_ending,
    read_errors,
    replace_when_complete,
)
from emgpr.io.registry import MAP_FORMATS


def write_map(data: Any, path: PathLike) -> None:
    """Write a map to a NetCDF (.nc) or GeoTIFF (.tif) file, or to a Zarr store (.zarr).

    `data` is a Dataset returned by `predict_grid` or `predict_dataset`. NetCDF and Zarr are
    lossless. GeoTIFF contains the reference system and, for every two-dimensional variable and
    every quantile, a named band of 32-bit numbers, with north at the top.
    """
    file_format = check_writable(path)
    is_folder = file_format.is_store is not None
    with replace_when_complete(Path(path), is_folder=is_folder) as draft:
        file_format.write(data, draft)


def check_writable(path: PathLike) -> MapFormat:
    """Return the format for an output file; raise an error if a map cannot be written to it."""
    file_format = MAP_FORMATS[file_ending(path, MAP_FORMATS)]
    check_folder_exists(Path(path))
    file_format.check_installed("Writing")
    is_store, folder = file_format.is_store, Path(path)
    if is_store is not None and folder.is_dir() and not is_store(folder):
        raise FileExistsError(
            f"{path} is a folder, but not a {file_format.name} store; choose another name."
        )
    return file_format


def read_map(path: PathLike) -> Any:
    """Read a map from a NetCDF file or Zarr store written by `write_map`, as a Dataset."""
    readers = {
        ending: (map_format, map_format.read)
        for ending, map_format in MAP_FORMATS.items()
        if map_format.read is not None
    }
    file_format, read = readers[file_ending(path, readers)]
    is_store, file = file_format.is_store, Path(path)
    if is_store is None or not is_store(file):
        file = existing_file(path)
    file_format.check_installed("Reading")
    with read_errors(file, file_format.name):
        return read(file)
