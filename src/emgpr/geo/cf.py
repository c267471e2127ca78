"""Predictions as an xarray.Dataset that follows the CF conventions."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from emgpr.geo.grids import Grid
from emgpr.geo.reference_systems import (
    LONGITUDE_LATITUDE,
    cf_axes,
    cf_grid_mapping,
    is_geographic,
    transform_coordinates,
)
from emgpr.optional_imports import import_optional

# Dimensions, values (a NumPy or Dask array) and attributes, as a tuple that xarray accepts.
Variable = tuple[tuple[str, ...], Any, dict[str, Any]]

CONVENTIONS = "CF-1.11"
GRID_MAPPING = "crs"  # name of the variable that holds the reference system of the coordinates
PAPER = (
    "Ruan and Miller (2017), Ensemble Multi-task Gaussian Process Regression with Multiple Latent "
    "Processes"
)


def grid_coordinates(
    grid: Grid, names: Sequence[str], crs: str | None, units: Mapping[str, str]
) -> tuple[tuple[str, str], dict[str, Variable]]:
    """Return the names of the dimensions (rows, columns) and the coordinates of a grid.

    `names` are the names of the inputs x and y, used if there is no reference system. For
    a projected grid, the coordinates include the longitude and latitude of every cell.
    """
    if crs is None:
        x, y = (variable_name(name, "input") for name in names)
        # The axis attribute is omitted, since CF would interpret axes X and Y without a reference
        # system as degrees.
        x_attributes, y_attributes = (
            {"long_name": name} | ({"units": units[name]} if name in units else {})
            for name in names
        )
        return (y, x), {y: ((y,), grid.y, y_attributes), x: ((x,), grid.x, x_attributes)}
    x, y = ("lon", "lat") if is_geographic(crs) else ("x", "y")
    x_attributes, y_attributes = cf_axes(crs)
    coordinates: dict[str, Variable] = {
        y: ((y,), grid.y, y_attributes),
        x: ((x,), grid.x, x_attributes),
    }
    if not is_geographic(crs):
        degrees = transform_coordinates(*grid.cells(), crs, LONGITUDE_LATITUDE)
        for name, values, attributes in zip(
            ("lon", "lat"), degrees, cf_axes(LONGITUDE_LATITUDE), strict=True
        ):
            # These are auxiliary coordinates, which have no axis attribute.
            del attributes["axis"]
            coordinates[name] = ((y, x), values.reshape(grid.shape), attributes)
    return (y, x), coordinates


def cf_dataset(
    coordinates: Mapping[str, Any],
    variables: Mapping[str, Variable],
    *,
    crs: str | None,
    title: str,
    source: str,
    comment: str,
    history: str,
) -> Any:
    """Return a Dataset with these variables, their reference system and their provenance."""
    xarray = import_optional("xarray", "A map")
    reserved = {*coordinates, GRID_MAPPING}
    clash = sorted(reserved & set(variables))
    if clash:
        raise ValueError(
            f"The outputs {clash} have the same names as coordinates of the map; rename them "
            "before fit."
        )
    data = xarray.Dataset(
        dict(variables),
        coords=dict(coordinates),
        attrs={
            "Conventions": CONVENTIONS,
            "title": title,
            "source": source,
            "references": PAPER,
            "comment": comment,
            "history": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}: {history}",
        },
    )
    if crs is not None and GRID_MAPPING not in data.variables:
        data[GRID_MAPPING] = ((), np.int32(0), cf_grid_mapping(crs))
    has_mapping = GRID_MAPPING in data.variables
    for name in variables:
        values = data[name]
        values.encoding = {"_FillValue": values.dtype.type(np.nan), "zlib": True}
        if has_mapping:
            values.attrs["grid_mapping"] = GRID_MAPPING
    for name in coordinates:
        # CF does not allow fill values in coordinates.
        data[name].encoding["_FillValue"] = None
    return data


def variable_name(name: str, kind: str = "output") -> str:
    """Convert a name to a valid CF name: a letter, then letters, digits or underscores.

    >>> variable_name("Cd"), variable_name("0"), variable_name("NO₂ (µg/m³)")
    ('Cd', 'output_0', 'NO_g_m')
    """
    plain = name if name.isidentifier() else re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    plain = re.sub(r"[^A-Za-z0-9_]", "_", plain)
    return plain if re.match(r"[A-Za-z]", plain) else f"{kind}_{plain}".rstrip("_")
