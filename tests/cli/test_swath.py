"""`emgpr swath`: maps of a sounder, and files that cannot be read."""

import numpy as np
import pandas as pd
import pytest

import emgpr.datasets

from .commands import refuse, succeed

xarray = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")
pytest.importorskip("pyproj")
SWATH = ("swath", "t.h5", "g.h5", "-o", "m.nc")


@pytest.mark.parametrize(
    ("code", "options", "text"),
    [
        (2, ("-o", "m.png"), "expected one of .nc"),
        (2, ("-o", "no/m.nc"), "There is no folder no."),
        (2, ("--grid", "0"), "--grid is 0; expected a positive spacing in degrees."),
        (3, ("--channels", "30"), "numbers from 1 to 22"),
        (3, (), "t.h5"),
    ],
)
def test_options_and_files_that_cannot_be_used(here, code, options, text):
    assert text in refuse(code, *SWATH, *options)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_map_has_every_channel_inside_the_swath(here, monkeypatch, rng):
    scan, fov = (part.ravel() for part in np.mgrid[:6, :9])
    lat, lon = 60 + 0.4 * scan, 5 + 0.8 * fov + scan
    table = pd.DataFrame({"scan": scan, "fov": fov, "lat": lat, "lon": lon})
    for name in ("ch01", "ch02"):
        table[name] = 250 + np.sin(table["lat"]) + 0.1 * rng.normal(size=len(table))
    table.attrs = {"platform": "NPP", "kind": "SDR", "start": "2014-11-30T18:17:27Z"}
    monkeypatch.setattr(emgpr.datasets, "read_atms", lambda tdr, geo: table)
    printed = succeed(*SWATH, "--channels", "1-2", "--grid", "0.5", "--places", "40").stdout
    with xarray.open_dataset("m.nc", engine="h5netcdf") as cells:
        assert {"ch01", "ch01_std", "ch02", "ch02_std"} <= set(cells.data_vars)
        n_rows, n_columns = cells["ch01"].shape
        n_inside = int(cells["ch01"].count())
    size = f"{n_rows} × {n_columns} cells, {n_inside} of them in the swath"
    assert printed == f"2 channels on {size}: m.nc\n"
    assert 0 < n_inside < n_rows * n_columns
