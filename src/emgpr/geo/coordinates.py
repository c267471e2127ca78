"""Conversion between input columns and the coordinates that kernels use.

Degrees are not lengths: a degree of longitude is 111 km at the equator and 56 km at 60° N, and the
meridians 179° and −179° are close to each other. Longitude and latitude are therefore converted to
points on a sphere, in km. Distances between these points are accurate everywhere on the globe,
while distances in a projection are accurate only near its centre. Projected coordinates are lengths
and are not changed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from emgpr.geo.reference_systems import is_geographic
from emgpr.sphere import RADIUS, on_sphere

Array = np.ndarray

LONGITUDE = re.compile(r"(.*[ _.])?(lon|long|lng|longitude)s?([ _.].*)?$", re.IGNORECASE)
LATITUDE = re.compile(r"(.*[ _.])?(lat|latitude)s?([ _.].*)?$", re.IGNORECASE)


@dataclass(frozen=True)
class CoordinateColumns:
    """Numbers of the columns x (longitude) and y (latitude), and whether x and y are in degrees.

    >>> columns = CoordinateColumns.from_names(["lat", "lon", "depth"], "EPSG:4326")
    >>> (columns.x, columns.y)
    (1, 0)
    >>> columns.to_kernel(np.array([[0.0, 90.0, 5.0]])).round().tolist()
    [[0.0, 6371.0, 0.0, 5.0]]
    """

    x: int
    y: int
    degrees: bool

    @classmethod
    def from_names(cls, names: Sequence[str], crs: str | None) -> "CoordinateColumns":
        """Find the columns named longitude and latitude. Without such names, use the first two."""
        degrees = is_geographic(crs)
        if crs is not None and len(names) < 2:
            raise ValueError(
                f"crs={crs!r} with {len(names)} input column; expected at least two: x and y, or "
                "longitude and latitude. Pass both columns, or do not set crs."
            )
        return cls(*(longitude_latitude(names) or (0, 1)), degrees)

    def to_kernel(self, X: Float[Array, "N P"]) -> Float[Array, "N p"]:
        """Convert input columns to kernel coordinates.

        Longitude and latitude become points on the sphere (km), followed by the other inputs.
        """
        if not self.degrees:
            return X
        points = on_sphere(X[:, self.x], X[:, self.y])
        return np.column_stack([points, np.delete(X, [self.x, self.y], axis=1)])

    def xy(self, x: Float[Array, "N p"]) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
        """Convert kernel coordinates to x and y, with longitudes from −180 to 180.

        >>> columns = CoordinateColumns(0, 1, degrees=True)
        >>> x, y = columns.xy(columns.to_kernel(np.array([[190.0, -45.0]])))
        >>> x.round(6).tolist(), y.round(6).tolist()
        ([-170.0], [-45.0])
        """
        if not self.degrees:
            return x[:, self.x], x[:, self.y]
        longitude = np.degrees(np.arctan2(x[:, 1], x[:, 0]))
        return longitude, np.degrees(np.arcsin(np.clip(x[:, 2] / RADIUS, -1.0, 1.0)))

    def from_kernel(self, x: Float[Array, "N p"]) -> Float[Array, "N P"]:
        """Convert kernel coordinates to input columns, with longitudes from −180 to 180.

        >>> columns = CoordinateColumns(1, 0, degrees=True)
        >>> x = columns.to_kernel(np.array([[-45.0, 190.0, 5.0]]))
        >>> columns.from_kernel(x).round(6).tolist()
        [[-45.0, -170.0, 5.0]]
        """
        if not self.degrees:
            return x
        X = np.empty((len(x), x.shape[1] - 1))
        X[:, self.x], X[:, self.y] = self.xy(x)
        others = np.delete(np.arange(X.shape[1]), [self.x, self.y])
        X[:, others] = x[:, 3:]
        return X


def n_input_columns(n_kernel_columns: int, crs: str | None) -> int:
    """Return the number of input columns, given the number of kernel coordinates."""
    return n_kernel_columns - 1 if is_geographic(crs) else n_kernel_columns


def longitude_latitude(names: Sequence[str]) -> tuple[int, int] | None:
    """Return the columns named longitude and latitude, if there is exactly one of each.

    >>> longitude_latitude(["LATITUDE", "site longitude"]), longitude_latitude(["Xloc", "Yloc"])
    ((1, 0), None)
    """
    longitudes, latitudes = (
        [i for i, name in enumerate(names) if pattern.match(name)]
        for pattern in (LONGITUDE, LATITUDE)
    )
    return (longitudes[0], latitudes[0]) if len(longitudes) == len(latitudes) == 1 else None


def flat_degrees_warning(names: Sequence[str]) -> str | None:
    """Return a warning if columns seem to be degrees used as plane coordinates, else None."""
    columns = longitude_latitude(names)
    if columns is None:
        return None
    lon, lat = (names[i] for i in columns)
    return (
        f"Columns {lon!r} and {lat!r} seem to be longitude and latitude, but are used as plane "
        "coordinates, which is wrong away from the equator and across the date line. Set "
        "crs='EPSG:4326' on the estimator to use distances on the globe, or rename the columns if "
        "they contain something else."
    )
