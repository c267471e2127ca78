"""ATMS granules: what the sounder measured, and where, from two HDF5 files.

The layout is that of the JPSS Common Data Format Control Book, volume III: temperatures are
unsigned 16-bit counts with a scale and an offset for each granule, and several granules may lie
one after another in one file.
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

if TYPE_CHECKING:
    import h5py

TEMPERATURE = {"TDR": "AntennaTemperature", "SDR": "BrightnessTemperature"}
GEOLOCATION = "ATMS-SDR-GEO"  # the same for both: there is no ATMS-TDR-GEO
POSITION = {"lat": "Latitude", "lon": "Longitude", "satzen": "SatelliteZenithAngle"}
CHANNELS = [f"ch{number:02d}" for number in range(1, 23)]

# Each reason for a missing value has its own number: 65528 to 65535, -999.9 to -999.2.
FIRST_COUNT_FILL = 65528
FLOAT_FILLS = (-1000.0, -999.0)


@dataclass(frozen=True)
class Granule:
    """What a file says of one of its granules; None where it is silent."""

    id: str | None
    start: datetime | None
    scans: int | None


def read_atms(tdr_file: str | os.PathLike[str], geo_file: str | os.PathLike[str]) -> pd.DataFrame:
    """Temperatures of the ATMS sounder and where they were taken, a row for each field of view.

    `tdr_file` is a TDR (TATMS…, antenna temperature) or SDR file (SATMS…, brightness
    temperature), `geo_file` its geolocation (GATMO…); a file that holds both is given twice.

    Returns a data frame, scan after scan, with columns scan, fov (both from 1), lat, lon, satzen
    (satellite zenith angle; degrees) and ch01 to ch22 (K). Missing values are NaN. Its `attrs`
    hold platform, kind ("TDR" or "SDR"), units, and start (UTC, ISO 8601), None where the file
    does not say. Needs h5py: pip install 'emgpr[geo]'.

    >>> swath = read_atms("TATMS_npp_d20141130.h5", "GATMO_npp_d20141130.h5")  # doctest: +SKIP
    >>> swath.loc[0, ["lat", "lon", "ch01"]].round(2).tolist()  # doctest: +SKIP
    [59.5, 149.44, 193.41]
    """
    with _opened(tdr_file, "tdr_file") as data, _opened(geo_file, "geo_file") as geo:
        kind = _kind(data)
        granules = _granules(data, f"ATMS-{kind}")
        kelvin = _temperatures(data, kind, granules)
        scans, fovs, _ = kelvin.shape
        position = _positions(geo, (scans, fovs))
        _check_same_granules(granules, _granules(geo, GEOLOCATION))
        platform = _text(data, "Platform_Short_Name")

    channels = dict(zip(CHANNELS, kelvin.reshape(-1, len(CHANNELS)).T, strict=True))
    scan = np.repeat(np.arange(1, scans + 1), fovs)
    fov = np.tile(np.arange(1, fovs + 1), scans)
    frame = pd.DataFrame({"scan": scan, "fov": fov, **position, **channels})
    start = next((granule.start for granule in granules if granule.start), None)
    frame.attrs = {
        "platform": platform,
        "kind": kind,
        "units": dict.fromkeys(POSITION, "degrees") | dict.fromkeys(CHANNELS, "K"),
        "start": start and start.isoformat() + "Z",
    }
    return frame


@contextmanager
def _opened(name: str | os.PathLike[str], argument: str) -> Iterator[h5py.File]:
    try:
        import h5py
    except ImportError as missing:
        raise ImportError("Reading ATMS needs h5py: pip install 'emgpr[geo]'") from missing
    path = Path(name)
    if not path.is_file():
        raise FileNotFoundError(f"{argument}: there is no file {path}. Check the path.")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise OSError(
            f"{argument}: {path} cannot be read as HDF5 ({error}). ATMS granules are HDF5 files "
            "ending in .h5; if this is one, its download may be incomplete: fetch it again."
        ) from error
    with file:
        yield file


def _kind(data: h5py.File) -> str:
    for kind in TEMPERATURE:
        if f"All_Data/ATMS-{kind}_All" in data:
            return kind
    if f"All_Data/{GEOLOCATION}_All" in data:
        raise ValueError(
            f"tdr_file: {data.filename} holds geolocation, not temperatures. The temperatures "
            "(TATMS… or SATMS…) come first, then the geolocation (GATMO…): swap the two."
        )
    raise ValueError(
        f"tdr_file: {data.filename} holds neither All_Data/ATMS-TDR_All nor "
        "All_Data/ATMS-SDR_All, so it is no ATMS granule. Give a TATMS… or SATMS… file."
    )


def _dataset(file: h5py.File, path: str) -> NDArray[Any]:
    if path not in file:
        raise ValueError(
            f"{file.filename} has no {path}, which every ATMS file of its kind has. The file is "
            "damaged or was cut down: fetch it again."
        )
    return np.asarray(file[path][()])


def _temperatures(
    data: h5py.File, kind: str, granules: list[Granule]
) -> Float64[np.ndarray, "S F 22"]:
    """Kelvin of every scan, field of view and channel; NaN for fill values."""
    path = f"All_Data/ATMS-{kind}_All/{TEMPERATURE[kind]}"
    counts = _dataset(data, path)
    if (
        counts.ndim != 3
        or counts.shape[2] != len(CHANNELS)
        or counts.dtype.newbyteorder("=") != "u2"
    ):
        raise ValueError(
            f"{data.filename}: {path} is {counts.dtype} of shape {counts.shape}; expected "
            f"unsigned 16-bit counts of shape (scans, fields of view, {len(CHANNELS)})."
        )
    factors = _without_fills(_dataset(data, path + "Factors")).ravel()
    # A scale and an offset for each granule, and in a missing granule these are fills too.
    n_granules, odd = divmod(factors.size, 2)
    lengths = _scans_per_granule(len(counts), n_granules, granules)
    if odd or lengths is None:
        raise ValueError(
            f"{data.filename}: {path}Factors holds {factors.size} numbers, a scale and an offset "
            f"for each granule, which does not fit {len(counts)} scans. The file is damaged or "
            "was cut down: fetch it again."
        )
    by_scan = np.repeat(factors.reshape(-1, 2), lengths, axis=0)
    scale, offset = by_scan.T[:, :, None, None]
    return np.where(counts < FIRST_COUNT_FILL, scale * counts + offset, np.nan)


def _scans_per_granule(n_scans: int, n_granules: int, granules: list[Granule]) -> list[int] | None:
    """As the granules say, where that adds up; else the same for each; None if neither can be."""
    said = [granule.scans or 0 for granule in granules]
    if len(said) == n_granules and sum(said) == n_scans and min(said, default=0) > 0:
        return said
    if n_granules == 0 or n_scans % n_granules:
        return None
    return [n_scans // n_granules] * n_granules


def _positions(geo: h5py.File, shape: tuple[int, int]) -> dict[str, Float64[np.ndarray, " SF"]]:
    """Latitude, longitude and zenith angle of every field of view, scan after scan."""
    group = f"All_Data/{GEOLOCATION}_All"
    if group not in geo:
        raise ValueError(
            f"geo_file: {geo.filename} has no {group}, so it is no ATMS geolocation. Give the "
            "GATMO… file that belongs to the temperatures."
        )
    position = {}
    for column, name in POSITION.items():
        values = _without_fills(_dataset(geo, f"{group}/{name}"))
        if values.shape != shape:
            raise ValueError(
                f"{geo.filename}: {name} has shape {values.shape}, but the temperatures have "
                f"{shape} (scans, fields of view). Give the GATMO… file of the same granules."
            )
        position[column] = values.ravel()
    return position


def _without_fills(values: NDArray[Any]) -> NDArray[np.float64]:
    below, above = FLOAT_FILLS
    return np.where((values > below) & (values < above), np.nan, values.astype(np.float64))


def _granules(file: h5py.File, product: str) -> list[Granule]:
    described = file.get(f"Data_Products/{product}", {})
    granules: list[Granule] = []
    while (node := described.get(f"{product}_Gran_{len(granules)}")) is not None:
        scans = node.attrs.get("N_Number_Of_Scans")
        granules.append(
            Granule(
                id=_text(node, "N_Granule_ID"),
                start=_time(_text(node, "Beginning_Date"), _text(node, "Beginning_Time")),
                scans=None if scans is None else int(np.ravel(scans)[0]),
            )
        )
    return granules


def _check_same_granules(data: list[Granule], geo: list[Granule]) -> None:
    for number, (ours, theirs) in enumerate(zip(data, geo, strict=False)):
        # The id is derived from the start, so the start is needed only where an id is absent.
        by_id = ours.id is not None and theirs.id is not None
        expected, came = (ours.id, theirs.id) if by_id else (ours.start, theirs.start)
        if expected is not None and came is not None and expected != came:
            raise ValueError(
                f"Granule {number} of the temperatures is {expected}, but that of the "
                f"geolocation is {came}. Give the GATMO… file of the same granules: its name "
                "has the same d, t and b parts."
            )


def _text(node: h5py.HLObject, name: str) -> str | None:
    """A text attribute, which these files hold as a 1×1 array of bytes."""
    if name not in node.attrs:
        return None
    value = np.ravel(node.attrs[name])[0]
    text = value.decode() if isinstance(value, bytes) else str(value)
    return None if text in ("", "N/A") else text


def _time(date: str | None, time: str | None) -> datetime | None:
    try:
        start = datetime.strptime(f"{date} {time}", "%Y%m%d %H%M%S.%fZ")
    except ValueError:
        return None
    # A missing granule is dated to the epoch of the clock on board.
    return None if start.year == 1958 else start
