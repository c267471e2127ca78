"""predict_grid and predict_dataset: predictions as CF data sets."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR, IndependentGP
from emgpr.geo import coordinate_system
from emgpr.io import read_map, write_map
from tests.cf_checker import cf_errors
from tests.simulated import smooth_table

pytestmark = pytest.mark.slow

xarray = pytest.importorskip("xarray")
pyproj = pytest.importorskip("pyproj")
shapely = pytest.importorskip("shapely")

WGS84, UTM = "EPSG:4326", "EPSG:32601"


def fitted(D=2, crs=None, names=("lon", "lat"), n=30):
    """A model of two inputs whose kernel and noise are fixed."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform([175, 50], [185, 55], (n, 2)), columns=list(names))
    signal = np.sin(X.iloc[:, [1]].to_numpy() + np.arange(D))
    Y = pd.DataFrame(signal + 0.1 * rng.normal(size=(n, D)), columns=[f"o{d}" for d in range(D)])
    kernel = RBF(1.5 if crs is None else 150.0, "fixed") + WhiteKernel(0.02, "fixed")
    return IndependentGP(kernel, crs=crs).fit(X, Y)


@pytest.fixture(scope="module")
def globe():
    return fitted(crs=WGS84)


@pytest.fixture(scope="module")
def plane():
    return fitted(names=("Xloc", "Yloc"))


def test_a_map_holds_what_predict_returns(globe):
    made = globe.predict_grid(1.0, quantiles=[0.1, 0.9], exceedance={"o0": 0.5, "o1": 0.0})
    lon, lat = np.meshgrid(made["lon"], made["lat"])
    cells = pd.DataFrame({"lon": lon.ravel(), "lat": lat.ravel()})
    median, std = globe.predict(cells, return_std=True)
    assert_array_equal(made["o1"].values.ravel(), median[:, 1])
    assert_array_equal(made["o1_std"].values.ravel(), std[:, 1])
    low_high = globe.predict_quantiles(cells, [0.1, 0.9])
    assert_array_equal(made["o0_quantiles"].values.reshape(2, -1), low_high[..., 0])
    assert made["o0_quantiles"].dims == ("quantile", "lat", "lon")
    above = globe.predict_exceedance(cells, [0.5, 0.0])
    assert_array_equal(made["o0_exceedance"].values.ravel(), above[:, 0])


def test_options_of_predict_are_passed_on_and_described(globe):
    made = globe.predict_grid(2.0, statistic="mean", include_noise=False)
    assert (made["o0_std"] < globe.predict_grid(2.0)["o0_std"]).all()
    assert made["o0"].attrs["long_name"] == "mean of o0"
    assert made.attrs["comment"] == (
        "Each output is the mean of the predictive distribution of the signal without noise."
    )
    assert made.attrs["source"].startswith("Gaussian process regression (IndependentGP) on 30 si")
    assert made.attrs["history"].endswith("IndependentGP.predict_grid(spacing=2.0)")


def test_a_threshold_for_one_output_adds_only_its_exceedance(globe):
    made = globe.predict_grid(2.0, exceedance={"o1": 0.5}, units="K")
    assert [name for name in made.data_vars if "exceed" in name] == ["o1_exceedance"]
    attributes = made["o1_exceedance"].attrs
    assert attributes["long_name"] == "probability that o1 is above 0.5 K"
    assert attributes["units"] == "1"
    assert made["o0"].attrs["ancillary_variables"] == "o0_std"
    assert made["o1"].attrs["ancillary_variables"] == "o1_std o1_exceedance"


def test_coordinates_and_variables_have_cf_attributes(globe):
    made = globe.predict_grid(0.5, units={"o0": "K", "o1": "mg kg-1"})
    assert made["o0"].dims == ("lat", "lon")
    for name, direction in (("lon", "east"), ("lat", "north")):
        assert made[name].attrs["units"] == f"degrees_{direction}"
        assert_allclose(np.diff(made[name]), 0.5)
        assert_allclose(made[name] % 0.5, 0)  # at multiples of the spacing
    assert made["lon"].attrs["axis"] == "X"
    assert made["lon"][-1] > 180  # increasing across the date line
    assert made["o0"].attrs["units"] == made["o0_std"].attrs["units"] == "K"
    assert made.attrs["Conventions"] == "CF-1.11"
    assert pyproj.CRS.from_cf(made["crs"].attrs) == pyproj.CRS(WGS84)


def test_a_model_in_degrees_can_be_mapped_in_a_projection(globe):
    made = globe.predict_grid(100_000, crs=UTM)
    assert made["o0"].dims == ("y", "x")
    assert made["x"].attrs["standard_name"] == "projection_x_coordinate"
    cells = pd.DataFrame({name: made[name].values.ravel() for name in ("lon", "lat")})
    assert_allclose(made["o0"].values.ravel(), globe.predict(cells)[:, 0], rtol=1e-9)
    assert pyproj.CRS.from_cf(made["crs"].attrs) == pyproj.CRS(UTM)


