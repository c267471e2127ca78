"""Reading of ATMS granules: temperatures and their geolocation from two HDF5 files.

The layout of the files is specified in the JPSS Common Data Format Control Book, volume III.
Temperatures are stored as unsigned 16-bit counts, with a scale and an offset for each granule. A
file can contain several consecutive granules.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Float64
from numpy.typing import NDArray

from emgpr.optional_imports import import_optional

if TYPE_CHECKING:
    import h5py

TEMPERATURES = {"TDR": "AntennaTemperature", "SDR": "BrightnessTemperature"}
GEOLOCATION = "ATMS-SDR-GEO"  # also for TDR files, since there is no ATMS-TDR-GEO
LOCATION_COLUMNS = {"lat": "Latitude", "lon": "Longitude", "satzen": "SatelliteZenithAngle"}
CHANNELS = [f"ch{number:02d}" for number in range(1, 23)]

# Fill values depend on the reason for a missing value: 65528 to 65535, and -999.9 to -999.2.
MIN_COUNT_FILL = 65528
FLOAT_FILL_RANGE = (-1000.0, -999.0)
CLOCK_EPOCH_YEAR = 1958  # epoch of the on-board clock; missing granules have this date


@dataclass(frozen=True)
class Granule:
    """The metadata of a granule; attributes that the file lacks are None."""

    id: str | None
    start: datetime | None
    n_scans: int | None


def read_atms(tdr_file: str | os.PathLike[str], geo_file: str | os.PathLike[str]) -> pd.DataFrame:
    """Read temperatures of the ATMS sounder with their geolocation.

    `tdr_file` is a TDR file (TATMS…, antenna temperatures) or an SDR file (SATMS…, brightness
    temperatures), and `geo_file` is its geolocation file (GATMO…). If one file contains both, pass
    it twice.

    Returns a data frame with one row for each field of view, scan by scan. Its columns are scan and
    fov (both counted from 1), lat, lon and satzen (satellite zenith angle), all in degrees, and
    ch01 to ch22 (K). Missing values are NaN. Its `attrs` are platform, kind ("TDR" or "SDR"),
    units, and start (UTC, ISO 8601, or None if unknown). This function needs h5py
    (pip install 'emgpr[geo]').

    >>> swath = read_atms("TATMS_npp_d20141130.h5", "GATMO_npp_d20141130.h5")  # doctest: +SKIP
    >>> swath.loc[0, ["lat", "lon", "ch01"]].round(2).tolist()  # doctest: +SKIP
    [59.5, 149.44, 193.41]
    """
    with _open(tdr_file, "tdr_file") as data, _open(geo_file, "geo_file") as geo:
        kind = _temperature_kind(data)
        granules = _read_granules(data, f"ATMS-{kind}")
        kelvin = _read_temperatures(data, kind, granules)
        n_scans, n_fovs, _ = kelvin.shape
        locations = _read_locations(geo, (n_scans, n_fovs))
        _check_same_granules(granules, _read_granules(geo, GEOLOCATION))
        platform = _text_attribute(data, "Platform_Short_Name")

    channels = dict(zip(CHANNELS, kelvin.reshape(-1, len(CHANNELS)).T, strict=True))
    scan = np.repeat(np.arange(1, n_scans + 1), n_fovs)
    fov = np.tile(np.arange(1, n_fovs + 1), n_scans)
    frame = pd.DataFrame({"scan": scan, "fov": fov, **locations, **channels})
    start = next((granule.start for granule in granules if granule.start), None)
    frame.attrs = {
        "platform": platform,
        "kind": kind,
        "units": dict.fromkeys(LOCATION_COLUMNS, "degrees") | dict.fromkeys(CHANNELS, "K"),
        "start": start and start.isoformat() + "Z",
    }
    return frame


@contextmanager
def _open(name: str | os.PathLike[str], argument: str) -> Iterator[h5py.File]:
    """Open an HDF5 file; `argument` is the parameter name to mention in error messages."""
    h5py = import_optional("h5py", "Reading ATMS granules")
    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"{argument}: there is no file {path}. Check the path.")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise OSError(
            f"{argument}: {path} cannot be read as HDF5 ({error}). Pass an ATMS granule, an HDF5 "
            "file ending in .h5. If it is one, the download may be incomplete; repeat it."
        ) from error
    with file:
        yield file


def _temperature_kind(data: h5py.File) -> str:
    for kind in TEMPERATURES:
        if f"All_Data/ATMS-{kind}_All" in data:
            return kind
    if f"All_Data/{GEOLOCATION}_All" in data:
        raise ValueError(
            f"tdr_file: {data.filename} contains geolocation, not temperatures. Pass the "
            "temperatures (TATMS… or SATMS…) first, then the geolocation (GATMO…)."
        )
    raise ValueError(
        f"tdr_file: {data.filename} contains neither All_Data/ATMS-TDR_All nor "
        "All_Data/ATMS-SDR_All, so it is not an ATMS granule. Pass a TATMS… or SATMS… file."
    )


def _read_array(file: h5py.File, path: str) -> NDArray[Any]:
    if path not in file:
        raise ValueError(
            f"{file.filename} lacks {path}, which every ATMS file of its kind contains. The file "
            "is damaged or incomplete; download it again."
        )
    return np.asarray(file[path][()])


def _read_temperatures(
    data: h5py.File, kind: str, granules: list[Granule]
) -> Float64[np.ndarray, "S F 22"]:
    """Return temperatures (K) for each scan, field of view and channel, with NaN if missing."""
    path = f"All_Data/ATMS-{kind}_All/{TEMPERATURES[kind]}"
    counts = _read_array(data, path)
    if (
        counts.ndim != 3
        or counts.shape[2] != len(CHANNELS)
        or counts.dtype.newbyteorder("=") != "u2"
    ):
        raise ValueError(
            f"{data.filename}: {path} is {counts.dtype} of shape {counts.shape}; expected "
            f"unsigned 16-bit counts of shape (scans, fields of view, {len(CHANNELS)})."
        )
    # Each granule has a scale and an offset, which are fill values if the granule is missing.
    factors = _fills_to_nan(_read_array(data, path + "Factors")).ravel()
    n_granules, odd = divmod(factors.size, 2)
    n_scans = _scans_per_granule(len(counts), n_granules, granules)
    if odd or n_scans is None:
        raise ValueError(
            f"{data.filename}: {path}Factors has {factors.size} numbers for {len(counts)} scans; "
            "expected a scale and an offset for each granule. The file is damaged or incomplete; "
            "download it again."
        )
    by_scan = np.repeat(factors.reshape(-1, 2), n_scans, axis=0)
    scale, offset = by_scan.T[:, :, None, None]
    return np.where(counts < MIN_COUNT_FILL, scale * counts + offset, np.nan)


def _scans_per_granule(n_scans: int, n_granules: int, granules: list[Granule]) -> list[int] | None:
    """Return the number of scans in each granule, or None if it cannot be determined.

    If the numbers in the metadata do not add up to `n_scans`, equal numbers are assumed.
    """
    described = [granule.n_scans or 0 for granule in granules]
    if len(described) == n_granules and sum(described) == n_scans and min(described, default=0) > 0:
        return described
    if n_granules == 0 or n_scans % n_granules:
        return None
    return [n_scans // n_granules] * n_granules


def _read_locations(
    geo: h5py.File, shape: tuple[int, int]
) -> dict[str, Float64[np.ndarray, " SF"]]:
    """Return latitude, longitude and zenith angle for all fields of view, scan by scan."""
    group = f"All_Data/{GEOLOCATION}_All"
    if group not in geo:
        raise ValueError(
            f"geo_file: {geo.filename} lacks {group}, so it is not an ATMS geolocation file. Pass "
            "the GATMO… file that belongs to the temperatures."
        )
    locations = {}
    for column, name in LOCATION_COLUMNS.items():
        values = _fills_to_nan(_read_array(geo, f"{group}/{name}"))
        if values.shape != shape:
            raise ValueError(
                f"{geo.filename}: {name} has shape {values.shape}, but the temperatures have "
                f"{shape} (scans, fields of view). Pass the GATMO… file of the same granules."
            )
        locations[column] = values.ravel()
    return locations


def _fills_to_nan(values: NDArray[Any]) -> NDArray[np.float64]:
    low, high = FLOAT_FILL_RANGE
    return np.where((values > low) & (values < high), np.nan, values.astype(np.float64))


def _read_granules(file: h5py.File, product: str) -> list[Granule]:
    products = file.get(f"Data_Products/{product}", {})
    granules: list[Granule] = []
    while (node := products.get(f"{product}_Gran_{len(granules)}")) is not None:
        n_scans = node.attrs.get("N_Number_Of_Scans")
        granules.append(
            Granule(
                id=_text_attribute(node, "N_Granule_ID"),
                start=_parse_time(
                    _text_attribute(node, "Beginning_Date"), _text_attribute(node, "Beginning_Time")
                ),
                n_scans=None if n_scans is None else int(np.ravel(n_scans)[0]),
            )
        )
    return granules


def _check_same_granules(data: list[Granule], geo: list[Granule]) -> None:
    for number, (expected, given) in enumerate(zip(data, geo, strict=False)):
        # The ID is derived from the start time, which is compared only if an ID is missing.
        by_id = expected.id is not None and given.id is not None
        first, second = (expected.id, given.id) if by_id else (expected.start, given.start)
        if first is not None and second is not None and first != second:
            raise ValueError(
                f"Granule {number} is {first} in the temperatures, but {second} in the "
                "geolocation. Pass the GATMO… file of the same granules, whose name has the same "
                "d, t and b parts."
            )


def _text_attribute(node: h5py.HLObject, name: str) -> str | None:
    """Return a text attribute, which is stored as a 1×1 array of bytes."""
    if name not in node.attrs:
        return None
    value = np.ravel(node.attrs[name])[0]
    text = value.decode() if isinstance(value, bytes) else str(value)
    return None if text in ("", "N/A") else text


def _parse_time(date: str | None, time: str | None) -> datetime | None:
    try:
        start = datetime.strptime(f"{date} {time}", "%Y%m%d %H%M%S.%fZ")
    except ValueError:
        return None
    return None if start.year == CLOCK_EPOCH_YEAR else start
