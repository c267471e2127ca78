"""Data for the interactive charts: maps for models with two inputs, lines for models with one.

The charts are drawn by a script embedded in the page. The resolution of the grid is limited, so
that prediction is fast and the page is small. The predictions are embedded in the page as 32-bit
numbers in base64.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from jaxtyping import Float, Int
from matplotlib.colors import LogNorm, Normalize
from matplotlib.ticker import MaxNLocator

from emgpr.estimators import MultiOutputGP, ReadingsGP
from emgpr.inputs.units import unit_in_header
from emgpr.planning.speed import OPERATIONS_PER_ENTRY
from emgpr.plots.labels import have_same_unit, is_log_transformed, log_locator
from emgpr.plots.maps import (
    INTERVAL,
    PREDICTION_COLOURS,
    PREDICTION_QUANTILES,
    STD_COLOURS,
    STD_QUANTILES,
)
from emgpr.plots.panels import output_positions, select_outputs
from emgpr.plots.surface import Locations, colour_scale
from emgpr.prediction import DensePosterior, LMCPosterior
from emgpr.printable import escape_controls
from emgpr.regression_network import NetworkPosterior
from emgpr.report.cells import Table, quantity
from emgpr.report.columns import EXTREMES

Array = np.ndarray
Units = Mapping[str, str]

MAX_OUTPUTS = 30  # number of outputs for which charts are drawn
MAX_SITES = 4000  # number of sites marked on a chart
# Number of nodes along the longer side of a map: a multiple of the square root of the number of
# sites, so that there are several nodes between neighbouring sites, but within these limits.
NODES_PER_SITE = 2.5
MIN_USEFUL_SIDE, MAX_LONGER_SIDE = 100, 200
MIN_LONGER_SIDE = 40  # if predictions are expensive
MAX_OPERATIONS = 1e12  # operations to predict a map: less than a minute on one core
MAX_ASPECT = 6.0  # Maps with a larger ratio of sides are not drawn to scale.


@dataclass(frozen=True)
class Charts:
    """Data for drawing the charts, a table of extremes, and a note if charts are left out."""

    data: dict[str, Any] | None
    table: Table | None = None
    note: str = ""


def create_charts(
    model: MultiOutputGP | ReadingsGP,
    units: Units,
    resolution: int | None = None,
    outputs: Sequence[str] | None = None,
) -> Charts:
    """Predict a map or line for the outputs. With more than two inputs, return only a note.

    `resolution` is the number of nodes along the longer side of a map; see `nodes_per_side`.
    """
    X, Y = model.training_data()
    if X.shape[1] > 2:
        note = (
            f"The model has {X.shape[1]} inputs ({', '.join(map(str, X.columns))}), and a map can "
            "show only two, so there is no map here. Use predict_dataset to predict on a grid "
            "over all inputs, and plot slices of the result."
        )
        return Charts(None, note=note)
    if resolution is None and X.shape[1] == 2:
        resolution = nodes_per_side(model)
    locations = Locations.build(model, resolution=resolution)
    shown = select_outputs(model.output_names_, outputs)
    values = _predict(model, locations, output_positions(model.output_names_, shown))
    # If there are too many sites to mark all of them, mark sites at equal intervals of the table.
    marked = np.unique(np.linspace(0, len(X) - 1, min(len(X), MAX_SITES)).astype(int))
    sites = locations.sites[locations.axes].to_numpy(dtype=float)[marked]
    names = shown[:MAX_OUTPUTS]
    drawn = []
    for d, name in enumerate(names):
        readings, std = Y[name].to_numpy(dtype=float), values["std"][:, d]
        unit = units.get(name, "")
        output = {"name": escape_controls(name), "unit": unit, "readings": pack(readings[marked])}
        output["heading_unit"] = "" if unit_in_header(name) == unit else unit
        output |= {key: pack(locations.arrange(part[:, d])) for key, part in values.items()}
        is_log = is_log_transformed(model.output_scaler_, name)
        scale = colour_scale(readings, PREDICTION_QUANTILES, is_log)
        std_scale = colour_scale(std, STD_QUANTILES)
        drawn.append(output | {"scale": _scale(scale), "std_scale": _scale(std_scale)})
    data = {
        **(_line_axes(locations) if locations.is_line else _map_axes(locations, units)),
        "inputs": [
            {
                "name": escape_controls(str(name)),
                "unit": units.get(name, ""),
                "label": escape_controls(label),
                "scale": size,
            }
            for name, (label, size) in zip(
                locations.axes, locations.axis_labels(units), strict=True
            )
        ],
        "sites": {axis: pack(at, "<f8") for axis, at in zip("xy", sites.T, strict=False)},
        "outputs": drawn,
    }
    n_all = len(shown)
    note = f"Only the first {len(names)} of {n_all} outputs are drawn." * (len(names) < n_all)
    return Charts(data, _extremes(locations, values, names, len(marked)), note)


def nodes_per_side(model: MultiOutputGP | ReadingsGP) -> int:
    """Return the number of nodes along a map's longer side, from the sites and the cost of a node.

    Expensive maps have fewer nodes, so that they are predicted in less than a minute.
    """
    n_useful = NODES_PER_SITE * np.sqrt(model.posterior_.observations.n_sites)
    n_useful = np.clip(n_useful, MIN_USEFUL_SIDE, MAX_LONGER_SIDE)
    coarse = Locations.build(model, resolution=MIN_LONGER_SIDE)
    inside = max(len(coarse.nodes), 1) / MIN_LONGER_SIDE**2  # share of the nodes of a square grid
    n_affordable = np.sqrt(MAX_OPERATIONS / (inside * operations_per_node(model.posterior_)))
    return int(max(min(n_useful, n_affordable), min(MIN_LONGER_SIDE, n_useful)))


def operations_per_node(posterior: LMCPosterior | DensePosterior | NetworkPosterior) -> float:
    """Return the approximate number of operations to predict all outputs at a location."""
    D, n = posterior.n_outputs, posterior.observations.n_readings
    if isinstance(posterior, DensePosterior):
        return float(D * n**2)
    if isinstance(posterior, NetworkPosterior):
        Q = len(posterior.parameters.length_scales)
        return float((Q * posterior.n_sites) ** 2)
    conditioning, L = posterior.conditioning, posterior.model.n_members
    if isinstance(conditioning, int):
        side = conditioning * D
        return L * (side**3 + OPERATIONS_PER_ENTRY * side**2)
    return L * D * (n if conditioning == "all" else n / L) ** 2


def _predict(
    model: MultiOutputGP | ReadingsGP, locations: Locations, kept: Int[Array, " d"]
) -> dict[str, Float[Array, "M d"]]:
    """Return medians and standard deviations at the nodes and, for lines, 95% intervals."""
    median, std = model.predict(locations.X, return_std=True)
    values = {"centre": median, "std": std}
    if locations.is_line:
        low, high = model.predict_quantiles(locations.X, INTERVAL)
        values |= {"low": low, "high": high}
    n = len(locations.nodes)
    return {key: np.reshape(part, (n, -1))[:, kept] for key, part in values.items()}


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
    same_unit = have_same_unit(locations.axes, units)
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
            "the convex hull of the sites."
        )
    if n_marked < n_sites:
        note += f" {n_marked} of the {n_sites} sites are marked."
    axes = ", ".join(map(str, locations.axes))
    return Table.build(
        f"Lowest and highest predictions and their locations ({axes})", EXTREMES, rows, note
    )


def pack(values: Array, dtype: str = "<f4") -> str:
    """Encode numbers as base64."""
    return base64.b64encode(np.ascontiguousarray(values, dtype=dtype).tobytes()).decode("ascii")
