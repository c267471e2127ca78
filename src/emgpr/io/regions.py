"""Regions from GeoJSON files, or from whatever else describes itself as GeoJSON does."""

import json
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any, NamedTuple

from emgpr.geo import LONGITUDE_LATITUDE, needed
from emgpr.io.files import existing, reading

AREAS = ("Polygon", "MultiPolygon")


class Region(NamedTuple):
    """A shapely geometry and the reference system of its coordinates; None is that of the map."""

    geometry: Any
    crs: str | None


def read_region(source: Any) -> Region:
    """Polygons from a GeoJSON file, from a dict of GeoJSON, or from shapely or geopandas.

    GeoJSON is in longitude and latitude unless it names another system, as older files do.
    Geometries of shapely have none, and are taken to be in the coordinates of the map.

    >>> square = [[[0, 0], [1, 0], [1, 1], [0, 0]]]
    >>> read_region({"type": "Polygon", "coordinates": square}).geometry.area
    0.5
    """
    if isinstance(source, str | PathLike):
        file = existing(source)
        with reading(file, "GeoJSON"):
            content = json.loads(file.read_text(encoding="utf-8"))
        return _region(content, str(file), _named_crs(content) or LONGITUDE_LATITUDE)
    if isinstance(source, Mapping):
        return _region(source, "inside", _named_crs(source) or LONGITUDE_LATITUDE)
    described = getattr(source, "__geo_interface__", None)
    if described is None:
        raise ValueError(
            f"inside is a {type(source).__name__}; expected a GeoJSON file, a dict of GeoJSON, or "
            "a geometry of shapely or geopandas."
        )
    crs = getattr(source, "crs", None)  # geopandas knows it
    return _region(described, "inside", None if crs is None else crs.to_wkt())


def _region(content: Any, what: str, crs: str | None) -> Region:
    shapely = needed("shapely", "A region")
    areas = [part for part in _geometries(content) if part.get("type") in AREAS]
    if not areas:
        raise ValueError(
            f"{what} holds no Polygon or MultiPolygon; give GeoJSON with the outline of the region."
        )
    try:
        shapes = [shapely.geometry.shape(area) for area in areas]
    except Exception as error:  # of any kind: coordinates can be wrong in many ways
        raise ValueError(f"{what} holds a polygon that is none ({error}).") from error
    joined = shapely.union_all([shapely.make_valid(shape) for shape in shapes])
    return Region(joined, crs)


def _geometries(content: Any) -> Iterator[Mapping[str, Any]]:
    """Every geometry of features, collections and bare geometries."""
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
    """The system that GeoJSON of 2008 may name; CRS84 is longitude and latitude."""
    named = content.get("crs") if isinstance(content, Mapping) else None
    name = (named or {}).get("properties", {}).get("name")
    return None if name is None or "CRS84" in str(name) else str(name)
