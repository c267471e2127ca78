"""The ATMS reader: an independent decode of a real granule, simulated granules, and errors."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.datasets import read_atms

h5py = pytest.importorskip("h5py")

CHANNELS = [f"ch{number:02d}" for number in range(1, 23)]


def test_a_real_granule_equals_an_independent_decode(granule):
    swath, decoded = read_atms(granule[0], granule[1]), pd.read_csv(granule[2])
    assert list(swath) == list(decoded)
    assert_array_equal(swath[["scan", "fov"]], decoded[["scan", "fov"]])
    assert_allclose(swath, decoded, rtol=0, atol=5.01e-6)  # printed to five decimals
    assert swath.shape == (12 * 96, 27)
    assert swath.attrs["platform"] == "NPP"
    assert swath.attrs["kind"] == "TDR"
    assert swath.attrs["start"] == "2014-11-30T18:17:27.351401Z"
    assert swath.attrs["units"]["lat"] == "degrees"
    assert swath.attrs["units"]["ch22"] == "K"


def test_rows_are_ordered_by_scan_and_columns_by_channel(write_data, counts, geo):
    swath = read_atms(str(write_data("tdr.h5", counts)), geo)
    assert list(swath) == ["scan", "fov", "lat", "lon", "satzen", *CHANNELS]
    assert swath["scan"].tolist() == [1, 1, 1, 2, 2, 2]
    assert swath["fov"].tolist() == [1, 2, 3, 1, 2, 3]
    assert swath["lat"].tolist() == [10, 11, 12, 13, 14, 15]
    assert swath["lon"].tolist() == [-20, -21, -22, -23, -24, -25]
    assert swath["satzen"].tolist() == [30, 31, 32, 33, 34, 35]
    assert_allclose(swath["ch01"], 200 + 0.11 * np.arange(6), atol=1e-4)
    assert_allclose(swath.loc[0, CHANNELS].to_numpy(), 200 + 0.005 * np.arange(22), atol=1e-4)
    assert swath.attrs["start"] is None


def test_temperature_is_count_times_scale_plus_offset(write_data, counts, geo):
    swath = read_atms(write_data("tdr.h5", counts, factors=[0.25, -9000.5]), geo)
    assert_array_equal(swath[CHANNELS], 0.25 * counts.reshape(6, 22) - 9000.5)


def test_sdr_files_contain_brightness_temperatures(write_data, counts, geo):
    swath = read_atms(write_data("sdr.h5", counts, kind="SDR"), geo)
    assert swath.attrs["kind"] == "SDR"
    assert swath.attrs["platform"] == "J01"
    assert_allclose(swath["ch01"].iloc[0], 200, atol=1e-4)


def test_a_file_with_both_is_passed_twice(write_data, write_geo, counts):
    both = write_geo(write_data("both.h5", counts).name, (2, 3))
    assert read_atms(both, both).shape == (6, 27)


def test_fills_of_counts_and_only_these_are_nan(write_data, counts, geo):
    counts[1, 0, 4:12] = range(65528, 65536)
    counts[1, 0, 12] = 65527
    swath = read_atms(write_data("tdr.h5", counts), geo)
    assert np.argwhere(np.isnan(swath[CHANNELS].to_numpy())).tolist() == [
        [3, channel] for channel in range(4, 12)
    ]
    assert_allclose(swath.loc[3, "ch13"], 327.635, atol=1e-4)


@pytest.mark.parametrize("fill", [-999.2, -999.9])
@pytest.mark.parametrize("column", ["Latitude", "Longitude", "SatelliteZenithAngle"])
def test_fills_of_locations_and_only_these_are_nan(write_data, counts, geo, column, fill):
    with h5py.File(geo, "a") as file:
        file[f"All_Data/ATMS-SDR-GEO_All/{column}"][1, 2] = fill
    swath = read_atms(write_data("tdr.h5", counts), geo)
    name = {"Latitude": "lat", "Longitude": "lon", "SatelliteZenithAngle": "satzen"}[column]
    assert swath.isna().sum().sum() == 1
    assert np.isnan(swath.loc[5, name])


@pytest.mark.parametrize(
    ("scans", "expected"), [(None, [200, 200, 150, 150]), ([1, 3], [200, 150, 150, 150])]
)
def test_each_granule_has_its_own_factors_and_length(write_data, write_geo, scans, expected):
    ids = () if scans is None else ["A", "B"]
    counts, factors = np.full((4, 3, 22), 40000), [0.005, 0.0, 0.0025, 50.0]
    tdr = write_data("tdr.h5", counts, factors=factors, ids=ids, scans=scans)
    swath = read_atms(tdr, write_geo("geo.h5", (4, 3)))
    assert_allclose(swath.groupby("scan")["ch10"].first(), expected, atol=1e-4)


def test_a_missing_granule_is_nan(write_data, write_geo):
    """Its factors are fills, and its date is the epoch of the clock on board."""
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
    with pytest.raises(ValueError, match=r"Granule 11 is NPP11 .* but NPP12"):
        read_atms(tdr, other)


def test_geolocation_of_another_time_is_rejected_if_there_is_no_id(write_data, write_geo, counts):
    start, later = "20141130 181727.351401Z", "20141130 181759.351401Z"
    tdr = write_data("tdr.h5", counts, ids=[None], starts=[start])
    same = write_geo("same.h5", (2, 3), ids=["NPP1"], starts=[start])
    assert len(read_atms(tdr, same)) == 6
    other = write_geo("other.h5", (2, 3), ids=["NPP1"], starts=[later])
    with pytest.raises(ValueError, match=r"is 2014-11-30 18:17:27.*but 2014-11-30 18:17:59"):
        read_atms(tdr, other)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (6, 1)])
def test_geolocation_of_another_shape_is_rejected(write_data, write_geo, counts, shape):
    tdr, geo = write_data("tdr.h5", counts), write_geo("g.h5", shape)
    with pytest.raises(ValueError, match=rf"shape \({shape[0]}, {shape[1]}\).*have \(2, 3\)"):
        read_atms(tdr, geo)


def test_the_wrong_file_is_rejected(write_data, tmp_path, counts, geo):
    tdr = write_data("tdr.h5", counts)
    with pytest.raises(ValueError, match=r"geolocation, not temperatures.*Pass the temperatures"):
        read_atms(geo, tdr)
    with pytest.raises(ValueError, match=r"geo_file: .*not an ATMS geolocation file. Pass"):
        read_atms(tdr, tdr)
    h5py.File(tmp_path / "other.h5", "w").close()
    with pytest.raises(ValueError, match=r"ATMS-TDR_All nor All_Data/ATMS-SDR_All.*Pass a TATMS"):
        read_atms(tmp_path / "other.h5", geo)


@pytest.mark.parametrize("argument", ["tdr_file", "geo_file"])
def test_a_missing_file_is_named_with_its_argument(write_data, tmp_path, counts, geo, argument):
    files = {"tdr_file": write_data("tdr.h5", counts), "geo_file": geo}
    files[argument] = tmp_path / "nowhere.h5"
    with pytest.raises(FileNotFoundError, match=rf"{argument}: there is no file .*nowhere\.h5"):
        read_atms(**files)


@pytest.mark.parametrize("keep", [0, 100])
def test_a_file_that_is_not_hdf5_or_is_truncated_is_rejected(write_data, counts, geo, keep):
    tdr = write_data("tdr.h5", counts)
    tdr.write_bytes(tdr.read_bytes()[:keep] or b"<html>not found</html>")
    with pytest.raises(OSError, match=r"tdr_file: .*cannot be read as HDF5.*download may be"):
        read_atms(tdr, geo)


@pytest.mark.parametrize(
    "name",
    [
        "All_Data/ATMS-TDR_All/AntennaTemperature",
        "All_Data/ATMS-TDR_All/AntennaTemperatureFactors",
        "All_Data/ATMS-SDR-GEO_All/Latitude",
    ],
)
def test_a_missing_array_is_named(write_data, counts, geo, name):
    tdr = write_data("tdr.h5", counts)
    with h5py.File(geo if "GEO" in name else tdr, "a") as file:
        del file[name]
    with pytest.raises(ValueError, match=rf"lacks {name},"):
        read_atms(tdr, geo)


def test_counts_of_another_shape_or_type_are_rejected(write_data, counts, geo):
    with pytest.raises(ValueError, match=r"shape \(2, 3, 20\); expected .*fields of view, 22\)"):
        read_atms(write_data("short.h5", counts[..., :20]), geo)
    tdr = write_data("tdr.h5", counts)
    with h5py.File(tdr, "a") as file:
        group = file["All_Data/ATMS-TDR_All"]
        del group["AntennaTemperature"]
        group["AntennaTemperature"] = counts.astype("f4")
    with pytest.raises(ValueError, match=r"is float32 .*expected unsigned 16-bit counts"):
        read_atms(tdr, geo)


@pytest.mark.parametrize("factors", [[], [0.005], [0.005, 0.0] * 3])
def test_factors_that_do_not_fit_the_scans_are_rejected(write_data, counts, geo, factors):
    tdr = write_data("tdr.h5", counts, factors=factors)
    with pytest.raises(ValueError, match=rf"has {len(factors)} numbers for 2 scans; expected"):
        read_atms(tdr, geo)


def test_without_h5py_the_error_names_the_extra(write_data, counts, geo, monkeypatch):
    tdr = write_data("tdr.h5", counts)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"needs h5py, .*pip install 'emgpr\[geo\]'"):
        read_atms(tdr, geo)
