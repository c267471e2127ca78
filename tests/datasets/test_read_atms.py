"""The ATMS reader: against an independent decode of a real granule, and on small made-up ones."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.datasets import read_atms

h5py = pytest.importorskip("h5py")

CHANNELS = [f"ch{number:02d}" for number in range(1, 23)]


def test_real_granule_equals_an_independent_decode(granule):
    swath, decoded = read_atms(granule[0], granule[1]), pd.read_csv(granule[2])
    assert list(swath) == list(decoded)
    assert_array_equal(swath[["scan", "fov"]], decoded[["scan", "fov"]])
    assert_allclose(swath, decoded, rtol=0, atol=5.01e-6)  # printed to five decimals


def test_real_granule_says_what_it_is(granule):
    swath = read_atms(*granule[:2])
    assert swath.shape == (12 * 96, 27)
    assert not swath.isna().any(axis=None)
    assert swath.attrs["platform"] == "NPP"
    assert swath.attrs["kind"] == "TDR"
    assert swath.attrs["start"] == "2014-11-30T18:17:27.351401Z"
    assert swath.attrs["units"]["lat"] == "degrees"
    assert swath.attrs["units"]["ch22"] == "K"


def test_rows_go_scan_after_scan_and_columns_by_channel(write_data, counts, geo):
    swath = read_atms(str(write_data("tdr.h5", counts)), geo)
    assert list(swath) == ["scan", "fov", "lat", "lon", "satzen", *CHANNELS]
    assert swath["scan"].tolist() == [1, 1, 1, 2, 2, 2]
    assert swath["fov"].tolist() == [1, 2, 3, 1, 2, 3]
    assert swath["lat"].tolist() == [10, 11, 12, 13, 14, 15]
    assert swath["lon"].tolist() == [-20, -21, -22, -23, -24, -25]
    assert swath["satzen"].tolist() == [30, 31, 32, 33, 34, 35]
    assert_allclose(swath["ch01"], 200 + 0.11 * np.arange(6), atol=1e-4)
    assert_allclose(swath.loc[0, CHANNELS].to_numpy(), 200 + 0.005 * np.arange(22), atol=1e-4)


def test_kelvin_is_count_times_scale_plus_offset(write_data, counts, geo):
    swath = read_atms(write_data("tdr.h5", counts, factors=[0.25, -9000.5]), geo)
    assert_array_equal(swath[CHANNELS], 0.25 * counts.reshape(6, 22) - 9000.5)


def test_sdr_is_read_as_brightness_temperature(write_data, counts, geo):
    swath = read_atms(write_data("sdr.h5", counts, kind="SDR"), geo)
    assert swath.attrs["kind"] == "SDR"
    assert swath.attrs["platform"] == "J01"
    assert_allclose(swath["ch01"].iloc[0], 200, atol=1e-4)


def test_one_file_with_both_is_given_twice(write_data, write_geo, counts):
    both = write_geo(write_data("both.h5", counts).name, (2, 3))
    assert read_atms(both, both).shape == (6, 27)


@pytest.mark.parametrize("fill", range(65528, 65536))
def test_count_fills_are_nan_and_only_these(write_data, counts, geo, fill):
    counts[1, 0, 4] = fill
    counts[1, 0, 5] = 65527
    swath = read_atms(write_data("tdr.h5", counts), geo)
    assert np.argwhere(np.isnan(swath[CHANNELS].to_numpy())).tolist() == [[3, 4]]
    assert_allclose(swath.loc[3, "ch06"], 327.635, atol=1e-4)


@pytest.mark.parametrize("tenths", range(2, 10))
@pytest.mark.parametrize("name", ["Latitude", "Longitude", "SatelliteZenithAngle"])
def test_position_fills_are_nan_and_only_these(write_data, counts, geo, name, tenths):
    with h5py.File(geo, "a") as file:
        file[f"All_Data/ATMS-SDR-GEO_All/{name}"][1, 2] = -999 - tenths / 10
    swath = read_atms(write_data("tdr.h5", counts), geo)
    column = {"Latitude": "lat", "Longitude": "lon", "SatelliteZenithAngle": "satzen"}[name]
    assert swath.isna().sum().sum() == 1
    assert np.isnan(swath.loc[5, column])


def test_each_granule_of_a_file_has_its_own_factors(write_data, write_geo):
    counts = np.full((4, 3, 22), 40000)
    tdr = write_data("tdr.h5", counts, factors=[0.005, 0.0, 0.0025, 50.0])
    swath = read_atms(tdr, write_geo("geo.h5", (4, 3)))
    assert_allclose(swath.groupby("scan")["ch10"].first(), [200, 200, 150, 150], atol=1e-4)


def test_granules_may_differ_in_length(write_data, write_geo):
    tdr = write_data(
        "tdr.h5",
        np.full((4, 3, 22), 40000),
        factors=[0.005, 0.0, 0.0025, 50.0],
        ids=["A", "B"],
        scans=[1, 3],
    )
    swath = read_atms(tdr, write_geo("geo.h5", (4, 3)))
    assert_allclose(swath.groupby("scan")["ch10"].first(), [200, 150, 150, 150], atol=1e-4)


def test_a_missing_granule_is_nan(write_data, write_geo):
    """Its factors are fills as well as its counts, and its date is that of the clock's epoch."""
    tdr = write_data(
        "tdr.h5",
        np.full((4, 3, 22), 40000),
        factors=[-999.8, -999.8, 0.005, 0.0],
        ids=["N/A", "B"],
        starts=["19580101 000000.000000Z", "20141130 181759.350000Z"],
    )
    swath = read_atms(tdr, write_geo("geo.h5", (4, 3), ids=["A", "B"]))
    assert swath.loc[swath["scan"] <= 2, CHANNELS].isna().all(axis=None)
    assert_allclose(swath.loc[swath["scan"] > 2, CHANNELS], 200, atol=1e-4)
    assert swath.attrs["start"] == "2014-11-30T18:17:59.350000Z"


def test_more_than_ten_granules_stay_in_order(write_data, write_geo):
    ids = [f"NPP{number}" for number in range(12)]
    factors = np.column_stack([np.zeros(12), np.arange(12)]).ravel()
    counts = np.zeros((12, 1, 22))
    tdr = write_data("tdr.h5", counts, factors, ids=ids, scans=[1] * 12)
    swath = read_atms(tdr, write_geo("geo.h5", (12, 1), ids=ids))
    assert swath["ch01"].tolist() == list(range(12))
    other = write_geo("other.h5", (12, 1), ids=[*ids[:11], "NPP12"])
    with pytest.raises(ValueError, match=r"Granule 11 .* is NPP11, .* is NPP12"):
        read_atms(tdr, other)


def test_start_is_none_where_the_file_does_not_say(write_data, counts, geo):
    assert read_atms(write_data("tdr.h5", counts), geo).attrs["start"] is None
