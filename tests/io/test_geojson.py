"""Regions from GeoJSON."""

import json

import pytest

from emgpr.io import read_region

pytest.importorskip("shapely")

RING = [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0], [0.0, 0.0]]
SQUARE = {"type": "Polygon", "coordinates": [RING]}


def test_regions_are_read_from_every_form_of_geojson():
    feature = {"type": "Feature", "geometry": SQUARE, "properties": None}
    point = {"type": "Feature", "geometry": {"type": "Point", "coordinates": [0, 0]}}
    for content in (
        SQUARE,
        feature,
        {"type": "FeatureCollection", "features": [point, feature]},
        {"type": "GeometryCollection", "geometries": [SQUARE, SQUARE]},
    ):
        region = read_region(content)
        assert region.geometry.area == 4
        assert region.crs == "EPSG:4326"


def test_a_region_may_name_its_reference_system(tmp_path):
    named = {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::32632"}}
    (tmp_path / "r.geojson").write_text(json.dumps(SQUARE | {"crs": named}))
    assert read_region(tmp_path / "r.geojson").crs == "urn:ogc:def:crs:EPSG::32632"
    named = {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}
    assert read_region(SQUARE | {"crs": named}).crs == "EPSG:4326"


def test_objects_that_describe_themselves_may_have_a_reference_system():
    class Crs:
        def to_wkt(self):
            return "PROJCRS[...]"

    class Frame:
        __geo_interface__ = SQUARE

    assert read_region(Frame()).crs is None
    Frame.crs = Crs()
    assert read_region(Frame()).crs == "PROJCRS[...]"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read as GeoJSON"),
        ("[]", "contains no Polygon"),
        ('{"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}', "contains an invalid polygon"),
    ],
)
def test_invalid_regions_are_rejected(tmp_path, content, message):
    (tmp_path / "r.geojson").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_region(tmp_path / "r.geojson")
