"""Small simulated ATMS granules with the layout of real ones."""

import numpy as np
import pytest

FACTORS = [0.005, 0.0]  # an ATMS count is about 5 mK
NAME = {"TDR": "AntennaTemperature", "SDR": "BrightnessTemperature"}


def describe(file, product, ids, scans, starts):
    """Write attributes as real files have them: 1×1 arrays of bytes and of numbers."""
    for number, name in enumerate(ids):
        node = file.create_dataset(f"Data_Products/{product}/{product}_Gran_{number}", data=0)
        if name is not None:
            node.attrs["N_Granule_ID"] = np.array([[name.encode()]])
        if scans is not None:
            node.attrs["N_Number_Of_Scans"] = np.array([[scans[number]]])
        if starts is not None:
            date, time = starts[number].split()
            node.attrs["Beginning_Date"] = np.array([[date.encode()]])
            node.attrs["Beginning_Time"] = np.array([[time.encode()]])


@pytest.fixture
def write_data(tmp_path):
    """Write temperatures."""
    h5py = pytest.importorskip("h5py")

    def write(name, counts, factors=FACTORS, kind="TDR", ids=(), scans=None, starts=None):
        with h5py.File(tmp_path / name, "a") as file:
            group = file.create_group(f"All_Data/ATMS-{kind}_All")
            group[NAME[kind]] = np.asarray(counts, dtype=">u2")
            group[NAME[kind] + "Factors"] = np.asarray(factors, dtype=">f4")
            file.attrs["Platform_Short_Name"] = np.array([[b"J01"]])
            describe(file, f"ATMS-{kind}", ids, scans, starts)
        return tmp_path / name

    return write


@pytest.fixture
def write_geo(tmp_path):
    """Write geolocation."""
    h5py = pytest.importorskip("h5py")

    def write(name, shape, ids=(), starts=None):
        with h5py.File(tmp_path / name, "a") as file:
            group = file.create_group("All_Data/ATMS-SDR-GEO_All")
            steps = np.arange(np.prod(shape), dtype=">f4").reshape(shape)
            group["Latitude"] = 10 + steps
            group["Longitude"] = -20 - steps
            group["SatelliteZenithAngle"] = 30 + steps
            describe(file, "ATMS-SDR-GEO", ids, None, starts)
        return tmp_path / name

    return write


@pytest.fixture
def counts():
    """Two scans of three fields of view; all counts differ, so that an exchange is noticed."""
    return 40000 + np.arange(2 * 3 * 22).reshape(2, 3, 22)


@pytest.fixture
def geo(write_geo):
    return write_geo("geo.h5", (2, 3))
