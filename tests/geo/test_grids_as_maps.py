"""predict_grid and predict_dataset: the numbers of predict, where CF says they are."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from cf_checker import cf_errors
from numpy.testing import assert_allclose, assert_array_equal

from emgpr import EMGPR, IndependentGP
from emgpr.io import read_map, write_map

xarray = pytest.importorskip("xarray")
pyproj = pytest.importorskip("pyproj")
shapely = pytest.importorskip("shapely")

WGS84, UTM = "EPSG:4326", "EPSG:32601"


def a_model(D=2, crs=None, names=("lon", "lat"), n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform([175, 50], [185, 55], (n, 2)), columns=list(names))
    signal = np.sin(X.iloc[:, [1]].to_numpy() + np.arange(D))
    Y = pd.DataFrame(signal + 0.1 * rng.normal(size=(n, D)), columns=[f"o{d}" for d in range(D)])
    return IndependentGP(crs=crs, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def globe():
    return a_model(crs=WGS84)


@pytest.fixture(scope="module")
def plane():
    return a_model(names=("Xloc", "Yloc"))


def test_the_map_holds_what_predict_says(globe):
    made = globe.predict_grid(1.0, quantiles=[0.1, 0.9], exceedance={"o0": 0.5, "o1": 0.0})
    lon, lat = np.meshgrid(made["lon"], made["lat"])
    cells = pd.DataFrame({"lon": lon.ravel(), "lat": lat.ravel()})
    mean, std = globe.predict(cells, return_std=True)
    assert_array_equal(made["o1"].values.ravel(), mean[:, 1])
    assert_array_equal(made["o1_std"].values.ravel(), std[:, 1])
    low_high = globe.predict_quantiles(cells, [0.1, 0.9])
    assert_array_equal(made["o0_quantiles"].values.reshape(2, -1), low_high[..., 0])
    assert made["o0_quantiles"].dims == ("quantile", "lat", "lon")
    above = globe.predict_exceedance(cells, [0.5, 0.0])
    assert_array_equal(made["o0_exceedance"].values.ravel(), above[:, 0])


def test_a_threshold_of_one_output_adds_its_exceedance_alone(globe):
    made = globe.predict_grid(2.0, exceedance={"o1": 0.5})
    assert [name for name in made.data_vars if "exceed" in name] == ["o1_exceedance"]
    assert made["o0"].attrs["ancillary_variables"] == "o0_std"
    assert made["o1"].attrs["ancillary_variables"] == "o1_std o1_exceedance"


def test_coordinates_say_what_they_are(globe):
    made = globe.predict_grid(0.5, units={"o0": "K", "o1": "mg kg-1"})
    assert made["o0"].dims == ("lat", "lon")
    for name, towards in (("lon", "east"), ("lat", "north")):
        assert made[name].attrs["units"] == f"degrees_{towards}"
        assert_allclose(np.diff(made[name]), 0.5)
        assert_allclose(made[name] % 0.5, 0)  # at multiples of the spacing
    assert made["lon"].attrs["axis"] == "X"
    assert made["lon"][-1] > 180  # across the date line, increasing
    assert made["o0"].attrs["units"] == made["o0_std"].attrs["units"] == "K"
    assert made["o0"].attrs["ancillary_variables"] == "o0_std"
    assert made.attrs["Conventions"] == "CF-1.11"
    assert pyproj.CRS.from_cf(made["crs"].attrs) == pyproj.CRS(WGS84)


def test_a_model_on_the_globe_mapped_in_a_projection(globe):
    made = globe.predict_grid(100_000, crs=UTM)
    assert made["o0"].dims == ("y", "x")
    assert made["x"].attrs["standard_name"] == "projection_x_coordinate"
    cells = pd.DataFrame({name: made[name].values.ravel() for name in ("lon", "lat")})
    assert_allclose(made["o0"].values.ravel(), globe.predict(cells)[:, 0], rtol=1e-9)
    assert pyproj.CRS.from_cf(made["crs"].attrs) == pyproj.CRS(UTM)


def test_without_a_reference_system_there_is_none(plane):
    made = plane.predict_grid(shape=(3, 4), units={"Xloc": "km"})
    assert made["o0"].dims == ("Yloc", "Xloc")
    assert "crs" not in made.variables
    assert made["Xloc"].attrs == {"long_name": "Xloc", "units": "km"}
    assert plane.predict_grid(1.0, crs=UTM)["x"].attrs["units"] == "metre"
    with pytest.warns(UserWarning, match="as if degrees were lengths"):
        plane.predict_grid(1.0, crs=WGS84)


def test_blocks_of_cells_are_as_one(globe, monkeypatch):
    whole = globe.predict_grid(1.0)
    monkeypatch.setattr(
        "emgpr.estimators.predictor.chunks",
        lambda n, *_, **__: [range(i, min(i + 7, n)) for i in range(0, n, 7)],
    )
    assert_allclose(globe.predict_grid(1.0)["o0"], whole["o0"], rtol=1e-12)


def test_progress_is_shown_when_asked_for(capsys, monkeypatch):
    monkeypatch.setattr("emgpr.estimators.predictor.MANY", 5)
    model = a_model(names=("x", "y")).set_params(verbose=1)
    model.predict_grid(1.0)
    assert "Predicting: blocks of cells" in capsys.readouterr().err


@pytest.mark.parametrize("D", [1, 14])
def test_one_output_and_fourteen(D):
    made = a_model(D, names=("x", "y")).predict_grid(2.0, dtype="float32")
    assert len(made.data_vars) == 2 * D
    assert made["o0"].dtype == np.float32


def test_outputs_without_names_get_some():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    model = IndependentGP(random_state=0).fit(X, X[:, 0] + 0.1 * rng.normal(size=30))
    made = model.predict_grid(shape=(2, 2))
    assert list(made.data_vars) == ["output_0", "output_0_std"]
    assert set(made.coords) == {"input_0", "input_1"}


def test_cells_outside_the_polygon_are_missing(globe, tmp_path):
    ring = [[179, 51], [181, 51], [181, 53], [179, 53], [179, 51]]
    square = {"type": "Polygon", "coordinates": [ring]}
    file = tmp_path / "square.geojson"
    feature = {"type": "Feature", "properties": {}, "geometry": square}
    file.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    made = globe.predict_grid(1.0, inside=file)
    there = np.isfinite(made["o0"])
    expected = (
        (made["lon"] >= 179) & (made["lon"] <= 181) & (made["lat"] >= 51) & (made["lat"] <= 53)
    )
    assert_array_equal(there, expected.transpose("lat", "lon"))
    for other in (square, shapely.geometry.shape(square), lambda x, y: abs(x - 180) + 0 * y <= 1):
        there = globe.predict_grid(1.0, inside=other)["o0"].sel(lat=52, lon=180)
        assert np.isfinite(there)
    projected = globe.predict_grid(50_000, crs=UTM, inside=file)  # GeoJSON stays in degrees
    within = np.isfinite(projected["o0"].values)
    assert 0 < within.sum() < within.size
    assert abs(projected["lon"].values[within] % 360 - 180).max() <= 1


def test_a_region_elsewhere_is_refused(globe):
    with pytest.raises(ValueError, match=r"No cell of the grid .* lies inside the region"):
        globe.predict_grid(1.0, inside=shapely.geometry.box(0, 0, 1, 1))


def test_three_inputs_by_name_and_where_one_is_missing():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["x", "y", "height"])
    model = IndependentGP(random_state=0).fit(X, X.sum(axis=1).to_frame("t") + 0.1)
    with pytest.raises(ValueError, match=r"two input columns, .* 3.*predict_dataset"):
        model.predict_grid(1.0)
    height = np.array([[0.0, 1.0], [np.nan, 2.0], [0.5, 0.5]])
    data = xarray.Dataset(
        {"height": (("y", "x"), height)}, coords={"y": [0.0, 1.0, 2.0], "x": [0.0, 1.0]}
    )
    made = model.predict_dataset(data, units="K")
    assert made["t"].dims == ("y", "x")
    assert_array_equal(np.isnan(made["t"]), np.isnan(height))
    in_time = model.predict_dataset(data.expand_dims(time=2))
    assert in_time["t"].dims == ("time", "y", "x")
    at = model.predict(pd.DataFrame({"x": [1.0], "y": [1.0], "height": [2.0]}))
    assert_allclose(made["t"].sel(x=1, y=1), at[0])
    with pytest.raises(ValueError, match=r"no variable 'height', an input of this model"):
        model.predict_dataset(data.drop_vars("height"))


def test_predicted_at_the_cells_of_a_map_it_is_that_map(globe):
    made = globe.predict_grid(1.0)
    again = globe.predict_dataset(made)
    assert again["o0"].dims == made["o0"].dims == ("lat", "lon")
    assert_allclose(again["o0"].values, made["o0"].values)
    turned = xarray.Dataset(coords={name: made[name].values for name in ("lon", "lat")})
    assert globe.predict_dataset(turned)["o0"].dims == ("lat", "lon")


def test_longitude_and_latitude_are_found_by_what_they_say(globe):
    data = xarray.Dataset(
        coords={
            "XLONG": ("cell", [180.0, 181.0], {"standard_name": "longitude"}),
            "XLAT": ("cell", [52.0, 53.0], {"standard_name": "latitude"}),
        }
    )
    made = globe.predict_dataset(data)
    expected = globe.predict(pd.DataFrame({"lon": [180.0, 181.0], "lat": [52.0, 53.0]}))
    assert_allclose(made["o0"], expected[:, 0])


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"units": {"Cd": "K"}}, r"units has \['Cd'\], which this model has not"),
        ({"quantiles": [0, 1]}, "between 0 and 1"),
        ({"exceedance": {"Cd": 1}}, r"thresholds for \['Cd'\]; expected names of outputs"),
        ({"exceedance": [1, 2, 3]}, "2: one for each"),
        ({"statistic": "mode"}, "'median' or 'mean'"),
        ({"dtype": "int8"}, "'float64' or 'float32'"),
        ({"inside": 5}, "inside is a int; expected a GeoJSON file"),
        ({"inside": {"type": "Point", "coordinates": [0, 0]}}, "no Polygon"),
    ],
)
def test_requests_that_mean_nothing(plane, asked, message):
    with pytest.raises(ValueError, match=message):
        plane.predict_grid(1.0, **asked)


def test_names_that_would_collide():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(20, 2)), columns=["x", "y"])
    for names, message in ((["a b", "a_b"], "share the variables"), (["x", "b"], "names of coord")):
        Y = (X + 0.1 * rng.normal(size=X.shape)).set_axis(names, axis=1)
        with pytest.raises(ValueError, match=message):
            IndependentGP(random_state=0).fit(X, Y).predict_grid(shape=(2, 2))


@pytest.mark.parametrize("crs", [None, UTM])
def test_netcdf_keeps_the_map_to_the_last_bit(globe, tmp_path, crs):
    made = globe.predict_grid(1.0 if crs is None else 1e5, crs=crs, units="K", quantiles=[0.5])
    write_map(made, tmp_path / "map.nc")
    again = read_map(tmp_path / "map.nc")
    assert again.identical(made)
    assert pyproj.CRS.from_cf(again["crs"].attrs) == pyproj.CRS(crs or WGS84)


@pytest.mark.parametrize("case", ["globe", "projected", "plane"])
def test_a_cf_checker_finds_no_error(globe, plane, tmp_path, case):
    pytest.importorskip("compliance_checker")
    file = tmp_path / "map.nc"
    made = {
        "globe": lambda: globe.predict_grid(1.0, units="K", quantiles=[0.1, 0.9], exceedance=0.0),
        "projected": lambda: globe.predict_grid(1e5, crs=UTM, units="K"),
        "plane": lambda: plane.predict_grid(1.0, units={"o0": "K"}),
    }[case]()
    write_map(made, file)
    assert not cf_errors(file)


def test_geotiff_has_a_named_band_for_each_variable(globe, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    made = globe.predict_grid(0.5, units="K", quantiles=[0.5])
    write_map(made, tmp_path / "map.tif")
    with rasterio.open(tmp_path / "map.tif") as file:
        assert file.descriptions == ("o0", "o0_std", "o1", "o1_std")
        assert file.units == ("K",) * 4
        assert file.crs.to_epsg() == 4326
        row, column = file.index(180.0, 52.0)
        assert_allclose(file.read(1)[row, column], made["o0"].sel(lon=180, lat=52), rtol=1e-6)


@pytest.mark.parametrize("missing", ["xarray", "pyproj", "shapely"])
def test_without_the_extra_the_error_names_it(monkeypatch, missing):
    from emgpr.geo.reference import reference

    model = a_model(names=("x", "y"))
    reference.cache_clear()
    monkeypatch.setitem(sys.modules, missing, None)
    asked = {
        "xarray": {},
        "pyproj": {"crs": UTM},
        "shapely": {"inside": {"type": "Polygon", "coordinates": []}},
    }
    with pytest.raises(ImportError, match=rf"needs {missing}: pip install 'emgpr\[geo\]'"):
        model.predict_grid(1.0, **asked[missing])


def test_the_whole_family_maps():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
    made = EMGPR.paper(random_state=0, crs=UTM).fit(X, Y + X).predict_grid(shape=(2, 3))
    assert made["output_1"].shape == (2, 3)
