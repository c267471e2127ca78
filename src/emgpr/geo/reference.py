"""Coordinate reference systems: what the numbers of a place mean. pyproj knows; we ask it."""

from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float

from emgpr.geo.extras import needed

Array = np.ndarray

LONGITUDE_LATITUDE = "EPSG:4326"


@lru_cache(maxsize=32)
def reference(crs: Any) -> Any:
    """The `pyproj.CRS` of a name, with two axes.

    >>> reference("EPSG:4326").is_geographic
    True
    """
    pyproj = needed("pyproj", "A coordinate reference system")
    if not isinstance(crs, str):
        raise ValueError(
            f"crs={crs!r} is a {type(crs).__name__}; expected text such as 'EPSG:4326' (longitude "
            "and latitude) or 'EPSG:32632', which a model file can hold. Of a pyproj.CRS give "
            "crs.to_wkt()."
        )
    try:
        found = pyproj.CRS.from_user_input(crs).to_2d()
    except pyproj.exceptions.CRSError as error:
        raise ValueError(
            f"crs={crs!r} is no coordinate reference system that pyproj knows ({error}). Give an "
            "EPSG code such as 'EPSG:4326', a PROJ string or WKT."
        ) from error
    if found.is_geocentric or len(found.axis_info) != 2:
        raise ValueError(
            f"crs={crs!r} has no two horizontal axes; give one of longitude and latitude, or a "
            "projected one."
        )
    if found.is_geographic and {axis.unit_name for axis in found.axis_info} != {"degree"}:
        raise ValueError(
            f"crs={crs!r} counts in {found.axis_info[0].unit_name}; give places in degrees."
        )
    return found


def is_geographic(crs: str | None) -> bool:
    """Whether places are degrees of longitude and latitude, not lengths on a plane."""
    return crs is not None and bool(reference(crs).is_geographic)


def axes(crs: str) -> tuple[dict[str, str], dict[str, str]]:
    """CF attributes of the first and the second coordinate: x, then y, whatever the authority says.

    >>> [axis["standard_name"] for axis in axes("EPSG:4326")]
    ['longitude', 'latitude']
    >>> [axis["units"] for axis in axes("EPSG:32632")]
    ['metre', 'metre']
    """
    x, y = sorted((dict(axis) for axis in reference(crs).cs_to_cf()), key=lambda axis: axis["axis"])
    if is_geographic(crs):
        return _degrees(x, "longitude", "east"), _degrees(y, "latitude", "north")
    return x, y


def _degrees(axis: dict[str, str], name: str, towards: str) -> dict[str, str]:
    return axis | {"standard_name": name, "long_name": name, "units": f"degrees_{towards}"}


def grid_mapping(crs: str) -> dict[str, Any]:
    """CF attributes of the variable that says which system the coordinates are of."""
    return dict(reference(crs).to_cf())


def moved(
    x: Float[Array, " M"], y: Float[Array, " M"], source: str, target: str
) -> tuple[Float[Array, " M"], Float[Array, " M"]]:
    """Places of one system in another; always x (longitude) first.

    >>> x, y = moved(np.array([9.0]), np.array([0.0]), "EPSG:4326", "EPSG:32632")
    >>> x.round(), y.round()
    (array([500000.]), array([0.]))
    """
    if reference(source) == reference(target):
        return x, y
    pyproj = needed("pyproj", "A coordinate reference system")
    change = pyproj.Transformer.from_crs(reference(source), reference(target), always_xy=True)
    new_x, new_y = change.transform(x, y)
    # Where a place has none in the target, pyproj says infinity.
    return np.where(np.isfinite(new_x), new_x, np.nan), np.where(np.isfinite(new_y), new_y, np.nan)
