"""Places on the globe as points in space, where the date line and the poles are nothing special."""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

Array = np.ndarray

RADIUS = 6371.0088  # km: the mean radius of the Earth


def on_sphere(longitude: Any, latitude: Any) -> Float[Array, "N 3"] | pd.DataFrame:
    """Degrees as points on a sphere, in km: inputs whose distances know no date line.

    Kernels then see the chord, which up to 900 km is the great circle to 0.1%. Series give a
    frame with their index; join other inputs to it as further columns.

    >>> east, west = on_sphere([179.9, -179.9], [0.0, 0.0])
    >>> round(float(np.linalg.norm(east - west)), 1)  # 0.2 degrees apart
    22.2
    """
    lon, lat = _numbers(longitude), _numbers(latitude)
    if lon.ndim != 1 or lon.shape != lat.shape:
        raise ValueError(
            f"longitude has shape {lon.shape} and latitude {lat.shape}; expected two columns of "
            "equal length."
        )
    for name, values, most in (("longitude", lon, 360.0), ("latitude", lat, 90.0)):
        outside = np.flatnonzero(np.abs(values) > most)
        if len(outside):
            raise ValueError(
                f"{name} holds {values[outside[0]]:g} (row {outside[0]}); expected degrees from "
                f"{-most:g} to {most:g}. Are the two exchanged, or in other units?"
            )
    phi, theta = np.radians(lon), np.radians(lat)
    at = np.column_stack([np.cos(theta) * np.cos(phi), np.cos(theta) * np.sin(phi), np.sin(theta)])
    at *= RADIUS
    if isinstance(longitude, pd.Series):
        return pd.DataFrame(at, index=longitude.index, columns=["x_km", "y_km", "z_km"])
    return at


def _numbers(values: Any) -> Float[Array, "..."]:
    """Masked values are NaN, not what lies beneath the mask."""
    return np.asarray(np.ma.filled(np.ma.asarray(values, dtype=float), np.nan))
