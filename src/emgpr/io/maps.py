"""Maps to files and back: NetCDF with everything, GeoTIFF for geographic information systems."""

from pathlib import Path
from typing import Any

import numpy as np

from emgpr.geo import longitude_latitude, needed, reference
from emgpr.geo.cf import MAPPING
from emgpr.io.files import PathLike, existing, folder, kind, reading, writing

NETCDF = (".nc", ".nc4")
GEOTIFF = (".tif", ".tiff")


def write_map(data: Any, path: PathLike) -> None:
    """A Dataset of `predict_grid` or `predict_dataset` to NetCDF (.nc) or GeoTIFF (.tif).

    NetCDF keeps all of it, to the last bit. GeoTIFF has a band for every variable of rows and
    columns, named as it is, in 32 bits, north up, with the reference system.
    """
    end, file = check_writable(path), Path(path)
    with writing(file) as partial:
        if end in NETCDF:
            data.to_netcdf(partial, engine="h5netcdf")
        else:
            _write_geotiff(data, partial)


def check_writable(path: PathLike) -> str:
    """The format of a map that is to be written; raise before the work if it cannot be."""
    end = kind(path, (*NETCDF, *GEOTIFF))
    folder(Path(path))
    needed("xarray", "A map")
    if end in NETCDF:
        needed("h5netcdf", "Writing NetCDF")
    else:
        needed("rasterio", "Writing GeoTIFF")
    return end


def read_map(path: PathLike) -> Any:
    """The Dataset of a NetCDF file that `write_map` wrote, in memory."""
    kind(path, NETCDF)
    file = existing(path)
    xarray = needed("xarray", "Reading NetCDF")
    needed("h5netcdf", "Reading NetCDF")
    with reading(file, "NetCDF 4"), xarray.open_dataset(file, engine="h5netcdf") as opened:
        return opened.load()


def _write_geotiff(data: Any, path: Path) -> None:
    rasterio = needed("rasterio", "Writing GeoTIFF")
    bands = {name: data[name] for name in data.data_vars if data[name].ndim == 2}
    if not bands:
        raise ValueError(
            "The Dataset holds no variable of rows and columns; a GeoTIFF is a map of a grid, "
            "such as predict_grid gives."
        )
    rows, columns = _rows_first(data, next(iter(bands.values())).dims)
    bands = {
        name: band.transpose(rows, columns)
        for name, band in bands.items()
        if set(band.dims) == {rows, columns}
    }
    y, x = (_regular(np.asarray(data[name].values, dtype=float), name) for name in (rows, columns))
    north_up = y if y[1] < 0 else (y[0] + y[1] * (data.sizes[rows] - 1), -y[1])
    # A raster's origin is the corner of its first cell, a grid's is that cell's centre.
    west, north = x[0] - x[1] / 2, north_up[0] - north_up[1] / 2
    with rasterio.open(
        path, "w", driver="GTiff", width=data.sizes[columns], height=data.sizes[rows],
        count=len(bands), dtype="float32", nodata=np.nan, crs=_wkt(data), compress="deflate",
        transform=rasterio.Affine(x[1], 0.0, west, 0.0, north_up[1], north),
    ) as file:  # fmt: skip
        for number, (name, band) in enumerate(bands.items(), start=1):
            values = np.asarray(band.values, dtype=np.float32)
            file.write(values if y[1] < 0 else values[::-1], number)
            file.set_band_description(number, str(name))
            file.set_band_unit(number, str(band.attrs.get("units", "")))


def _rows_first(data: Any, dims: tuple[Any, Any]) -> tuple[Any, Any]:
    """The dimension of y, then that of x, by what they say they are; as they come if nothing."""
    first, second = (str(dim) for dim in dims)
    told = [str(data[dim].attrs.get("axis", "")) if dim in data.coords else "" for dim in dims]
    exchanged = told == ["X", "Y"] or longitude_latitude([first, second]) == (0, 1)
    named = (first[:1] + second[:1]).lower() == "xy"
    return dims[::-1] if exchanged or (named and not any(told)) else dims


def _regular(positions: np.ndarray, name: Any) -> tuple[float, float]:
    """The first position and the step."""
    steps = np.diff(positions)
    if not len(steps):
        raise ValueError(f"The map has one position along {name!r}; a GeoTIFF needs two.")
    if not np.allclose(steps, steps[0], rtol=1e-4, atol=0):
        raise ValueError(f"Steps along {name!r} differ; a GeoTIFF needs a regular grid.")
    return float(positions[0]), float((positions[-1] - positions[0]) / len(steps))


def _wkt(data: Any) -> str | None:
    if MAPPING not in data.variables:
        return None
    text: str = reference(str(data[MAPPING].attrs["crs_wkt"])).to_wkt("WKT1_GDAL")
    return text
