"""Longitude and latitude: distances on the globe, wherever the places are."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from emgpr import EMGPR, IndependentGP, load
from emgpr.geo import Places, doubt_flat, regular
from emgpr.geo.grids import unwrapped

pytest.importorskip("pyproj")

WGS84 = "EPSG:4326"


def sites(rng, n=40, west=176.0, east=184.0):
    lon, lat = rng.uniform(west, east, n), rng.uniform(50, 55, n)
    X = pd.DataFrame({"lat": lat, "lon": (lon + 180) % 360 - 180})
    y = np.sin(lat) + np.cos(lon / 2) + 0.1 * rng.normal(size=n)
    return X, pd.DataFrame({"a": y, "b": -y + 0.1 * rng.normal(size=n)})


def test_the_date_line_is_a_place_like_any_other(rng):
    """Turning the globe by 100 degrees changes no prediction."""
    X, Y = sites(rng)
    turned = X.assign(lon=X["lon"].where(X["lon"] > 0, X["lon"] + 360) - 100)
    here, there = (IndependentGP(crs=WGS84, random_state=0).fit(at, Y) for at in (X, turned))
    assert_allclose(
        here.predict(X), there.predict(turned), rtol=0, atol=1e-3
    )  # one optimum, reached twice


def test_columns_are_found_by_name_in_any_order(rng):
    X, Y = sites(rng)
    one = IndependentGP(crs=WGS84, random_state=0).fit(X, Y)
    other = IndependentGP(crs=WGS84, random_state=0).fit(X[["lon", "lat"]], Y)
    assert_allclose(one.predict(X), other.predict(X[["lon", "lat"]]), rtol=1e-12)
    assert one.n_features_in_ == 2


def test_arrays_are_longitude_first_and_the_exchange_is_noticed(rng):
    X, Y = sites(rng)
    IndependentGP(crs=WGS84, random_state=0).fit(X[["lon", "lat"]].to_numpy(), Y)
    with pytest.raises(ValueError, match=r"latitude holds 1\d\d.*exchanged"):
        IndependentGP(crs=WGS84).fit(X.abs()[["lat", "lon"]].to_numpy(), Y)


def test_projected_coordinates_are_used_as_they_are(rng):
    X, y = rng.uniform(5e5, 6e5, (30, 2)), rng.normal(size=30)
    flat = IndependentGP(random_state=0).fit(X, y).predict(X[:3])
    assert_allclose(IndependentGP(crs="EPSG:32632", random_state=0).fit(X, y).predict(X[:3]), flat)


def test_further_columns_stay(rng):
    X, Y = sites(rng)
    model = IndependentGP(crs=WGS84, random_state=0).fit(X.assign(depth=rng.normal(size=40)), Y)
    assert model._seen.x.shape == (40, 4)


def test_flat_use_of_degrees_is_warned_of(rng):
    X, Y = sites(rng)
    X = X.assign(lon=np.abs(X["lon"]) % 90)  # not across the date line, which is told of apart
    with pytest.warns(UserWarning, match=r"'lon' and 'lat' seem.*Set crs='EPSG:4326'") as caught:
        IndependentGP(random_state=0).fit(X, Y)
    assert caught[0].filename == __file__
    assert doubt_flat(["Xloc", "Yloc"]) is None


def test_a_saved_model_keeps_its_reference_system(rng, tmp_path):
    X, Y = sites(rng)
    model = IndependentGP(crs=WGS84, random_state=0).fit(X, Y)
    model.save(tmp_path / "m.emgpr")
    again = load(tmp_path / "m.emgpr")
    assert (again.crs, again.n_features_in_) == (WGS84, 2)
    assert (again.predict(X) == model.predict(X)).all()


@pytest.mark.parametrize(
    ("crs", "message"),
    [
        ("EPSG:0", "no coordinate reference system that pyproj knows"),
        (4326, "is a int; expected text such as 'EPSG:4326'"),
        ("EPSG:4978", "no two horizontal axes"),
        ("EPSG:4807", "counts in grad"),
    ],
)
def test_a_crs_that_is_none_is_refused_before_any_work(rng, crs, message):
    with pytest.raises(ValueError, match=message):
        EMGPR(crs=crs).fit(*sites(rng))


def test_one_column_is_no_place(rng):
    with pytest.raises(ValueError, match="1 input column; a place has two"):
        IndependentGP(crs=WGS84).fit(rng.normal(size=(9, 1)), rng.normal(size=9))


def test_there_and_back(rng):
    at = np.column_stack([rng.uniform(-180, 180, 50), rng.uniform(-90, 90, 50)])
    places = Places(0, 1, degrees=True)
    assert_allclose(np.column_stack(places.leave(places.enter(at))), at, atol=1e-9)


def test_longitudes_are_cut_at_their_widest_gap(rng):
    lon = rng.uniform(170, 190, 30)
    whole = unwrapped((lon + 180) % 360 - 180)
    assert_allclose(whole, lon, atol=1e-8)
    assert np.ptp(unwrapped(np.array([5.0]))) == 0


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({}, "either spacing"),
        ({"spacing": 1, "shape": (2, 2)}, "either spacing"),
        ({"spacing": 0}, "positive number"),
        ({"spacing": 1e-9}, r"cells; at most"),
        ({"shape": (2,)}, r"two whole numbers: \(rows, columns\)"),
        ({"shape": (0, 4)}, "two whole numbers"),
        ({"spacing": 1, "bounds": (1, 2, 3)}, r"four numbers: \(west, south, east, north\)"),
        ({"spacing": 1, "bounds": (5, 0, 1, 1)}, "hold nothing"),
    ],
)
def test_grids_that_cannot_be(asked, message):
    with pytest.raises(ValueError, match=message):
        regular(np.array([0.0, 1.0]), np.array([0.0, 1.0]), **asked)


def test_bounds_across_the_date_line_and_no_meridian_twice():
    x, y = np.zeros(1), np.zeros(1)
    grid = regular(x, y, 5, bounds=(170, 80, -170, 95), degrees=True)
    assert grid.x.tolist() == [170, 175, 180, 185, 190]
    assert grid.y.tolist() == [80, 85, 90]
    assert len(regular(x, y, 90, bounds=(-180, -90, 180, 90), degrees=True).x) == 4
