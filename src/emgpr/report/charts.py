"""Data for the interactive charts: maps for models with two inputs, lines for models with one.

The charts are drawn by a script embedded in the page. The resolution of the grid is limited, so
that prediction is fast and the page is small. The predictions are embedded in the page as 32-bit
numbers in base64.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from jaxtyping import Float
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import MaxNLocator

from emgpr.estimators import MultiOutputGP
from emgpr.plots.labels import is_log_transformed, log_locator
from emgpr.plots.maps import (
    INTERVAL,
    PREDICTION_COLOURS,
    PREDICTION_QUANTILES,
    STD_COLOURS,
    STD_QUANTILES,
)
from emgpr.plots.surface import Locations, colour_scale
from emgpr.prediction import LMCPosterior
from emgpr.report.cells import Table, quantity
from emgpr.report.columns import EXTREMES

Array = np.ndarray
Units = Mapping[str, str]

MAX_OUTPUTS = 30  # number of outputs for which charts are drawn
MAX_SITES = 4000  # number of sites marked on a chart
MIN_LONGER_SIDE, MAX_LONGER_SIDE = 24, 80  # number of nodes along the longer side of a map
MIN_SIDE = 12  # number of nodes along the shorter side of a map
MAX_OPERATIONS = 3e10  # floating-point operations to predict a map: a few seconds on one core
MAX_ASPECT = 6.0  # Maps with a larger ratio of sides are not drawn to scale.


@dataclass(frozen=True)
class Charts:
    """Data for drawing the charts, a table of extremes, and a note if charts are left out."""

    data: dict[str, Any] | None
    table: Table | None = None
    note: str = ""


def create_charts(model: MultiOutputGP, units: Units) -> Charts:
    """Predict a map or line for every output. With more than two inputs, return only a note."""
    X, Y = model.training_data()
    if X.shape[1] > 2:
        note = (
            f"The model has {X.shape[1]} inputs ({', '.join(map(str, X.columns))}), and a map can "
            "show only two, so there is no map here. Use predict_dataset to predict on a grid "
            "over all inputs, and plot slices of the result."
        )
        return Charts(None, note=note)
    locations = Locations.build(model, n_side=nodes_per_side(model.posterior_), min_side=MIN_SIDE)
    values = _predict(model, locations)
    # If there are too many sites to mark all of them, mark sites at equal intervals of the table.
    marked = np.unique(np.linspace(0, len(X) - 1, min(len(X), MAX_SITES)).astype(int))
    sites = locations.sites[locations.axes].to_numpy(dtype=float)[marked]
    names = model.output_names_[:MAX_OUTPUTS]
    outputs = []
    for d, name in enumerate(names):
        readings, std = Y[name].to_numpy(dtype=float), values["std"][:, d]
        output = {"name": name, "unit": units.get(name, ""), "readings": pack(readings[marked])}
        output |= {key: pack(locations.arrange(part[:, d])) for key, part in values.items()}
        is_log = is_log_transformed(model.output_scaler_, name)
        scale = colour_scale(readings, PREDICTION_QUANTILES, is_log)
        std_scale = colour_scale(std, STD_QUANTILES)
        outputs.append(output | {"scale": _scale(scale), "std_scale": _scale(std_scale)})
    data = {
        **(_line_axes(locations) if locations.is_line else _map_axes(locations, units)),
        "inputs": [{"name": str(name), "unit": units.get(name, "")} for name in locations.axes],
        "sites": {axis: pack(at, "<f8") for axis, at in zip("xy", sites.T, strict=False)},
        "outputs": outputs,
    }
    n_all = model.n_outputs_
    note = f"Only the first {len(names)} of {n_all} outputs are drawn." * (len(names) < n_all)
    return Charts(data, _extremes(locations, values, names, len(marked)), note)


def nodes_per_side(posterior: LMCPosterior) -> int:
    """Return the number of nodes along a map's longer side that can be predicted in seconds."""
    conditioning, D = posterior.conditioning, posterior.n_outputs
    if isinstance(conditioning, int):
        operations = (conditioning * D) ** 3 / 3
    else:
        operations = D * posterior.observations.n_readings**2
    n = np.sqrt(MAX_OPERATIONS / max(posterior.model.n_members * operations, 1))
    return int(np.clip(n, MIN_LONGER_SIDE, MAX_LONGER_SIDE))