def test_a_model_without_a_reference_system_has_none_unless_it_is_given(plane):
    made = plane.predict_grid(shape=(3, 4), units={"Xloc": "km"})
    assert made["o0"].dims == ("Yloc", "Xloc")
    assert "crs" not in made.variables
    assert made["Xloc"].attrs == {"long_name": "Xloc", "units": "km"}
    assert plane.predict_grid(1.0, crs=UTM)["x"].attrs["units"] == "metre"
    with pytest.warns(UserWarning, match="used as plane coordinates") as caught:
        plane.predict_grid(1.0, crs=WGS84)
    assert caught[0].filename == __file__


def test_cells_predicted_in_blocks_are_those_predicted_at_once(globe, monkeypatch):
    whole = globe.predict_grid(1.0)
    monkeypatch.setattr(
        "emgpr.predictor.chunks",
        lambda n, *_, **__: [range(i, min(i + 7, n)) for i in range(0, n, 7)],
    )
    assert_allclose(globe.predict_grid(1.0)["o0"], whole["o0"], rtol=1e-12)


def test_progress_is_shown_if_verbose(plane, capsys, monkeypatch):
    monkeypatch.setattr("emgpr.predictor.PROGRESS_LOCATIONS", 5)
    monkeypatch.setattr(plane, "verbose", 1)
    plane.predict_grid(1.0)
    assert "Predicting: blocks of cells" in capsys.readouterr().err


@pytest.mark.parametrize("D", [1, 14])
def test_one_output_and_fourteen_in_32_bits(D):
    made = fitted(D, names=("x", "y")).predict_grid(2.0, dtype="float32")
    assert len(made.data_vars) == 2 * D
    assert {variable.dtype for variable in made.data_vars.values()} == {np.dtype("float32")}


def test_outputs_and_inputs_without_names_are_numbered():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
    made = EMGPR.paper(random_state=0).fit(X, Y + X).predict_grid(shape=(2, 3))
    assert list(made.data_vars) == ["output_0", "output_0_std", "output_1", "output_1_std"]
    assert set(made.coords) == {"input_0", "input_1"}
    assert made["output_1"].shape == (2, 3)


def test_numbered_outputs_can_have_integer_keys():
    X, Y = smooth_table(np.random.default_rng(0), N=12)
    model = IndependentGP(RBF(0.4, "fixed"), output_transform={0: None}, random_state=0).fit(X, Y)
    grid = model.predict_grid(shape=(2, 2), units={0: "K", 1: "m"}, exceedance={1: 0.5})
    assert grid["output_0"].attrs["units"] == "K"
    assert "output_1_exceedance" in grid


def test_cells_outside_a_region_are_missing(globe, tmp_path):
    ring = [[179, 51], [181, 51], [181, 53], [179, 53], [179, 51]]
    square = {"type": "Polygon", "coordinates": [ring]}
    file = tmp_path / "square.geojson"
    feature = {"type": "Feature", "properties": {}, "geometry": square}
    file.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    made = globe.predict_grid(1.0, inside=file)
    expected = (
        (made["lon"] >= 179) & (made["lon"] <= 181) & (made["lat"] >= 51) & (made["lat"] <= 53)
    )
    assert_array_equal(np.isfinite(made["o0"]), expected.transpose("lat", "lon"))
    for other in (square, shapely.geometry.shape(square), lambda x, y: abs(x - 180) + 0 * y <= 1):
        there = globe.predict_grid(1.0, inside=other)["o0"].sel(lat=52, lon=180)
        assert np.isfinite(there)
    projected = globe.predict_grid(50_000, crs=UTM, inside=file)  # GeoJSON stays in degrees
    is_inside = np.isfinite(projected["o0"].values)
    assert 0 < is_inside.sum() < is_inside.size
    assert abs(projected["lon"].values[is_inside] % 360 - 180).max() <= 1


def test_a_region_without_a_cell_is_rejected(globe):
    with pytest.raises(ValueError, match=r"No cell of the grid .* lies inside the region"):
        globe.predict_grid(1.0, inside=shapely.geometry.box(0, 0, 1, 1))


@pytest.fixture(scope="module")
def terrain_model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["x", "y", "height"])
    kernel = RBF(1.0, "fixed") + WhiteKernel(0.01, "fixed")
    return IndependentGP(kernel).fit(X, X.sum(axis=1).to_frame("t"))


def test_three_inputs_are_found_by_name_and_broadcast(terrain_model):
    model = terrain_model
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


def test_dates_in_a_dataset_are_those_of_the_table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.uniform(size=30), "day": pd.date_range("2024-01-01", periods=30)})
    kernel = RBF([1.0, 5.0], "fixed") + WhiteKernel(0.02, "fixed")
    model = IndependentGP(kernel).fit(X, np.sin(np.arange(30.0) / 4))
    new = X.iloc[[3, 9, 20]]
    cells = {"x": ("day", new["x"].to_numpy())}
    predicted = model.predict_dataset(xarray.Dataset(cells, coords={"day": new["day"].to_numpy()}))
    assert_allclose(predicted["output_0"], model.predict(new), rtol=1e-9)


