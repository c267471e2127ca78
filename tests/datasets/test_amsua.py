"""The embedded AMSU-A swath against known facts."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from emgpr.datasets import load_amsua

CHANNELS = tuple(f"ch{number:02d}" for number in range(1, 16) if number != 7)


@pytest.fixture(scope="module")
def swath():
    return load_amsua()


def test_630_sites_and_14_channels_without_the_failed_one(swath):
    assert swath.channels == tuple(swath.Y) == CHANNELS
    assert swath.Y.shape == (630, 14)
    assert swath.X.shape == (630, 2)
    assert list(swath.X) == ["lat", "lon"]
    assert not swath.frame.isna().any(axis=None)
    assert not swath.X.duplicated().any()


def test_rows_are_21_scans_of_30_fields_of_view(swath):
    assert swath.frame["scan"].tolist() == np.repeat(np.arange(1, 22), 30).tolist()
    assert swath.frame["fov"].tolist() == np.tile(np.arange(1, 31), 21).tolist()
    # The scan is symmetric about nadir, where the view is straight down.
    satzen = swath.frame["satzen"].to_numpy().reshape(21, 30)
    assert_allclose(satzen, satzen[:, ::-1], atol=0.2)
    assert set(satzen.argmin(axis=1)) <= {14, 15}
    assert satzen.min() < 2
    assert satzen.max() == 57.51


def test_the_frame_contains_inputs_and_outputs(swath):
    pd.testing.assert_frame_equal(swath.frame[["lat", "lon"]], swath.X)
    pd.testing.assert_frame_equal(swath.frame[list(CHANNELS)], swath.Y)


def test_first_and_last_rows(swath):
    assert swath.X.iloc[[0, -1]].to_numpy().tolist() == [[-9.8094, -51.1199], [3.8626, -35.2538]]
    assert swath.Y.loc[0, ["ch01", "ch06", "ch08", "ch15"]].tolist() == [
        *(278.32, 226.89, 207.62, 255.83)
    ]
    assert swath.Y.loc[629, "ch15"] == 267.15


def test_a_scan_takes_eight_seconds(swath):
    start = swath.frame.groupby("scan")["time"].first()
    assert start.iloc[0] == pd.Timestamp("2012-11-02 00:22:59.107")
    assert start.iloc[-1] == pd.Timestamp("2012-11-02 00:25:39.111")
    assert_allclose(start.diff().dropna().dt.total_seconds(), 8.0, atol=0.01)


def test_temperatures_are_kelvin(swath):
    assert {swath.units[channel] for channel in CHANNELS} == {"K"}
    assert swath.units["lat"] == swath.units["lon"] == swath.units["satzen"] == "degrees"
    assert swath.Y.min(axis=None) > 130
    assert swath.Y.max(axis=None) < 295
    # Channel 9 peaks at the cold tropical tropopause, 14 high in the warmer stratosphere.
    assert_allclose(swath.Y[["ch09", "ch14"]].mean(), [203.56, 254.56], atol=5e-3)


def test_description_names_the_source(swath):
    assert "pybufrkit" in swath.DESCR
    assert "Jura" not in swath.DESCR
