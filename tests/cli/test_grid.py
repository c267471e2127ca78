"""`emgpr grid`: maps of a model file."""

import pytest
from numpy.testing import assert_array_equal

import emgpr
from emgpr.io import read_map

from .commands import refuse, succeed

xarray = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")
GRID = ("grid", "jura.emgpr", "--spacing", "1", "-o", "g.nc")


def test_the_map_is_that_of_the_model(here):
    options = ("--spacing", "0.5", "--inside", "region.geojson", "--units", "mg/kg")
    result = succeed("grid", "jura.emgpr", *options, "--above", "Cd=0.8", "-o", "m.nc")
    model = emgpr.load("jura.emgpr")
    expected = model.predict_grid(
        0.5, inside="region.geojson", units="mg/kg", exceedance={"Cd": 0.8}
    )
    with xarray.open_dataset("m.nc", engine="h5netcdf") as found:
        assert set(found.data_vars) == set(expected.data_vars)
        assert_array_equal(found["Cd"], expected["Cd"])
        assert found["Zn_std"].attrs["units"] == "mg/kg"
    n_rows, n_columns = expected["Cd"].shape
    inside = int(expected["Cd"].count())
    assert (
        f"3 outputs on {n_rows} × {n_columns} cells, {inside} of them inside: m.nc" in result.stdout
    )


def test_bounds_two_spacings_and_units_of_a_model_without_training_data(here):
    options = ("--spacing", "0.5,1", "--bounds", "2,2,3,4", "--units", "Cd=mg/kg,Xloc=km")
    result = succeed("grid", "sums.emgpr", *options, "-o", "m.nc")
    assert result.stdout == "1 output on 3 × 3 cells: m.nc\n"
    with xarray.open_dataset("m.nc", engine="h5netcdf") as found:
        assert found["Xloc"].attrs["units"] == "km"
        assert_array_equal(found["Xloc"], [2, 2.5, 3])


@pytest.mark.parametrize(
    ("code", "options", "text"),
    [
        (2, ("--spacing", "0"), "expected one or two positive distances"),
        (2, ("--spacing", "1,2,3"), "or two"),
        (2, ("--spacing", "inf"), "contains 'inf'; expected a finite number"),
        (3, ("--spacing", "1e-6"), "Check that the spacing"),
        (2, ("--bounds", "1,2"), "west,south,east,north"),
        (2, ("-o", "g.png"), "expected one of .nc"),
        (2, ("--units", "Pb=g"), "--units contains 'Pb'"),
        (3, ("--inside", "n"), "no file n"),
    ],
)
def test_options_that_cannot_be_used(here, code, options, text):
    assert text in refuse(code, *GRID, *options)


@pytest.mark.parametrize("ending", ["nc", "zarr", "tif"])
def test_outputs_and_quantiles_in_every_format(here, ending):
    rasterio, _ = pytest.importorskip("rasterio"), pytest.importorskip("zarr")
    options = ("--outputs", "Zn,Cd", "--quantiles", "0.1,0.9", "--spacing", "1")
    for force in ((), ("--force",)):  # A map can be replaced, too.
        result = succeed("grid", "jura.emgpr", *options, "-o", f"m.{ending}", *force)
        assert result.stdout.startswith("2 outputs on")
    if ending == "tif":
        with rasterio.open("m.tif") as file:
            parts = ("", "_std", "_q0.1", "_q0.9")
            assert file.descriptions == tuple(a + b for a in ("Zn", "Cd") for b in parts)
        return
    found = read_map(f"m.{ending}")
    expected = emgpr.load("jura.emgpr").predict_grid(1.0, quantiles=[0.1, 0.9])
    assert found.attrs["title"] == "Predictions of Zn, Cd"
    kept = [a + b for a in ("Zn", "Cd") for b in ("", "_std", "_quantiles")]
    assert set(found.data_vars) == set(kept)
    xarray.testing.assert_allclose(found, expected[kept])


def test_a_folder_that_is_not_a_map_is_kept(here):
    pytest.importorskip("zarr")
    (here / "data.zarr").mkdir()
    (here / "data.zarr" / "notes").write_text("mine")
    options = ("--spacing", "1", "-o", "data.zarr", "--force")
    assert "is a folder, but not a Zarr store" in refuse(3, "grid", "jura.emgpr", *options)
    assert (here / "data.zarr" / "notes").read_text() == "mine"