def test_a_dataset_of_scalars_is_rejected(terrain_model):
    point = xarray.Dataset(coords={"x": 0.0, "y": 0.0, "height": 1.0})
    with pytest.raises(ValueError, match="no dimensions"):
        terrain_model.predict_dataset(point)


def test_a_map_predicted_at_the_cells_of_a_map_equals_it(globe):
    made = globe.predict_grid(1.0)
    again = globe.predict_dataset(made)
    assert again["o0"].dims == made["o0"].dims == ("lat", "lon")
    assert_allclose(again["o0"].values, made["o0"].values)
    lon_first = xarray.Dataset(coords={name: made[name].values for name in ("lon", "lat")})
    assert globe.predict_dataset(lon_first)["o0"].dims == ("lat", "lon")


def test_longitude_and_latitude_are_found_by_their_standard_names(globe):
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
    ("options", "message"),
    [
        ({"units": {"Cd": "K"}}, r"units has the keys \['Cd'\], which are neither outputs"),
        ({"quantiles": [0, 1]}, "between 0 and 1"),
        ({"exceedance": {"Cd": 1}}, r"thresholds for \['Cd'\]; expected names of outputs"),
        ({"exceedance": [1, 2, 3]}, "2: one for each"),
        ({"statistic": "mode"}, "'median' or 'mean'"),
        ({"dtype": "int8"}, "'float64' or 'float32'"),
        ({"inside": 5}, "inside is a int; expected a GeoJSON file"),
        ({"inside": {"type": "Point", "coordinates": [0, 0]}}, "no Polygon"),
    ],
)
def test_invalid_options_are_rejected(plane, options, message):
    with pytest.raises(ValueError, match=message):
        plane.predict_grid(1.0, **options)


def test_names_of_variables_that_would_clash_are_rejected():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(20, 2)), columns=["x", "y"])
    kernel = RBF(1.0, "fixed") + WhiteKernel(0.01, "fixed")
    for names, message in (
        (["a b", "a_b"], "several variables with the names"),
        (["x", "b"], "same names as coord"),
    ):
        Y = (X + 0.1 * rng.normal(size=X.shape)).set_axis(names, axis=1)
        with pytest.raises(ValueError, match=message):
            IndependentGP(kernel).fit(X, Y).predict_grid(shape=(2, 2))


@pytest.mark.parametrize("crs", [None, UTM])
def test_netcdf_keeps_a_map_to_the_last_bit(globe, tmp_path, crs):
    made = globe.predict_grid(1.0 if crs is None else 1e5, crs=crs, units="K", quantiles=[0.5])
    write_map(made, tmp_path / "map.nc")
    again = read_map(tmp_path / "map.nc")
    assert again.identical(made)
    assert pyproj.CRS.from_cf(again["crs"].attrs) == pyproj.CRS(crs or WGS84)


def test_a_cf_checker_finds_no_errors(globe, plane, tmp_path):
    pytest.importorskip("compliance_checker")
    maps = {
        "globe.nc": globe.predict_grid(1.0, units="K", quantiles=[0.1, 0.9], exceedance=0.0),
        "projected.nc": globe.predict_grid(1e5, crs=UTM, units="K"),
        "plane.nc": plane.predict_grid(1.0, units={"o0": "K"}),
    }
    for name, made in maps.items():
        write_map(made, tmp_path / name)
    assert not cf_errors(*(tmp_path / name for name in maps))


def test_geotiff_has_a_named_band_for_each_variable(globe, tmp_path):
    rasterio = pytest.importorskip("rasterio")
    made = globe.predict_grid(0.5, units="K", quantiles=[0.05, 0.5])
    write_map(made, tmp_path / "map.tif")
    with rasterio.open(tmp_path / "map.tif") as file:
        names = [
            f"{name}{part}" for name in ("o0", "o1") for part in ("", "_std", "_q0.05", "_q0.5")
        ]
        assert file.descriptions == tuple(names)
        assert file.units == ("K",) * 8
        assert file.crs.to_epsg() == 4326
        row, column = file.index(180.0, 52.0)
        assert_allclose(file.read(1)[row, column], made["o0"].sel(lon=180, lat=52), rtol=1e-6)
        quantile = made["o0_quantiles"].sel(lon=180, lat=52, quantile=0.05)
        assert_allclose(file.read(3)[row, column], quantile, rtol=1e-6)


@pytest.mark.parametrize(
    ("missing", "options"),
    [
        ("xarray", {}),
        ("pyproj", {"crs": UTM}),
        ("shapely", {"inside": {"type": "Polygon", "coordinates": []}}),
    ],
)
def test_a_missing_package_is_named_with_its_extra(plane, monkeypatch, missing, options):
    coordinate_system.cache_clear()
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=rf"needs {missing}, .*pip install 'emgpr\[geo\]'"):
        plane.predict_grid(1.0, **options)
