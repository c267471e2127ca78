"""Nodes of a grid on which figures show predictions, and functions that draw values there."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LogNorm, Normalize
from scipy.spatial import Delaunay, QhullError

from emgpr.estimators import MultiOutputGP, ReadingsGP
from emgpr.geo.grids import unwrap_longitudes
from emgpr.inputs import InputSpec
from emgpr.plots.labels import (
    BLUE,
    Units,
    have_same_unit,
    length_unit,
    set_length_ticks,
    set_log_ticks,
    with_unit,
)
from emgpr.plots.panels import check_keeps_readings, label_outer, style_axes

# Default number of nodes along a line, and along the longer side of a map.
N_NODES_LINE, N_NODES_SIDE = 200, 70
MIN_SIDE = 12  # number of nodes along the shorter side of a map
MAX_RESOLUTION = 1000  # number of nodes that can be requested along the longer side of a map

Array = np.ndarray


@dataclass(frozen=True)
class Locations:
    """The training sites, and the nodes at which a figure shows predictions.

    With one input, the nodes are in ascending order. With two inputs, they belong to a regular
    grid, which may have holes. The longitudes of the sites are continuous across the date line.
    """

    sites: pd.DataFrame
    nodes: pd.DataFrame
    inputs: InputSpec

    @classmethod
    def build(
        cls, model: MultiOutputGP | ReadingsGP, nodes: Any = None, resolution: int | None = None
    ) -> "Locations":
        """Combine the sites of a model with the given nodes or, by default, with a regular grid.

        `resolution` is the number of nodes along the longer side of this grid, or along a line.
        """
        check_keeps_readings(model)
        check_resolution(resolution)
        sites = continuous_longitudes(model.training_data()[0], model.input_spec_)
        names, P = list(sites.columns), sites.shape[1]
        if P > 2:
            raise ValueError(
                f"The model has {P} inputs ({', '.join(map(str, names))}); only models with "
                "1 input (a line) or 2 inputs (a map) can be drawn. For models with more inputs, "
                "use measured_against_predicted."
            )
        if nodes is None:
            nodes = nodes_spanning(sites, resolution, MIN_SIDE)
        elif not (isinstance(nodes, pd.DataFrame) and set(names) <= set(nodes.columns)):
            table = np.asarray(nodes, dtype=float).reshape(len(nodes), -1)
            if table.shape[1] != P:
                raise ValueError(f"nodes has {table.shape[1]} columns; expected {P} ({names}).")
            nodes = pd.DataFrame(table, columns=names)
        nodes = nodes[names].sort_values(names) if P == 1 else nodes[names]
        return cls(sites, nodes, model.input_spec_)

    @property
    def is_line(self) -> bool:
        """Whether the model has one input, so that predictions are drawn as lines."""
        return self.nodes.shape[1] == 1

    @property
    def X(self) -> Any:
        """The nodes in the form expected by `predict`: a DataFrame or an array, as in the fit."""
        return self.inputs.named(self.nodes.to_numpy(dtype=float))

    @property
    def axes(self) -> list[str]:
        """The names of the inputs on the horizontal and vertical axes, such as lon and lat."""
        names = list(self.nodes.columns)
        return names[::-1] if str(names[0]).lower().startswith(("lat", "north")) else names

    @property
    def coordinates(self) -> Float[Array, "M P"]:
        """The coordinates of the nodes, with columns in the order of `axes`."""
        return self.nodes[self.axes].to_numpy(dtype=float)

    def mesh(self, values: Float[Array, " M"]) -> tuple[Array, Array, Array]:
        """Return the grid's x (n,), y (m,) and values (m, n), with NaN in the holes of the grid."""
        (x, column), (y, row) = map(_grid_positions, self.coordinates.T)
        table = np.full((len(y), len(x)), np.nan)
        table[row, column] = values
        return x, y, table

    def arrange(self, values: Float[Array, " M"]) -> Array:
        """Return the values as a matrix for a map, or unchanged for a line."""
        return values if self.is_line else self.mesh(values)[2]

    def aspect(self, units: Units) -> tuple[Literal["auto", "equal"], float]:
        """Return the aspect parameter for a map's axes, and a suitable ratio of height to width.

        The aspect is "equal" if both inputs have the same unit.
        """
        width, height = np.ptp(self.coordinates, axis=0)
        if not have_same_unit(self.axes, units) or not width > 0:
            return "auto", 1.0
        return "equal", float(np.clip(height / width, 0.35, 2.0))

    def axis_labels(self, units: Units) -> list[tuple[str, float]]:
        """Return the label of each axis, and the size of the unit in it: 1000 for km, not m."""
        extent = float(np.ptp(self.coordinates, axis=0).max())
        found = []
        for name in map(str, self.axes):
            given = (units or {}).get(name, "")
            unit, size = length_unit(given, extent)
            if unit != given:
                name = name.removesuffix(f"({given})").removesuffix(f"[{given}]").rstrip()
            found.append((with_unit(name, {name: unit}), size))
        return found


