"""Conversion of longitude and latitude to points in space, where distances are meaningful."""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.row_numbers import rows_from_zero

Array = np.ndarray

RADIUS = 6371.0088  # km: the mean radius of the Earth


def on_sphere(longitude: Any, latitude: Any) -> Float[Array, "N 3"] | pd.DataFrame:
    """Convert longitude and latitude in degrees to points on a sphere, in km.

    Distances between these points are also correct across the date line and the poles. They are
    chord lengths, which differ by less than 0.1% from great-circle distances up to 900 km. If the
    arguments are pandas Series, the result is a DataFrame with their index, to which further inputs
    can be added as columns.

    >>> east, west = on_sphere([179.9, -179.9], [0.0, 0.0])
    >>> round(float(np.linalg.norm(east - west)), 1)  # 0.2 degrees apart
    22.2
    """
    lon, lat = _numbers(longitude), _numbers(latitude)
    if lon.ndim != 1 or lon.shape != lat.shape:
        raise ValueError(
            f"longitude has shape {lon.shape} and latitude {lat.shape}; expected two vectors of "
            "equal length."
        )
    for name, values, limit in (("longitude", lon, 360.0), ("latitude", lat, 90.0)):
        outside = np.flatnonzero(np.abs(values) > limit)
        if len(outside):
            raise ValueError(
                f"{name} contains {values[outside[0]]:g} in {rows_from_zero(outside[:1])}; "
                f"expected degrees from {-limit:g} to {limit:g}. Check that longitude and latitude "
                "are not exchanged and are in degrees."
            )
    phi, theta = np.radians(lon), np.radians(lat)
    x, y, z = np.cos(theta) * np.cos(phi), np.cos(theta) * np.sin(phi), np.sin(theta)
    points = np.column_stack([x, y, z]) * RADIUS
    if isinstance(longitude, pd.Series):
        return pd.DataFrame(points, index=longitude.index, columns=["x_km", "y_km", "z_km"])
    return points


def _numbers(values: Any) -> Float[Array, "..."]:
    """Convert values to an array of floats, with NaN for masked values."""
    return np.asarray(np.ma.filled(np.ma.asarray(values, dtype=float), np.nan))
