"""Places to predict at, and values there as a surface."""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LogNorm, Normalize
from scipy.spatial import Delaunay, QhullError

from emgpr.geo import Places, is_geographic
from emgpr.geo.grids import unwrapped
from emgpr.plots.labels import log_ticks

ON_A_LINE, ON_A_SIDE = 200, 70  # nodes, where none are given


def places(X: pd.DataFrame, nodes: Any) -> pd.DataFrame:
    """The nodes with the inputs' columns, or some that span the sites X."""
    names, P = list(X.columns), X.shape[1]
    if P > 2:
        raise ValueError(
            f"The model has {P} inputs ({', '.join(map(str, names))}); only 1 (a line) or 2 (a "
            "map) can be drawn. measured_against_predicted shows models with more."
        )
    if nodes is None:
        return nodes_over(X)
    if isinstance(nodes, pd.DataFrame) and set(names) <= set(nodes.columns):
        return nodes[names]
    table = np.asarray(nodes, dtype=float).reshape(len(nodes), -1)
    if table.shape[1] != P:
        raise ValueError(f"nodes have {table.shape[1]} columns; the model has {P} inputs: {names}.")
    return pd.DataFrame(table, columns=names)


def running_on(model: Any, X: pd.DataFrame) -> pd.DataFrame:
    """The sites with longitudes that go on across the date line, if they do: one map, not two."""
    if not is_geographic(model.crs):
        return X
    column = X.columns[Places.of([str(name) for name in X.columns], model.crs).x]
    return X.assign(**{str(column): unwrapped(X[column].to_numpy(dtype=float))})


def as_fitted(model: Any, nodes: pd.DataFrame) -> Any:
    """The nodes with the names of their columns only if the model was fitted to names."""
    return nodes if hasattr(model, "feature_names_in_") else nodes.to_numpy()


def nodes_over(X: pd.DataFrame, on_a_side: int | None = None, *, at_least: int = 2) -> pd.DataFrame:
    """A regular grid inside the outline of the sites; of one input, its range.

    `on_a_side` nodes lie along the longer side, and along the other as many as are as far apart,
    but `at_least` so many: where the inputs count in different units, sides mean little.
    """
    low, high = X.min().to_numpy(dtype=float), X.max().to_numpy(dtype=float)
    flat = high <= low
    low, high = np.where(flat, low - 0.5, low), np.where(flat, high + 0.5, high)
    if len(low) == 1:
        return pd.DataFrame(np.linspace(low, high, ON_A_LINE), columns=X.columns)
    step = (high - low).max() / ((on_a_side or ON_A_SIDE) - 1)
    sides = [
        np.linspace(a, b, max(at_least, round((b - a) / step) + 1))
        for a, b in zip(low, high, strict=True)
    ]
    nodes = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
    try:
        inside = Delaunay(X.to_numpy(dtype=float)).find_simplex(nodes) >= 0
    except (QhullError, ValueError):  # sites in a row, or too few of them: no outline
        inside = np.ones(len(nodes), bool)
    if not inside.any():  # an outline so thin that it lies between the nodes
        inside[:] = True
    return pd.DataFrame(nodes[inside], columns=X.columns)


def scale_of(values: Float[np.ndarray, " n"], within: tuple[float, float], log: bool) -> Normalize:
    """Colours between two quantiles: a few extreme values would leave all others one colour."""
    low, high = np.nanquantile(values, within)
    if log:
        return LogNorm(low / 1.1, high * 1.1) if high <= low else LogNorm(low, high)
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # a constant, and its rounding
        room = 0.1 * abs(high) or 1.0
        low, high = low - room, high + room
    return Normalize(low, high)


def draw_surface(
    ax: Axes,
    nodes: pd.DataFrame,
    values: Float[np.ndarray, " M"],
    colours: str,
    scale: Normalize,
    extend: str,
) -> Colorbar:
    """Values over the nodes of a regular grid, which may have holes."""
    x, y, table = mesh(nodes.to_numpy(dtype=float), values)
    image = ax.pcolormesh(x, y, table, cmap=colours, norm=scale, rasterized=True, shading="nearest")
    figure: Any = ax.figure
    bar = figure.colorbar(image, ax=ax, extend=extend, shrink=0.85)
    if isinstance(scale, LogNorm):
        log_ticks(bar.ax.yaxis)
    bar.ax.tick_params(labelsize="small")
    return bar


def as_on_paper(nodes: pd.DataFrame) -> pd.DataFrame:
    """The coordinate that goes to the right first: of latitude and longitude, the longitude."""
    first = str(nodes.columns[0]).lower()
    upward = first.startswith(("lat", "north")) and nodes.shape[1] == 2
    return nodes.iloc[:, ::-1] if upward else nodes


def shape_of(nodes: pd.DataFrame, units: Any) -> tuple[Any, float]:
    """A map's aspect, equal if both inputs have the same unit, and its height for a unit of width.

    The height is that of the panel it should have, so within reason.
    """
    one, other = ((units or {}).get(name) for name in nodes.columns)
    width, height = np.ptp(nodes.to_numpy(dtype=float), axis=0)
    if one != other or not width > 0:
        return "auto", 1.0
    return "equal", float(np.clip(height / width, 0.35, 2.0))


def mesh(
    nodes: Float[np.ndarray, "M 2"], values: Float[np.ndarray, " M"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values as a table over the grid's columns and rows, NaN in its holes."""
    x, column = _positions(nodes[:, 0])
    y, row = _positions(nodes[:, 1])
    table = np.full((len(y), len(x)), np.nan)
    table[row, column] = values
    return x, y, table


def _positions(coordinate: Float[np.ndarray, " M"]) -> tuple[np.ndarray, np.ndarray]:
    distinct = np.unique(coordinate)
    step = np.diff(distinct).min() if len(distinct) > 1 else 1.0
    index = np.rint((coordinate - distinct[0]) / step).astype(int)
    if not np.allclose(distinct[0] + index * step, coordinate, rtol=0, atol=0.01 * step):
        raise ValueError(
            "nodes do not lie on a regular grid: steps along a coordinate differ. Predict at the "
            "nodes of a regular grid (it may have holes) to draw a map."
        )
    return distinct[0] + step * np.arange(index.max() + 1), index
