"""From a user's coordinates to those whose distances kernels may trust, and back.

Degrees are no lengths: a degree of longitude is 111 km at the equator and 56 km at 60° N, and
179° lies beside −179°. So longitude and latitude become points on a sphere, in km, which is right
anywhere on the globe; a projection would be so only around its centre. Projected coordinates are
lengths already and stay as they are.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from emgpr.geo.reference import is_geographic
from emgpr.sphere import RADIUS, on_sphere

Array = np.ndarray

LONGITUDE = re.compile(r"(.*[ _.])?(lon|long|lng|longitude)s?([ _.].*)?$", re.IGNORECASE)
LATITUDE = re.compile(r"(.*[ _.])?(lat|latitude)s?([ _.].*)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Places:
    """Where the columns x (longitude) and y (latitude) of the inputs are, and whether in degrees.

    >>> places = Places.of(["lat", "lon", "depth"], "EPSG:4326")
    >>> (places.x, places.y)
    (1, 0)
    >>> places.enter(np.array([[0.0, 90.0, 5.0]])).round().tolist()
    [[0.0, 6371.0, 0.0, 5.0]]
    """

    x: int
    y: int
    degrees: bool

    @classmethod
    def of(cls, names: Sequence[str], crs: str | None) -> "Places":
        """By their names if these are longitude and latitude, else the first two columns."""
        degrees = is_geographic(crs)
        if crs is not None and len(names) < 2:
            raise ValueError(
                f"crs={crs!r} with {len(names)} input column; a place has two: x and y, or "
                "longitude and latitude. Give both, or leave crs out."
            )
        named = longitude_latitude(names)
        return cls(*(named or (0, 1)), degrees)

    def enter(self, X: Float[Array, "N P"]) -> Float[Array, "N p"]:
        """What kernels see: degrees as points on the sphere (km), then the other columns."""
        if not self.degrees:
            return X
        around = on_sphere(X[:, self.x], X[:, self.y])
        return np.column_stack([around, np.delete(X, [self.x, self.y], axis=1)])

    def leave(self, x: Float[Array, "N p"]) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
        """x and y as the user gave them, longitudes from −180 to 180.

        >>> places = Places(0, 1, degrees=True)
        >>> [at.round(6).tolist() for at in places.leave(places.enter(np.array([[190.0, -45.0]])))]
        [[-170.0], [-45.0]]
        """
        if not self.degrees:
            return x[:, self.x], x[:, self.y]
        longitude = np.degrees(np.arctan2(x[:, 1], x[:, 0]))
        return longitude, np.degrees(np.arcsin(np.clip(x[:, 2] / RADIUS, -1.0, 1.0)))

    def back(self, x: Float[Array, "N p"]) -> Float[Array, "N P"]:
        """All columns as the user gave them, longitudes from −180 to 180.

        >>> places = Places(1, 0, degrees=True)
        >>> places.back(places.enter(np.array([[-45.0, 190.0, 5.0]]))).round(6).tolist()
        [[-45.0, -170.0, 5.0]]
        """
        if not self.degrees:
            return x
        whole = np.empty((len(x), x.shape[1] - 1))
        whole[:, self.x], whole[:, self.y] = self.leave(x)
        others = np.delete(np.arange(whole.shape[1]), [self.x, self.y])
        whole[:, others] = x[:, 3:]
        return whole


def columns_given(p: int, crs: str | None) -> int:
    """Input columns that the user gave, of p that kernels see."""
    return p - 1 if is_geographic(crs) else p


def longitude_latitude(names: Sequence[str]) -> tuple[int, int] | None:
    """The columns whose names say longitude and latitude, if there is one of each.

    >>> longitude_latitude(["LATITUDE", "site longitude"]), longitude_latitude(["Xloc", "Yloc"])
    ((1, 0), None)
    """
    found = [[i for i, name in enumerate(names) if of.match(name)] for of in (LONGITUDE, LATITUDE)]
    return (found[0][0], found[1][0]) if all(len(some) == 1 for some in found) else None


def doubt_flat(names: Sequence[str]) -> str | None:
    """What to say of longitude and latitude that would be used as if the Earth were flat."""
    named = longitude_latitude(names)
    if named is None:
        return None
    lon, lat = (names[i] for i in named)
    return (
        f"Columns {lon!r} and {lat!r} seem to be longitude and latitude, and are used as if "
        "degrees were lengths on a plane, which they are not away from the equator or across the "
        "date line. Set crs='EPSG:4326' on the estimator, and distances are those on the globe; "
        "or rename the columns if they are something else."
    )
