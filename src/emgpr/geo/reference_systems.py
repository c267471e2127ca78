"""Coordinate reference systems, as defined in pyproj."""

import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float

from emgpr.optional_imports import import_optional

Array = np.ndarray

LONGITUDE_LATITUDE = "EPSG:4326"


@lru_cache(maxsize=32)
def coordinate_system(crs: Any) -> Any:
    """Return the `pyproj.CRS` with this name; raise an error unless it has two horizontal axes.

    >>> coordinate_system("EPSG:4326").is_geographic
    True
    """
    pyproj = import_optional("pyproj", "A coordinate reference system")
    if not isinstance(crs, str):
        raise ValueError(
            f"crs={crs!r} is a {type(crs).__name__}; expected a string such as 'EPSG:4326' "
            "(longitude and latitude) or 'EPSG:32632', which can be stored in a model file. For a "
            "pyproj.CRS, pass crs.to_wkt()."
        )
    try:
        system = pyproj.CRS.from_user_input(crs).to_2d()
    except pyproj.exceptions.CRSError as error:
        raise ValueError(
            f"crs={crs!r} is not recognised by pyproj as a coordinate reference system ({error}). "
            "Pass an EPSG code such as 'EPSG:4326', a PROJ string or WKT."
        ) from error
    if system.is_geocentric or len(system.axis_info) != 2:
        raise ValueError(
            f"crs={crs!r} does not have two horizontal axes; pass a geographic or projected "
            "reference system."
        )
    if system.is_geographic and {axis.unit_name for axis in system.axis_info} != {"degree"}:
        raise ValueError(
            f"crs={crs!r} is in units of {system.axis_info[0].unit_name}; expected degrees. Use a "
            "reference system in degrees, and convert the coordinates."
        )
    return system


def is_geographic(crs: str | None) -> bool:
    """Tell whether coordinates are degrees of longitude and latitude, not lengths on a plane."""
    return crs is not None and bool(coordinate_system(crs).is_geographic)


def cf_axes(crs: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the CF attributes of x and of y, in this order for every reference system.

    >>> [axis["standard_name"] for axis in cf_axes("EPSG:4326")]
    ['longitude', 'latitude']
    >>> [axis["units"] for axis in cf_axes("EPSG:32632")]
    ['metre', 'metre']
    """
    x, y = sorted(
        (dict(axis) for axis in coordinate_system(crs).cs_to_cf()), key=lambda axis: axis["axis"]
    )
    if is_geographic(crs):
        for axis, name, direction in ((x, "longitude", "east"), (y, "latitude", "north")):
            axis |= {"standard_name": name, "long_name": name, "units": f"degrees_{direction}"}
    return x, y


def cf_grid_mapping(crs: str) -> dict[str, Any]:
    """Return the CF attributes of the variable that describes a reference system."""
    with warnings.catch_warnings():
        # Parameters that CF lacks, such as an angle of the Swiss grid, are in crs_wkt.
        warnings.filterwarnings("ignore", message=".*lost in conversion to CF")
        return dict(coordinate_system(crs).to_cf())


def transform_coordinates(
    x: Float[Array, " M"], y: Float[Array, " M"], source: str, target: str
) -> tuple[Float[Array, " M"], Float[Array, " M"]]:
    """Transform points from one reference system to another, with x (longitude) first.

    Points that cannot be represented in the target system become NaN.

    >>> x, y = transform_coordinates(np.array([9.0]), np.array([0.0]), "EPSG:4326", "EPSG:32632")
    >>> x.round(), y.round()
    (array([500000.]), array([0.]))
    """
    if coordinate_system(source) == coordinate_system(target):
        return x, y
    pyproj = import_optional("pyproj", "A coordinate reference system")
    transformer = pyproj.Transformer.from_crs(
        coordinate_system(source), coordinate_system(target), always_xy=True
    )
    new_x, new_y = transformer.transform(x, y)
    # pyproj returns infinity for points that it cannot transform.
    return np.where(np.isfinite(new_x), new_x, np.nan), np.where(np.isfinite(new_y), new_y, np.nan)
