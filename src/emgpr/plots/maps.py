"""Maps of several outputs over a grid, with what was measured on top."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

PREDICTION_COLOURS, STD_COLOURS = "viridis", "cividis"  # both even in lightness, and safe


def maps(
    nodes: pd.DataFrame,
    prediction: pd.DataFrame,
    std: pd.DataFrame,
    *,
    sites: pd.DataFrame,
    readings: pd.DataFrame,
    unit: str = "",
    length_unit: str = "km",
    axes: Any = None,
) -> np.ndarray:
    """A column of two maps for each output: its prediction above, its standard deviation below.

    `nodes` (M, 2) lie on a regular grid, which may have holes; `prediction` and `std` are (M, D).
    `readings` (N, D) at `sites` (N, 2) are drawn in the prediction's colours, NaN left out.
    `axes` and what is returned are (2, D).
    """
    names = list(prediction.columns)
    if axes is None:
        size = (3.6 * len(names), 7.2)
        _, axes = plt.subplots(
            2, len(names), figsize=size, squeeze=False, sharex=True, sharey=True,
            layout="constrained",
        )  # fmt: skip
    for name, (above, below) in zip(names, np.asarray(axes).T, strict=True):
        made = readings[name].notna()
        at = sites[made].to_numpy()
        # A few extreme readings would leave all others one colour.
        scale = Normalize(*np.nanquantile(readings[name], [0.02, 0.98]))
        _draw(above, nodes, prediction[name], PREDICTION_COLOURS, scale, unit, "both")
        above.scatter(
            *at.T, c=readings.loc[made, name], cmap=PREDICTION_COLOURS, norm=scale,
            s=14, linewidths=0.4, edgecolors="white",
        )  # fmt: skip
        above.set_title(f"{name}: predicted median")
        scale = Normalize(*np.quantile(std[name], [0, 0.99]))
        _draw(below, nodes, std[name], STD_COLOURS, scale, unit, "max")
        below.plot(*at.T, ".", color="white", markersize=1.5)
        below.set_title(f"{name}: standard deviation")
    for ax in np.asarray(axes).flat:
        ax.set_aspect("equal")
    for ax in np.asarray(axes)[-1]:
        ax.set_xlabel(f"{nodes.columns[0]} ({length_unit})")
    for ax in np.asarray(axes)[:, 0]:
        ax.set_ylabel(f"{nodes.columns[1]} ({length_unit})")
    return np.asarray(axes)


def _draw(
    ax: Axes,
    nodes: pd.DataFrame,
    values: pd.Series,
    colours: str,
    scale: Normalize,
    unit: str,
    extend: str,
) -> None:
    x, y, table = _mesh(nodes.to_numpy(), values.to_numpy())
    image = ax.pcolormesh(x, y, table, cmap=colours, norm=scale, rasterized=True)
    bar = ax.figure.colorbar(image, ax=ax, extend=extend, shrink=0.85)
    bar.ax.set_title(unit, fontsize="small")


def _mesh(
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
