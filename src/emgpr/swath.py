"""A swath of a sounder as a map: channels at fields of view become a grid, each with its std."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import Matern

from emgpr.datasets.atms import CHANNELS
from emgpr.estimators import EMGPR
from emgpr.execution import RandomState, generator
from emgpr.geo import LONGITUDE_LATITUDE
from emgpr.sphere import on_sphere

Array = np.ndarray

MOST = 1500  # places learned from: more take minutes, as step 1 grows with their cube
BESIDE = 4  # neighbours of a field of view: in its scan, and in the scans before and after
KIND = {"TDR": "antenna temperature", "SDR": "brightness temperature"}


@dataclass(frozen=True)
class Mapped:
    """A map and the model behind it."""

    map: Any
    model: EMGPR


def grid_swath(
    swath: pd.DataFrame,
    channels: Sequence[str],
    spacing: float,
    *,
    most: int = MOST,
    random_state: RandomState = 0,
    verbose: int = 0,
) -> Mapped:
    """Channels of a swath (`emgpr.datasets.read_atms`) on a grid of longitude and latitude.

    The method's two steps with Matérn-3/2 kernels on the sphere, two members of mini-batches, 16
    neighbours of each cell. Of more than `most` places, so many are drawn at random, learned and
    predicted from. Cells outside the footprint are NaN: those farther from their nearest place
    than it is from its fourth nearest.
    """
    table = _usable(swath, channels)
    used = table if len(table) <= most else _drawn(table, most, random_state)
    model = EMGPR.paper(
        kernel=Matern(nu=1.5), partition="random", combine="mean", n_members=2, conditioning=16,
        crs=LONGITUDE_LATITUDE, random_state=random_state, verbose=verbose,
    )  # fmt: skip
    model.fit(used[["lon", "lat"]], used[list(channels)])
    cells = model.predict_grid(spacing, units="K", dtype="float32", inside=footprint(table))
    return Mapped(_described(cells, swath, len(used), len(table)), model)


def channel_names(chosen: str) -> list[str]:
    """Channels by their numbers.

    >>> channel_names("1-3,22")
    ['ch01', 'ch02', 'ch03', 'ch22']
    """
    numbers: list[int] = []
    for part in chosen.replace(" ", "").split(","):
        ends = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (0, 0)
        if not 1 <= first <= last <= len(CHANNELS):
            raise ValueError(
                f"channels {chosen!r}; expected numbers from 1 to {len(CHANNELS)} and ranges, such "
                "as 1-10 or 1-5,17."
            )
        numbers += range(first, last + 1)
    return [CHANNELS[number - 1] for number in dict.fromkeys(numbers)]


def footprint(table: pd.DataFrame) -> Callable[[Array, Array], Bool[Array, " M"]]:
    """A function that tells which places (longitude, latitude) the swath has seen.

    >>> line = pd.DataFrame({"lon": np.arange(175.0, 185.0), "lat": np.zeros(10)})
    >>> footprint(line)(np.array([-179.5, 180.0]), np.array([0.0, 10.0]))
    array([ True, False])
    """
    seen = np.asarray(on_sphere(table["lon"].to_numpy(), table["lat"].to_numpy()))
    tree = KDTree(seen)
    beside = min(BESIDE, len(seen) - 1)
    reach = tree.query(seen, k=[beside + 1])[0][:, 0]  # the nearest is the place itself

    def within(longitude: Array, latitude: Array) -> Bool[Array, " M"]:
        # A grid across the date line goes on beyond 180, and beyond 360 are no degrees.
        away, nearest = tree.query(on_sphere((longitude + 180) % 360 - 180, latitude))
        return np.asarray(away <= reach[nearest])

    return within


def _usable(swath: pd.DataFrame, channels: Sequence[str]) -> pd.DataFrame:
    absent = [name for name in channels if name not in swath.columns]
    if absent or not len(channels):
        raise ValueError(
            f"The swath has no channels {absent}; it has {CHANNELS[0]} to {CHANNELS[-1]}. Name at "
            "least one of these."
        )
    read = swath[list(channels)].notna().any(axis=1) & swath[["lon", "lat"]].notna().all(axis=1)
    if read.sum() < 2:
        raise ValueError(
            f"The swath has {read.sum()} places with a reading of {list(channels)}; give a granule "
            "with more, or other channels."
        )
    return swath[read].reset_index(drop=True)


def _drawn(table: pd.DataFrame, n: int, random_state: RandomState) -> pd.DataFrame:
    rows = generator(random_state).permutation(len(table))[:n]
    return table.iloc[np.sort(rows)].reset_index(drop=True)


def _described(cells: Any, swath: pd.DataFrame, used: int, places: int) -> Any:
    """What the file says of its origin, told on; CF's name for what was measured."""
    platform, kind, start = (swath.attrs.get(key) for key in ("platform", "kind", "start"))
    measured = KIND.get(str(kind), "temperature")
    cells.attrs["title"] = f"ATMS {measured} on a regular grid"
    cells.attrs["comment"] += (
        f" From {used} of {places} fields of view. Cells outside the swath are missing: those "
        "farther from their nearest field of view than it is from its fourth nearest."
    )
    cells.attrs |= {
        name: value
        for name, value in {"platform": platform, "time_coverage_start": start}.items()
        if value
    }
    cells.attrs["instrument"] = "ATMS"
    for name, variable in cells.data_vars.items():
        if variable.ndim != 2:
            continue
        channel = int(str(name)[2:4])
        std = str(name).endswith("_std")
        what = f"{measured} of channel {channel}"
        variable.attrs["long_name"] = f"standard deviation of the {what}" if std else what
        if kind == "SDR":  # antenna temperature has no name in CF's table
            variable.attrs["standard_name"] = "toa_brightness_temperature" + (
                " standard_error" if std else ""
            )
    return cells
