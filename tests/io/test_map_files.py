"""Regions and maps as files: what goes wrong is said."""

import json

import numpy as np
import pytest

from emgpr.io import read_map, read_region, write_map

xarray = pytest.importorskip("xarray")
pytest.importorskip("shapely")

RING = [[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0], [0.0, 0.0]]
SQUARE = {"type": "Polygon", "coordinates": [RING]}


def test_regions_of_every_form_of_geojson():
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read as GeoJSON"),
        ("[]", "holds no Polygon"),
        ('{"type": "Polygon", "coordinates": [[[0, 0], [1, 1]]]}', "polygon that is none"),
    ],
)
def test_regions_that_are_none(tmp_path, content, message):
    (tmp_path / "r.geojson").write_text(content)
    with pytest.raises(ValueError, match=message):
        read_region(tmp_path / "r.geojson")


def a_map(x=(0.0, 1.0, 2.0), y=(5.0, 4.0)):
    values = np.arange(float(len(x) * len(y))).reshape(len(y), len(x))
    return xarray.Dataset({"Cd": (("y", "x"), values)}, coords={"y": list(y), "x": list(x)})


def test_geotiff_is_north_up_whichever_way_rows_and_columns_go(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    lying = a_map().transpose("x", "y")
    told = lying.rename(x="east", y="north")
    told["east"].attrs["axis"], told["north"].attrs["axis"] = "X", "Y"
    globe = lying.rename(x="lon", y="lat")
    for made in (a_map(), a_map().isel(y=slice(None, None, -1)), lying, told, globe):
        write_map(made, tmp_path / "m.tif")
        with rasterio.open(tmp_path / "m.tif") as file:
            assert file.read(1).tolist() == [[0, 1, 2], [3, 4, 5]]
            assert (file.transform.c, file.transform.f) == (-0.5, 5.5)
            assert file.crs is None


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (a_map(x=(0.0, 1.0, 5.0)), "Steps along 'x' differ"),
        (a_map(y=(1.0,)), "one position along 'y'"),
        (xarray.Dataset({"t": ("x", [1.0])}), "no variable of rows and columns"),
    ],
)
def test_what_is_no_raster(tmp_path, made, message):
    pytest.importorskip("rasterio")
    with pytest.raises(ValueError, match=message):
        write_map(made, tmp_path / "m.tif")
    assert not list(tmp_path.iterdir())


def test_endings_of_maps(tmp_path):
    with pytest.raises(ValueError, match=r"told by the ending; expected \.nc"):
        write_map(a_map(), tmp_path / "map.png")
    with pytest.raises(FileNotFoundError, match="There is no file"):
        read_map(tmp_path / "map.nc")