def label_map_axes(panels: Array, locations: Locations, units: Units) -> None:
    """Label the axes of maps, in km if they are long and in metres."""
    (x, x_size), (y, y_size) = locations.axis_labels(units)
    label_outer(panels, x, y)
    for ax in panels.flat:
        set_length_ticks(ax.xaxis, x_size)
        set_length_ticks(ax.yaxis, y_size)


def continuous_longitudes(X: pd.DataFrame, inputs: InputSpec) -> pd.DataFrame:
    """Return the sites with longitudes that are continuous across the date line."""
    if not inputs.coordinates.degrees:
        return X
    column = X.columns[inputs.coordinates.x]
    return X.assign(**{str(column): unwrap_longitudes(X[column].to_numpy(dtype=float))})


def check_resolution(resolution: int | None) -> None:
    """Raise ValueError unless this is a valid number of nodes along the longer side of a map."""
    if resolution is not None and not MIN_SIDE <= resolution <= MAX_RESOLUTION:
        raise ValueError(
            f"resolution={resolution!r}; expected a number of nodes from {MIN_SIDE} to "
            f"{MAX_RESOLUTION}."
        )


def nodes_spanning(
    sites: pd.DataFrame, n_side: int | None = None, min_side: int = 2
) -> pd.DataFrame:
    """Return a regular grid inside the convex hull of the sites or, for one input, their range.

    The longer side, or the line, has `n_side` nodes. The shorter side has the same spacing, unless
    it would then have fewer than `min_side` nodes, as can happen if the inputs differ in unit.
    """
    low, high = sites.min().to_numpy(dtype=float), sites.max().to_numpy(dtype=float)
    flat = high <= low
    low, high = np.where(flat, low - 0.5, low), np.where(flat, high + 0.5, high)
    if len(low) == 1:
        return pd.DataFrame(np.linspace(low, high, n_side or N_NODES_LINE), columns=sites.columns)
    step = (high - low).max() / ((n_side or N_NODES_SIDE) - 1)
    counts = np.maximum(min_side, np.round((high - low) / step).astype(int) + 1)
    sides = map(np.linspace, low, high, counts)
    nodes = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    try:
        inside = Delaunay(sites.to_numpy(dtype=float)).find_simplex(nodes) >= 0
    except (QhullError, ValueError):  # There are too few sites, or all of them lie on a line.
        inside = np.ones(len(nodes), bool)
    if not inside.any():  # The convex hull is so thin that it contains no nodes.
        inside[:] = True
    return pd.DataFrame(nodes[inside], columns=sites.columns)


def _grid_positions(coordinate: Float[Array, " M"]) -> tuple[Array, Array]:
    """Return the equally spaced positions of a grid along one axis, and the index of each node."""
    distinct = np.unique(coordinate)
    step = np.diff(distinct).min() if len(distinct) > 1 else 1.0
    index = np.rint((coordinate - distinct[0]) / step).astype(int)
    if not np.allclose(distinct[0] + index * step, coordinate, rtol=0, atol=0.01 * step):
        raise ValueError(
            "nodes are not on a regular grid, because the steps along a coordinate differ. To draw "
            "a map, pass the nodes of a regular grid. The grid may have holes."
        )
    return distinct[0] + step * np.arange(index.max() + 1), index


def colour_scale(
    values: Float[Array, " n"], quantiles: tuple[float, float], log: bool = False
) -> Normalize:
    """Return a colour scale whose limits are two quantiles of the values."""
    low, high = np.nanquantile(values, quantiles)
    if log:
        return LogNorm(low / 1.1, high * 1.1) if high <= low else LogNorm(low, high)
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # constant up to rounding
        margin = 0.1 * abs(high) or 1.0
        low, high = low - margin, high + margin
    return Normalize(low, high)


def draw_surface(
    ax: Axes,
    locations: Locations,
    values: Float[Array, " M"],
    colours: str,
    scale: Normalize,
    extend: Literal["neither", "both", "max"],
) -> Colorbar:
    """Draw values at the nodes as coloured cells, and add a colour bar."""
    image = ax.pcolormesh(
        *locations.mesh(values), cmap=colours, norm=scale, rasterized=True, shading="nearest"
    )
    figure: Any = ax.figure
    bar = figure.colorbar(image, ax=ax, extend=extend, shrink=0.85)
    if isinstance(scale, LogNorm):
        set_log_ticks(bar.ax.yaxis)
    bar.ax.tick_params(labelsize="small")
    return bar


def draw_band(ax: Axes, locations: Locations, centre: Array, low: Array, high: Array) -> None:
    """Draw values at the nodes as a line with a shaded band around it."""
    (x,) = locations.coordinates.T
    ax.fill_between(x, low, high, color=BLUE, alpha=0.2, linewidth=0)
    ax.plot(x, centre, color=BLUE)
    style_axes(ax)
