"""Predictions as an xarray.Dataset that follows the CF conventions."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from emgpr.geo.extras import needed
from emgpr.geo.grids import Grid
from emgpr.geo.reference import LONGITUDE_LATITUDE, axes, grid_mapping, is_geographic, moved

Variable = tuple[tuple[str, ...], Any, dict[str, Any]]  # an array of NumPy or Dask

CONVENTIONS = "CF-1.11"
MAPPING = "crs"  # the variable that says which reference system the coordinates are of
PAPER = (
    "Ruan and Miller (2017), Ensemble Multi-task Gaussian Process Regression with Multiple Latent "
    "Processes"
)


def grid_coordinates(
    grid: Grid, names: Sequence[str], crs: str | None, units: Mapping[str, str]
) -> tuple[tuple[str, str], dict[str, Variable]]:
    """Names of the dimensions (rows, columns), and every coordinate of a grid.

    Projected grids have the longitude and latitude of every cell beside their own.
    """
    if crs is None:
        x, y = (variable_name(name, "input") for name in names)
        # No axis: CF takes the X and Y of a map without a reference system for degrees.
        own = [
            {"long_name": name} | ({"units": units[name]} if name in units else {})
            for name in names
        ]
    else:
        x, y = ("lon", "lat") if is_geographic(crs) else ("x", "y")
        own = list(axes(crs))
    found: dict[str, Variable] = {y: ((y,), grid.y, own[1]), x: ((x,), grid.x, own[0])}
    if crs is not None and not is_geographic(crs):
        degrees = moved(*grid.cells(), crs, LONGITUDE_LATITUDE)
        for name, values, axis in zip(
            ("lon", "lat"), degrees, axes(LONGITUDE_LATITUDE), strict=True
        ):
            # An axis is of a coordinate variable; these are auxiliary.
            axis.pop("axis")
            found[name] = ((y, x), values.reshape(grid.shape), axis)
    return (y, x), found


def dataset(
    coordinates: Mapping[str, Any],
    variables: Mapping[str, Variable],
    *,
    crs: str | None,
    title: str,
    source: str,
    comment: str,
    history: str,
) -> Any:
    """The Dataset of these, with its reference system and where it comes from."""
    xarray = needed("xarray", "A map")
    clash = sorted(set(coordinates) & set(variables)) + [MAPPING] * (MAPPING in variables)
    if clash:
        raise ValueError(
            f"Outputs {clash} have the names of coordinates of the map; rename them before fit."
        )
    made = xarray.Dataset(
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
    if crs is not None and MAPPING not in made.variables:
        made[MAPPING] = ((), np.int32(0), grid_mapping(crs))
    mapped = MAPPING in made.variables
    for name in variables:
        values = made[name]
        values.encoding = {"_FillValue": values.dtype.type(np.nan), "zlib": True}
        if mapped:
            values.attrs["grid_mapping"] = MAPPING
    for name in coordinates:
        # A coordinate has a value everywhere: CF forbids it a fill value.
        made[name].encoding["_FillValue"] = None
    return made


def variable_name(name: str, what: str = "output") -> str:
    """A name as CF wants it: letters, digits and underscores, a letter first.

    >>> variable_name("Cd"), variable_name("0"), variable_name("NO₂ (µg/m³)")
    ('Cd', 'output_0', 'NO_g_m')
    """
    plain = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_") if not name.isidentifier() else name
    plain = re.sub(r"[^A-Za-z0-9_]", "_", plain)
    return plain if re.match(r"[A-Za-z]", plain) else f"{what}_{plain}".rstrip("_")
