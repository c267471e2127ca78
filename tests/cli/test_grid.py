"""`emgpr grid`: maps of a model file."""

import pytest
from numpy.testing import assert_array_equal

import emgpr

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
    assert result.stdout == "1 outputs on 3 × 3 cells: m.nc\n"
    with xarray.open_dataset("m.nc", engine="h5netcdf") as found:
        assert found["Xloc"].attrs["units"] == "km"
        assert_array_equal(found["Xloc"], [2, 2.5, 3])


@pytest.mark.parametrize(
    ("code", "options", "text"),
    [
        (2, ("--spacing", "0"), "expected one or two positive distances"),
        (2, ("--spacing", "1,2,3"), "or two"),
        (2, ("--spacing", "inf"), "has 'inf'; expected a finite number"),
        (3, ("--spacing", "1e-6"), "Check that the spacing"),
        (2, ("--bounds", "1,2"), "west,south,east,north"),
        (2, ("-o", "g.png"), "expected one of .nc"),
        (2, ("--units", "Pb=g"), "--units has 'Pb'"),
        (3, ("--inside", "n"), "no file n"),
    ],
)
def test_options_that_cannot_be_used(here, code, options, text):
    assert text in refuse(code, *GRID, *options)


def test_quantiles_need_netcdf(here):
    pytest.importorskip("rasterio")
    assert "written only to NetCDF" in refuse(2, *GRID, "--quantiles", "0.5", "-o", "g.tif")
