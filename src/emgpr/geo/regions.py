"""Regions: which places lie inside polygons."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from emgpr.geo.extras import needed
from emgpr.geo.reference import moved

Array = np.ndarray


def inside(
    geometry: Any,
    x: Float[Array, " M"],
    y: Float[Array, " M"],
    *,
    crs: str | None = None,
    geometry_crs: str | None = None,
    degrees: bool = False,
) -> Bool[Array, " M"]:
    """Which places lie in the geometry, borders included; longitudes are tried turns apart.

    Places are brought to the geometry's own system if both are known.

    >>> from shapely.geometry import box
    >>> inside(box(170, 0, 180, 1), np.array([-185.0, 150.0]), np.array([0.5, 0.5]), degrees=True)
    array([ True, False])
    """
    shapely = needed("shapely", "A region")
    if crs is not None and geometry_crs is not None:
        x, y = moved(x, y, crs, geometry_crs)
    shapely.prepare(geometry)
    turns = (0.0, -360.0, 360.0) if degrees else (0.0,)
    within = np.zeros(len(x), bool)
    for turn in turns:
        within |= shapely.intersects_xy(geometry, x + turn, y)
    return within
