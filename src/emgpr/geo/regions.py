"""Selection of the points inside a region."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from emgpr.geo.reference_systems import transform_coordinates
from emgpr.optional_imports import import_optional

Array = np.ndarray


def points_inside(
    geometry: Any,
    x: Float[Array, " M"],
    y: Float[Array, " M"],
    *,
    crs: str | None = None,
    geometry_crs: str | None = None,
    degrees: bool = False,
) -> Bool[Array, " M"]:
    """Tell which points lie inside a shapely geometry or on its border.

    If the reference systems of points and geometry are both known, the points are transformed to
    the system of the geometry. With `degrees`, longitudes that differ by 360 are equivalent.

    >>> from shapely.geometry import box
    >>> points_inside(box(170, 0, 180, 1), np.array([-185.0, 150.0]), np.full(2, 0.5), degrees=True)
    array([ True, False])
    """
    shapely = import_optional("shapely", "A region")
    if crs is not None and geometry_crs is not None:
        x, y = transform_coordinates(x, y, crs, geometry_crs)
    shapely.prepare(geometry)
    inside = np.zeros(len(x), bool)
    for turn in (0.0, -360.0, 360.0) if degrees else (0.0,):
        inside |= shapely.intersects_xy(geometry, x + turn, y)
    return inside
