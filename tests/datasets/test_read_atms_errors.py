"""The ATMS reader's errors: what was expected, what came, what to do."""

import subprocess
import sys

import pytest

from emgpr.datasets import read_atms

h5py = pytest.importorskip("h5py")


def test_files_swapped(write_data, counts, geo):
    with pytest.raises(ValueError, match=r"holds geolocation, not temperatures.*swap the two"):
        read_atms(geo, write_data("tdr.h5", counts))


def test_geolocation_of_another_granule(write_data, write_geo, counts):
    tdr = write_data("tdr.h5", counts, ids=["NPP1"])
    with pytest.raises(ValueError, match="is NPP1, but that of the geolocation is NPP2"):
        read_atms(tdr, write_geo("geo.h5", (2, 3), ids=["NPP2"]))


def test_geolocation_of_another_time_where_there_is_no_id(write_data, write_geo, counts):
    start, later = "20141130 181727.351401Z", "20141130 181759.351401Z"
    tdr = write_data("tdr.h5", counts, ids=[None], starts=[start])
    same = write_geo("same.h5", (2, 3), ids=["NPP1"], starts=[start])
    assert len(read_atms(tdr, same)) == 6
    other = write_geo("other.h5", (2, 3), ids=["NPP1"], starts=[later])
    with pytest.raises(ValueError, match=r"is 2014-11-30 18:17:27.*is 2014-11-30 18:17:59"):
        read_atms(tdr, other)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (6, 1)])
def test_geolocation_of_another_shape(write_data, write_geo, counts, shape):
    tdr, geo = write_data("tdr.h5", counts), write_geo("g.h5", shape)
    with pytest.raises(ValueError, match=rf"shape \({shape[0]}, {shape[1]}\).*have \(2, 3\)"):
        read_atms(tdr, geo)


def test_temperatures_given_for_geolocation(write_data, counts):
    tdr = write_data("tdr.h5", counts)
    with pytest.raises(ValueError, match=r"geo_file: .*no ATMS geolocation. Give the GATMO"):
        read_atms(tdr, tdr)


def test_hdf5_of_something_else(tmp_path, geo):
    h5py.File(tmp_path / "other.h5", "w").close()
    with pytest.raises(ValueError, match=r"ATMS-TDR_All nor All_Data/ATMS-SDR_All.*Give a TATMS"):
        read_atms(tmp_path / "other.h5", geo)


@pytest.mark.parametrize("argument", ["tdr_file", "geo_file"])
def test_file_that_is_not_there(write_data, tmp_path, counts, geo, argument):
    files = {"tdr_file": write_data("tdr.h5", counts), "geo_file": geo}
    files[argument] = tmp_path / "nowhere.h5"
    with pytest.raises(FileNotFoundError, match=rf"{argument}: there is no file .*nowhere\.h5"):
        read_atms(**files)


@pytest.mark.parametrize("keep", [0, 100])
def test_file_that_is_not_hdf5_or_cut_short(write_data, counts, geo, keep):
    tdr = write_data("tdr.h5", counts)
    tdr.write_bytes(tdr.read_bytes()[:keep] or b"<html>not found</html>")
    with pytest.raises(OSError, match=r"tdr_file: .*cannot be read as HDF5.*fetch it again"):
        read_atms(tdr, geo)


@pytest.mark.parametrize("name", ["AntennaTemperature", "AntennaTemperatureFactors"])
def test_missing_temperatures(write_data, counts, geo, name):
    tdr = write_data("tdr.h5", counts)
    with h5py.File(tdr, "a") as file:
        del file[f"All_Data/ATMS-TDR_All/{name}"]
    with pytest.raises(ValueError, match=rf"has no All_Data/ATMS-TDR_All/{name},"):
        read_atms(tdr, geo)


@pytest.mark.parametrize("name", ["Latitude", "Longitude", "SatelliteZenithAngle"])
def test_missing_positions(write_data, counts, geo, name):
    with h5py.File(geo, "a") as file:
        del file[f"All_Data/ATMS-SDR-GEO_All/{name}"]
    with pytest.raises(ValueError, match=rf"has no All_Data/ATMS-SDR-GEO_All/{name},"):
        read_atms(write_data("tdr.h5", counts), geo)


def test_counts_of_another_shape(write_data, counts, geo):
    tdr = write_data("tdr.h5", counts[..., :20])
    with pytest.raises(ValueError, match=r"shape \(2, 3, 20\); expected .*fields of view, 22\)"):
        read_atms(tdr, geo)


def test_counts_of_another_type(write_data, counts, geo):
    tdr = write_data("tdr.h5", counts)
    with h5py.File(tdr, "a") as file:
        group = file["All_Data/ATMS-TDR_All"]
        del group["AntennaTemperature"]
        group["AntennaTemperature"] = counts.astype("f4")
    with pytest.raises(ValueError, match=r"is float32 .*expected unsigned 16-bit counts"):
        read_atms(tdr, geo)


@pytest.mark.parametrize("factors", [[], [0.005], [0.005, 0.0, 0.005], [0.005, 0.0] * 3])
def test_factors_that_do_not_fit_the_scans(write_data, counts, geo, factors):
    tdr = write_data("tdr.h5", counts, factors=factors)
    with pytest.raises(ValueError, match=rf"holds {len(factors)} numbers.*not fit 2 scans"):
        read_atms(tdr, geo)


def test_without_h5py_the_error_names_the_extra(write_data, counts, geo, monkeypatch):
    tdr = write_data("tdr.h5", counts)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"pip install 'emgpr\[geo\]'"):
        read_atms(tdr, geo)


def test_importing_the_datasets_does_not_import_h5py():
    code = "import sys, emgpr.datasets; sys.exit('h5py' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
