"""Longitude and latitude as inputs: kernels work with distances on the globe."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import IndependentGP, load
from emgpr.geo import CoordinateColumns, flat_degrees_warning, n_input_columns

pytest.importorskip("pyproj")

WGS84 = "EPSG:4326"
NOISE = WhiteKernel(0.01, "fixed")
KERNEL = RBF(300.0, "fixed") + NOISE  # km; nothing is optimised


def sites(rng, n=40):
    """Sites on both sides of the date line, latitude in the first column, and two outputs."""
    lon, lat = rng.uniform(176, 184, n), rng.uniform(50, 55, n)
    X = pd.DataFrame({"lat": lat, "lon": (lon + 180) % 360 - 180})
    y = np.sin(lat) + np.cos(lon / 2) + 0.1 * rng.normal(size=n)
    return X, pd.DataFrame({"a": y, "b": -y + 0.1 * rng.normal(size=n)})


@pytest.fixture(scope="module")
def table():
    return sites(np.random.default_rng(20171))


@pytest.fixture(scope="module")
def model(table):
    return IndependentGP(KERNEL, crs=WGS84).fit(*table)


def test_rotating_the_globe_away_from_the_date_line_changes_no_prediction(table, model):
    X, Y = table
    rotated = X.assign(lon=X["lon"].where(X["lon"] > 0, X["lon"] + 360) - 100)
    elsewhere = IndependentGP(KERNEL, crs=WGS84).fit(rotated, Y)
    assert_allclose(model.predict(X), elsewhere.predict(rotated), rtol=1e-9)


def test_columns_are_found_by_name_in_any_order_and_in_arrays_longitude_is_first(table, model):
    X, Y = table
    reordered = X[["lon", "lat"]]
    for inputs in (reordered, reordered.to_numpy()):
        other = IndependentGP(KERNEL, crs=WGS84).fit(inputs, Y)
        assert_allclose(model.predict(X), other.predict(inputs), rtol=1e-12)
    assert model.n_features_in_ == n_input_columns(3, WGS84) == 2


def test_exchanged_longitude_and_latitude_are_rejected(table):
    X, Y = table
    with pytest.raises(ValueError, match=r"latitude contains 1\d\d.*exchanged"):
        IndependentGP(crs=WGS84).fit(X.abs()[["lat", "lon"]].to_numpy(), Y)


def test_projected_coordinates_are_used_as_they_are(rng):
    X, y = rng.uniform(5e5, 6e5, (30, 2)), rng.normal(size=30)
    kernel = RBF(2e4, "fixed") + NOISE
    flat = IndependentGP(kernel).fit(X, y).predict(X[:3])
    assert_array_equal(IndependentGP(kernel, crs="EPSG:32632").fit(X, y).predict(X[:3]), flat)
    assert n_input_columns(2, "EPSG:32632") == 2


def test_training_data_are_returned_in_degrees_with_the_other_columns(table):
    X, Y = table
    X = pd.DataFrame({"depth": np.linspace(0, 9, len(X)), **X})
    model = IndependentGP(KERNEL, crs=WGS84).fit(X, Y)
    assert model.posterior_.observations.x.shape == (40, 4)
    inputs, outputs = model.training_data()
    assert list(inputs.columns) == ["depth", "lat", "lon"]
    assert_allclose(inputs, X, atol=1e-9)
    assert outputs.shape == (40, 2)


def test_degrees_used_as_coordinates_of_a_plane_are_warned_of(table):
    X, Y = table
    X = X.assign(lon=np.abs(X["lon"]) % 90)  # sites across the date line have their own warning
    with pytest.warns(UserWarning, match=r"'lon' and 'lat' seem.*Set crs='EPSG:4326'") as caught:
        IndependentGP(RBF(1.0, "fixed") + NOISE).fit(X, Y)
    assert caught[0].filename == __file__
    assert flat_degrees_warning(["Xloc", "Yloc"]) is None


def test_a_saved_model_keeps_its_reference_system(table, model, tmp_path):
    model.save(tmp_path / "m.emgpr")
    again = load(tmp_path / "m.emgpr")
    assert (again.crs, again.n_features_in_) == (WGS84, 2)
    assert_array_equal(again.predict(table[0]), model.predict(table[0]))


def test_a_reference_system_needs_two_columns(rng):
    with pytest.raises(ValueError, match="1 input column; expected at least two"):
        IndependentGP(crs=WGS84).fit(rng.normal(size=(9, 1)), rng.normal(size=9))


def test_conversion_to_kernel_coordinates_and_back(rng):
    degrees = np.column_stack([rng.uniform(-180, 180, 50), rng.uniform(-90, 90, 50)])
    columns = CoordinateColumns(0, 1, degrees=True)
    assert_allclose(np.column_stack(columns.xy(columns.to_kernel(degrees))), degrees, atol=1e-9)
    plane = CoordinateColumns(1, 0, degrees=False)
    assert_array_equal(plane.from_kernel(plane.to_kernel(degrees)), degrees)
    assert_array_equal(plane.xy(degrees), degrees[:, ::-1].T)
