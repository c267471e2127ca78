"""Reading of regions from GeoJSON, and from objects with a `__geo_interface__`."""

import json
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any, NamedTuple

from emgpr.geo import LONGITUDE_LATITUDE
from emgpr.io.files import existing_file, read_errors
from emgpr.optional_imports import import_optional

AREAS = ("Polygon", "MultiPolygon")


class Region(NamedTuple):
    """A shapely geometry and its reference system, which is None if it is that of the map."""

    geometry: Any
    crs: str | None


def read_region(source: Any) -> Region:
    """Read polygons from a GeoJSON file, a dict of GeoJSON, or a shapely or geopandas object.

    GeoJSON contains longitudes and latitudes, unless it names another reference system as its
    "crs", which the 2008 specification allowed. Shapely geometries have no reference system. They
    are assumed to be in the coordinates of the map.

    >>> square = [[[0, 0], [1, 0], [1, 1], [0, 0]]]
    >>> read_region({"type": "Polygon", "coordinates": square}).geometry.area
    0.5
    """
    if isinstance(source, str | PathLike):
        file = existing_file(source)
        with read_errors(file, "GeoJSON"):
            content = json.loads(file.read_text(encoding="utf-8"))
        return _region(content, str(file), _named_crs(content) or LONGITUDE_LATITUDE)
    if isinstance(source, Mapping):
        return _region(source, "inside", _named_crs(source) or LONGITUDE_LATITUDE)
    content = getattr(source, "__geo_interface__", None)
    if content is None:
        raise ValueError(
            f"inside is a {type(source).__name__}; expected a GeoJSON file, a dict of GeoJSON, or "
            "a shapely or geopandas object."
        )
    crs = getattr(source, "crs", None)  # Geopandas objects have a crs.
    return _region(content, "inside", None if crs is None else crs.to_wkt())


def _region(content: Any, what: str, crs: str | None) -> Region:
    """Return the union of all polygons in GeoJSON content; `what` names the content in messages."""
    shapely = import_optional("shapely", "A region")
    areas = [part for part in _geometries(content) if part.get("type") in AREAS]
    if not areas:
        raise ValueError(
            f"{what} contains no Polygon or MultiPolygon; pass GeoJSON with the outline of the "
            "region."
        )
    try:
        shapes = [shapely.geometry.shape(area) for area in areas]
    except Exception as error:  # Shapely raises various classes for invalid coordinates.
        raise ValueError(
            f"{what} contains an invalid polygon ({error}). Correct its coordinates."
        ) from error
    joined = shapely.union_all([shapely.make_valid(shape) for shape in shapes])
    return Region(joined, crs)


def _geometries(content: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all geometries in GeoJSON content, including those inside features and collections."""
    if not isinstance(content, Mapping):
        return
    if content.get("type") in ("FeatureCollection", "GeometryCollection"):
        for part in content.get("features", content.get("geometries", [])) or []:
            yield from _geometries(part)
    elif content.get("type") == "Feature":
        yield from _geometries(content.get("geometry"))
    else:
        yield content


def _named_crs(content: Any) -> str | None:
    """Return the "crs" of GeoJSON content, or None if it is missing or the default."""
    named = content.get("crs") if isinstance(content, Mapping) else None
    name = (named or {}).get("properties", {}).get("name")
    return None if name is None or "CRS84" in str(name) else str(name)
