"""Maps of a satellite swath: channels predicted on a regular grid, with standard deviations."""

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
from emgpr.geo import LONGITUDE_LATITUDE
from emgpr.parallel import RandomState, as_generator
from emgpr.sphere import on_sphere

Array = np.ndarray

MAX_SITES = 1500  # with more sites, step 1 takes minutes; its time is cubic in their number
N_ADJACENT = 4  # adjacent fields of view: two in the same scan, one in each neighbouring scan
TEMPERATURE_NAMES = {"TDR": "antenna temperature", "SDR": "brightness temperature"}


@dataclass(frozen=True)
class Mapped:
    """A map and the fitted model that predicted it."""

    map: Any
    model: EMGPR


def grid_swath(
    swath: pd.DataFrame,
    channels: Sequence[str],
    spacing: float,
    *,
    most: int = MAX_SITES,
    random_state: RandomState = 0,
    verbose: int = 0,
) -> Mapped:
    """Predict channels of a swath (`emgpr.datasets.read_atms`) on a longitude-latitude grid.

    The model is `EMGPR.paper` with Matérn-3/2 kernels on the sphere and two members, each fitted to
    a random batch. It predicts each cell from the 16 nearest readings of each channel. If there are
    more than `most` fields of view, a random sample of that size is used for the fit and for the
    predictions. Cells outside the swath (see `footprint`) are NaN.
    """
    table = _rows_with_readings(swath, channels)
    sites = table if len(table) <= most else _random_rows(table, most, random_state)
    model = EMGPR.paper(
        kernel=Matern(nu=1.5), partition="random", combine="mean", n_members=2, conditioning=16,
        crs=LONGITUDE_LATITUDE, random_state=random_state, verbose=verbose,
    )  # fmt: skip
    model.fit(sites[["lon", "lat"]], sites[list(channels)])
    data = model.predict_grid(spacing, units="K", dtype="float32", inside=footprint(table))
    _describe(data, swath.attrs, len(sites), len(table))
    return Mapped(data, model)


def channel_names(chosen: str) -> list[str]:
    """Return the names of channels that are given by their numbers or by ranges of numbers.

    >>> channel_names("1-3,22")
    ['ch01', 'ch02', 'ch03', 'ch22']
    """
    numbers: list[int] = []
    for part in chosen.replace(" ", "").split(","):
        ends = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (0, 0)
        if not 1 <= first <= last <= len(CHANNELS):
            raise ValueError(
                f"channels {chosen!r}; expected numbers from 1 to {len(CHANNELS)} or ranges, such "
                "as 1-10 or 1-5,17."
            )
        numbers += range(first, last + 1)
    return [CHANNELS[number - 1] for number in dict.fromkeys(numbers)]


def footprint(table: pd.DataFrame) -> Callable[[Array, Array], Bool[Array, " M"]]:
    """Return a function that tells which points (longitude, latitude) lie inside the swath.

    A point is outside if its distance to the nearest field of view exceeds the distance of that
    field of view to its own fourth nearest neighbour.

    >>> line = pd.DataFrame({"lon": np.arange(175.0, 185.0), "lat": np.zeros(10)})
    >>> footprint(line)(np.array([-179.5, 180.0]), np.array([0.0, 10.0]))
    array([ True, False])
    """
    views = np.asarray(on_sphere(table["lon"].to_numpy(), table["lat"].to_numpy()))
    tree = KDTree(views)
    n_adjacent = min(N_ADJACENT, len(views) - 1)
    reach = tree.query(views, k=[n_adjacent + 1])[0][:, 0]  # the nearest is the view itself

    def inside(longitude: Array, latitude: Array) -> Bool[Array, " M"]:
        # The longitudes of a grid across the date line may exceed 360, which on_sphere rejects.
        distance, nearest = tree.query(on_sphere((longitude + 180) % 360 - 180, latitude))
        return np.asarray(distance <= reach[nearest])

    return inside


def _rows_with_readings(swath: pd.DataFrame, channels: Sequence[str]) -> pd.DataFrame:
    missing = [name for name in channels if name not in swath.columns]
    if missing or not len(channels):
        raise ValueError(
            f"The swath has no channels {missing}; it has {CHANNELS[0]} to {CHANNELS[-1]}. Choose "
            "at least one of these."
        )
    usable = swath[list(channels)].notna().any(axis=1) & swath[["lon", "lat"]].notna().all(axis=1)
    if usable.sum() < 2:
        raise ValueError(
            f"The swath has {usable.sum()} fields of view with a reading of {list(channels)}; at "
            "least 2 are needed. Pass a granule with more readings, or other channels."
        )
    return swath[usable].reset_index(drop=True)


def _random_rows(table: pd.DataFrame, n: int, random_state: RandomState) -> pd.DataFrame:
    rows = as_generator(random_state).permutation(len(table))[:n]
    return table.iloc[np.sort(rows)].reset_index(drop=True)


def _describe(data: Any, origin: dict[Any, Any], n_used: int, n_views: int) -> None:
    """Add the origin of the swath and the CF names of the variables to a map's attributes."""
    kind = origin.get("kind")
    measured = TEMPERATURE_NAMES.get(str(kind), "temperature")
    data.attrs["title"] = f"ATMS {measured} on a regular grid"
    data.attrs["comment"] += (
        f" Predicted from {n_used} of {n_views} fields of view. Cells outside the swath are "
        "missing: a cell is outside if its distance to the nearest field of view exceeds the "
        "distance of that field of view to its own fourth nearest neighbour."
    )
    for name, key in (("platform", "platform"), ("time_coverage_start", "start")):
        if origin.get(key):
            data.attrs[name] = origin[key]
    data.attrs["instrument"] = "ATMS"
    for name, variable in data.data_vars.items():
        if variable.ndim != 2:
            continue
        is_std = str(name).endswith("_std")
        what = f"{measured} of channel {int(str(name)[2:4])}"
        variable.attrs["long_name"] = f"standard deviation of the {what}" if is_std else what
        if kind == "SDR":  # CF has no standard name for antenna temperature
            variable.attrs["standard_name"] = "toa_brightness_temperature" + (
                " standard_error" if is_std else ""
            )
