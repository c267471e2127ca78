"""Writing of maps as NetCDF or GeoTIFF, and reading of maps from NetCDF."""

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
    """Write a map to a NetCDF (.nc) or GeoTIFF (.tif) file.

    `data` is a Dataset returned by `predict_grid` or `predict_dataset`. NetCDF is lossless. GeoTIFF
    contains the reference system and, for every two-dimensional variable, a named band of 32-bit
    numbers, with north at the top.
    """
    file_format = check_writable(path)
    with replace_when_complete(Path(path)) as partial:
        file_format.write(data, partial)


def check_writable(path: PathLike) -> MapFormat:
    """Return the format for an output file; raise an error if a map cannot be written to it."""
    file_format = MAP_FORMATS[file_ending(path, MAP_FORMATS)]
    check_folder_exists(Path(path))
    file_format.check_installed("Writing")
    return file_format


def read_map(path: PathLike) -> Any:
    """Read a map from a NetCDF file written by `write_map`, and return it as a Dataset."""
    readers = {
        ending: (map_format, map_format.read)
        for ending, map_format in MAP_FORMATS.items()
        if map_format.read is not None
    }
    file_format, read = readers[file_ending(path, readers)]
    file = existing_file(path)
    file_format.check_installed("Reading")
    with read_errors(file, file_format.name):
        return read(file)
