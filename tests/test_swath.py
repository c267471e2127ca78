"""Maps of swaths: simulated ones across the date line, and a real granule."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from emgpr.cli import app
from emgpr.swath import channel_names, footprint, grid_swath
from tests.cf_checker import cf_errors

pytestmark = pytest.mark.slow

xarray = pytest.importorskip("xarray")
pytest.importorskip("pyproj")


@pytest.fixture(scope="module")
def swath():
    """Eight scans of twelve fields of view across the date line; two correlated channels."""
    rng = np.random.default_rng(0)
    scan, fov = (part.ravel() for part in np.mgrid[:8, :12])
    lon, lat = 175 + 0.8 * fov + 0.05 * scan, 60 + 0.4 * scan
    signal = 250 + 5 * np.sin(lat) + 3 * np.cos(lon)
    table = pd.DataFrame({"scan": scan, "fov": fov, "lat": lat, "lon": (lon + 180) % 360 - 180})
    for number, sign in ((1, 1), (2, -1)):
        table[f"ch{number:02d}"] = sign * signal + 0.1 * rng.normal(size=len(lon))
    table.loc[3, "ch02"] = np.nan
    table.attrs = {"platform": "NPP", "kind": "SDR", "start": "2014-11-30T18:17:27Z"}
    return table


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_swath_across_the_date_line_is_mapped(swath):
    made = grid_swath(swath, ["ch01", "ch02"], 0.5).map
    assert made["lon"].values.min() == 175
    assert made["lon"].values.max() == 184.5
    at = made["ch01"].sel(lon=180.0, lat=61.5)
    assert abs(at - (250 + 5 * np.sin(61.5) + 3 * np.cos(180.0))) < 1
    assert made["ch01"].dtype == np.float32
    assert 0 < made["ch01_std"].min() < made["ch01_std"].max() < 5
    assert made["ch02"].attrs["standard_name"] == "toa_brightness_temperature"
    assert made["ch02_std"].attrs["standard_name"] == "toa_brightness_temperature standard_error"
    assert made.attrs["platform"] == "NPP"
    assert made.attrs["time_coverage_start"] == "2014-11-30T18:17:27Z"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_model_of_many_sites_is_fitted_to_a_sample(swath):
    made = grid_swath(swath, ["ch01"], 1.0, most=50)
    assert "from 50 of 96 fields of view" in made.map.attrs["comment"]
    assert made.model.posterior_.n_sites == 50


def test_the_footprint_has_no_holes_and_ends_with_the_swath(swath):
    inside = footprint(swath)
    lon, lat = (part.ravel() for part in np.meshgrid(np.linspace(176, 183, 40), [60.5, 61, 62]))
    assert inside(lon, lat).all()
    assert not inside(np.array([170.0, 190.0]), np.array([61.0, 61.0])).any()


@pytest.mark.parametrize("channels", ["", "0", "5-3", "1-23", "a", "1,,2"])
def test_unknown_channels_are_rejected(channels):
    with pytest.raises(ValueError, match="numbers from 1 to 22 or ranges"):
        channel_names(channels)


def test_a_swath_without_readings_or_channels_is_rejected(swath):
    with pytest.raises(ValueError, match="has 0 fields of view with a reading"):
        grid_swath(swath.assign(ch01=np.nan), ["ch01"], 1.0)
    with pytest.raises(ValueError, match=r"no channels \['ch03'\]"):
        grid_swath(swath, ["ch01", "ch03"], 1.0)


def test_errors_of_the_command(tmp_path):
    run = CliRunner().invoke
    files = [str(tmp_path / "t.h5"), str(tmp_path / "g.h5")]
    assert "ending" in run(app, ["swath", *files, "-o", str(tmp_path / "m.png")]).stderr
    assert "no folder" in run(app, ["swath", *files, "-o", str(tmp_path / "no" / "m.nc")]).stderr
    result = run(app, ["swath", *files, "-o", str(tmp_path / "m.nc"), "--channels", "30"])
    assert result.exit_code == 3
    assert "numbers from 1 to 22" in result.stderr
    assert run(app, ["swath", *files, "-o", str(tmp_path / "m.nc")]).exit_code == 3
    assert run(app, ["swath", *files, "-o", str(tmp_path / "m.nc"), "--grid", "0"]).exit_code == 2


def test_a_real_granule_is_mapped_by_the_command(granule, tmp_path):
    out = tmp_path / "atms.nc"
    files = [str(file) for file in granule[:2]]
    options = ["--channels", "4-6", "--grid", "0.5", "--places", "500"]
    result = CliRunner().invoke(app, ["swath", *files, *options, "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert "3 channels on" in result.stdout
    with xarray.open_dataset(out, engine="h5netcdf") as made:
        assert len([name for name in made.data_vars if name.endswith("_std")]) == 3
        decoded = pd.read_csv(granule[2])
        near = made.sel(
            lon=xarray.DataArray(decoded["lon"]), lat=xarray.DataArray(decoded["lat"]),
            method="nearest",
        )["ch05"]  # fmt: skip
        # A cell is within 20 km of a field of view, over which channel 5 varies little.
        assert np.nanmedian(np.abs(near.values - decoded["ch05"])) < 0.4
    pytest.importorskip("compliance_checker")
    assert not cf_errors(out)
