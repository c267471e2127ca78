"""Maps as GeoTIFF files, for geographic information systems."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from emgpr.geo import GRID_MAPPING, coordinate_system, longitude_latitude
from emgpr.io.base import MapFormat
from emgpr.optional_imports import import_optional

Array = np.ndarray


def _write(data: Any, path: Path) -> None:
    """Write every two-dimensional variable, and every quantile, as a band, with north at the top.

    The file is made in memory, because GDAL ignores errors that occur when it closes a file.
    """
    rasterio = import_optional("rasterio", "Writing GeoTIFF")
    bands = list(_bands(data))
    if not bands:
        raise ValueError(
            "The Dataset has no two-dimensional variable, which a GeoTIFF needs. Pass a map on a "
            "grid, such as the result of predict_grid."
        )
    rows, columns = _rows_first(data, bands[0][1].dims)
    bands = [
        (name, band.transpose(rows, columns))
        for name, band in bands
        if set(band.dims) == {rows, columns}
    ]
    first_x, step_x = _first_and_step(np.asarray(data[columns].values, dtype=float), columns)
    first_y, step_y = _first_and_step(np.asarray(data[rows].values, dtype=float), rows)
    northward = step_y >= 0
    north = first_y + step_y * (data.sizes[rows] - 1) if northward else first_y
    # The origin of a raster is the corner of its first cell, not the centre of the cell.
    transform = rasterio.Affine(
        step_x, 0.0, first_x - step_x / 2, 0.0, -abs(step_y), north + abs(step_y) / 2
    )
    with rasterio.MemoryFile() as memory:
        with memory.open(
            driver="GTiff", width=data.sizes[columns], height=data.sizes[rows],
            count=len(bands), dtype="float32", nodata=np.nan, crs=_wkt(data), compress="deflate",
            transform=transform,
        ) as file:  # fmt: skip
            for number, (name, band) in enumerate(bands, start=1):
                values = np.asarray(band.values, dtype=np.float32)
                file.write(values[::-1] if northward else values, number)
                file.set_band_description(number, name)
                file.set_band_unit(number, str(band.attrs.get("units", "")))
        path.write_bytes(memory.getbuffer())


def _bands(data: Any) -> Iterator[tuple[str, Any]]:
    """Yield two-dimensional variables by name. Quantiles have names such as "Cd_q0.05"."""
    for name in data.data_vars:
        variable = data[name]
        if variable.ndim == 2:
            yield str(name), variable
        elif variable.ndim == 3 and "quantile" in variable.dims:
            for i, p in enumerate(variable["quantile"].values):
                output = str(name).removesuffix("_quantiles")
                yield f"{output}_q{p:g}", variable.isel(quantile=i)


def _rows_first(data: Any, dims: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return the dimensions as (y, x) if their axis attributes or names show which is which."""
    first, second = (str(dim) for dim in dims)
    axes = [str(data[dim].attrs.get("axis", "")) if dim in data.coords else "" for dim in dims]
    exchanged = axes == ["X", "Y"] or longitude_latitude([first, second]) == (0, 1)
    named_xy = (first[:1] + second[:1]).lower() == "xy"
    return dims[::-1] if exchanged or (named_xy and not any(axes)) else dims


def _first_and_step(positions: Float[Array, " n"], name: Any) -> tuple[float, float]:
    """Return the first position and the step along an axis; raise ValueError if steps differ."""
    steps = np.diff(positions)
    if not len(steps):
        raise ValueError(
            f"The map has one position along {name!r}; a GeoTIFF needs at least two. Write NetCDF."
        )
    if not np.allclose(steps, steps[0], rtol=1e-4, atol=0):
        raise ValueError(
            f"The steps along {name!r} differ; a GeoTIFF needs a regular grid. Write NetCDF."
        )
    return float(positions[0]), float((positions[-1] - positions[0]) / len(steps))


def _wkt(data: Any) -> str | None:
    """Return the reference system of a map as WKT for GDAL, or None if the map has none."""
    if GRID_MAPPING not in data.variables:
        return None
    text: str = coordinate_system(str(data[GRID_MAPPING].attrs["crs_wkt"])).to_wkt("WKT1_GDAL")
    return text


FORMAT = MapFormat(
    name="GeoTIFF", endings=(".tif", ".tiff"), packages=("xarray", "rasterio"), write=_write
)