def _predict(model: MultiOutputGP, locations: Locations) -> dict[str, Float[Array, "M D"]]:
    """Return medians and standard deviations at the nodes and, for lines, 95% intervals."""
    median, std = model.predict(locations.X, return_std=True)
    values = {"centre": median, "std": std}
    if locations.is_line:
        low, high = model.predict_quantiles(locations.X, INTERVAL)
        values |= {"low": low, "high": high}
    return {key: np.reshape(part, (len(locations.nodes), -1)) for key, part in values.items()}


def _line_axes(locations: Locations) -> dict[str, Any]:
    return {"kind": "line", "x": pack(locations.coordinates[:, 0], "<f8")}


def _map_axes(locations: Locations, units: Units) -> dict[str, Any]:
    x, y, _ = locations.mesh(np.zeros(len(locations.nodes)))
    colours = {"centre": PREDICTION_COLOURS, "std": STD_COLOURS}
    return {
        "kind": "map",
        "degrees": locations.inputs.coordinates.degrees,
        "aspect": _aspect(locations, x, y, units),
        "x": _grid_axis(x),
        "y": _grid_axis(y),
        "colours": {
            # 256 colours of three bytes each
            key: pack(matplotlib.colormaps[name](np.arange(256), bytes=True)[:, :3], "|u1")
            for key, name in colours.items()
        },
    }


def _grid_axis(positions: Float[Array, " n"]) -> dict[str, float]:
    n = len(positions)
    step = (positions[-1] - positions[0]) / (n - 1) if n > 1 else 1.0
    return {"first": float(positions[0]), "step": float(step), "n": n}


def _aspect(locations: Locations, x: Array, y: Array, units: Units) -> float | None:
    """Return the ratio of height to width of a map, or None if it cannot be drawn to scale."""
    width, height = np.ptp(x), np.ptp(y)
    same_unit = len({units[name] for name in locations.axes if name in units}) < 2
    if locations.inputs.coordinates.degrees:
        width, same_unit = width * np.cos(np.radians(np.clip(y.mean(), -85, 85))), True
    ratio = height / width
    return float(ratio) if same_unit and 1 / MAX_ASPECT <= ratio <= MAX_ASPECT else None


def _scale(scale: Normalize) -> dict[str, Any]:
    """Return the limits and ticks of a colour scale."""
    low, high = float(scale.vmin or 0.0), float(scale.vmax or 0.0)
    is_log = isinstance(scale, LogNorm)
    locator = log_locator(low, high) if is_log else MaxNLocator(5)
    ticks = [float(tick) for tick in locator.tick_values(low, high) if low <= tick <= high]
    return {"low": low, "high": high, "log": is_log, "ticks": ticks}


def _extremes(
    locations: Locations, values: Mapping[str, Array], names: list[str], n_marked: int
) -> Table:
    """Return the table of lowest and highest predictions that is shown below the charts."""
    at, n_sites = locations.coordinates, len(locations.sites)
    rows = [
        {"output": name, "centre": values["centre"][:, d], "std": values["std"][:, d], "at": at}
        for d, name in enumerate(names)
    ]
    if locations.is_line:
        note = f"The lines have {quantity(len(at), 'node')}."
    else:
        ny, nx = locations.arrange(at[:, 0]).shape
        note = (
            f"The maps show the {quantity(len(at), 'cell')} of a {nx} × {ny} grid that lie inside "
        )
        note += "the convex hull of the sites."
    if n_marked < n_sites:
        note += f" {n_marked} of the {n_sites} sites are marked."
    axes = ", ".join(map(str, locations.axes))
    return Table.build(
        f"Lowest and highest predictions and their locations ({axes})", EXTREMES, rows, note
    )


def pack(values: Array, dtype: str = "<f4") -> str:
    """Encode numbers as base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")
