"""Every output over the places between its readings: maps of two inputs, lines of one."""

from collections.abc import Sequence
from typing import Any, Literal

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from emgpr.plots.labels import BLUE, Units, is_log, literal, log_ticks, titled, with_unit, within
from emgpr.plots.panels import chosen, label_outer, panels, plain, with_readings
from emgpr.plots.surface import (
    as_fitted,
    as_on_paper,
    draw_surface,
    places,
    running_on,
    scale_of,
    shape_of,
)

PREDICTION_COLOURS, STD_COLOURS = "viridis", "cividis"  # both even in lightness, and safe
SEVERAL_ROWS = 5  # outputs side by side, at most


def maps(
    model: Any,
    nodes: Any = None,
    *,
    outputs: Sequence[str] | str | None = None,
    units: Units = None,
    statistic: Literal["median", "mean"] = "median",
    include_noise: bool = True,
    axes: Any = None,
) -> np.ndarray:
    """Maps of what a fitted model predicts, above, and of the standard deviation, below.

    `nodes` are the nodes of a regular grid, which may have holes: a frame with the inputs'
    columns, or an array (M, 2); if left out, a grid inside the outline of the training sites. The
    readings are drawn in the prediction's colours, on a logarithmic scale where the model
    works on logarithms. `units` gives those of outputs and inputs, as in `load_jura().units`.
    Returns axes of shape (2, D), as `axes` must be; of a model with one input (1, D), with lines,
    95% bands and the readings.
    """
    X, Y = with_readings(model).training_data()
    X = running_on(model, X)
    names, nodes = chosen(model.output_names_, outputs), places(X, nodes)
    inputs = as_fitted(model, nodes)
    if X.shape[1] == 1:
        drawn = panels(len(names), axes, size=(4.2, 3.0), sharex=True)
        quantiles = model.predict_quantiles(inputs, [0.025, 0.975], include_noise=include_noise)
        centre = model.predict(inputs, statistic=statistic, include_noise=include_noise)
        centre, *band = (np.reshape(part, (len(nodes), -1)) for part in (centre, *quantiles))
        for name, ax in zip(names, drawn, strict=True):
            d = model.output_names_.index(name)
            _line(ax, nodes, centre[:, d], [part[:, d] for part in band], X, Y[name])
            titled(ax, f"{literal(name)}: {statistic} and 95% band")
            ax.set_ylabel(within(ax, with_unit(name, units), side="y"))
            if is_log(model, name):
                ax.set_yscale("log")
                log_ticks(ax.yaxis)
            ax.set_xlabel(with_unit(nodes.columns[0], units))
        return drawn[None]
    answer = model.predict(
        inputs, return_std=True, statistic=statistic, include_noise=include_noise
    )
    centre, std = (np.reshape(part, (len(nodes), -1)) for part in answer)
    paper = as_on_paper(nodes)
    aspect, height = shape_of(paper, units)
    drawn = _two_rows(len(names), axes, 0.7 + 2.4 * height)
    for name, (above, below) in zip(names, drawn.T, strict=True):
        d = model.output_names_.index(name)
        made = Y[name].notna()
        at = X.loc[made, paper.columns].to_numpy()
        scale = scale_of(Y[name].to_numpy(), (0.02, 0.98), is_log(model, name))
        bars = [
            draw_surface(above, paper, centre[:, d], PREDICTION_COLOURS, scale, "both"),
            draw_surface(
                below, paper, std[:, d], STD_COLOURS, scale_of(std[:, d], (0, 0.99), False), "max"
            ),
        ]
        above.scatter(
            *at.T, c=Y.loc[made, name], cmap=PREDICTION_COLOURS, norm=scale, s=14,
            linewidths=0.4, edgecolors="white",
        )  # fmt: skip
        below.plot(*at.T, ".", color="white", markersize=1.5)
        titled(above, f"{literal(name)}: predicted {statistic}")
        titled(below, f"{literal(name)}: standard deviation")
        for bar in bars:
            bar.ax.set_title((units or {}).get(name, ""), fontsize="small")
    for ax in drawn.flat:
        ax.set_aspect(aspect)
    label_outer(drawn, *(with_unit(name, units) for name in paper.columns))
    return drawn


def _two_rows(n: int, axes: Any, height: float) -> np.ndarray:
    """(2, n) axes; of many outputs, several bands of two rows."""
    if axes is not None:
        return panels(2 * n, axes).reshape(2, n)
    bands = -(-n // SEVERAL_ROWS)
    columns = -(-n // bands)
    _, grid = plt.subplots(
        2 * bands, columns, figsize=(3.6 * columns, 2 * height * bands), squeeze=False, sharex=True,
        sharey=True, layout="constrained",
    )  # fmt: skip
    ordered = grid.reshape(bands, 2, columns).swapaxes(0, 1).reshape(2, -1)
    for spare in ordered[:, n:].flat:
        spare.remove()
    return ordered[:, :n]


def _line(
    ax: Axes,
    nodes: pd.DataFrame,
    centre: np.ndarray,
    band: list[np.ndarray],
    X: pd.DataFrame,
    readings: pd.Series,
) -> None:
    order = np.argsort(nodes.iloc[:, 0].to_numpy())
    x = nodes.iloc[order, 0].to_numpy()
    low, high = (part[order] for part in band)
    ax.fill_between(x, low, high, color=BLUE, alpha=0.2, linewidth=0)
    ax.plot(x, centre[order], color=BLUE)
    ax.plot(X.iloc[:, 0], readings, "o", color="black", markersize=3, alpha=0.6)
    plain(ax)
