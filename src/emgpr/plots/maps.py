"""Plots of predictions: maps for models with two inputs, lines for models with one input."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from emgpr.estimators import MultiOutputGP, ReadingsGP
from emgpr.plots import labels
from emgpr.plots.labels import Units, known_units, shorten, with_unit
from emgpr.plots.panels import Size, create_panels, keep_first, select_outputs
from emgpr.plots.surface import (
    Locations,
    colour_scale,
    draw_band,
    draw_surface,
    label_map_axes,
)

# Perceptually uniform colour maps that colour-blind readers can distinguish.
PREDICTION_COLOURS, STD_COLOURS = "viridis", "cividis"
# The colour scales end at these quantiles of the readings and of the standard deviations.
PREDICTION_QUANTILES, STD_QUANTILES = (0.02, 0.98), (0.0, 0.99)
INTERVAL = (0.025, 0.975)  # probabilities of the 95% interval
MAX_FULL_SIZE_SITES = 300  # With more sites, their markers are smaller.
MAX_COLUMNS = 5  # number of maps side by side


def maps(
    model: MultiOutputGP | ReadingsGP,
    nodes: Any = None,
    *,
    outputs: Sequence[str] | str | None = None,
    units: Units = None,
    statistic: Literal["median", "mean"] = "median",
    include_noise: bool = True,
    resolution: int | None = None,
    axes: Any = None,
) -> np.ndarray:
    """Draw maps of the predictions of a fitted model and, below them, of the standard deviations.

    `nodes` holds the nodes of a regular grid, as a DataFrame with the input columns or an array of
    shape (M, 2). The grid may have holes. The default grid fills the convex hull of the training
    sites, and `resolution` is the number of nodes along its longer side or, for a model with one
    input, along the line. Readings have the same colour scale as the predictions. The scale is
    logarithmic for outputs with a log transform. `units` is a dict of the units of outputs and
    inputs, such as `load_jura().units`; the default is `model.units_`. Long axes in metres are
    labelled in km.

    Returns an array of axes of shape (2, D). For a model with one input, the array has shape
    (1, D), and the axes show predictions as lines, with 95% intervals and the readings.
    """
    locations, units = Locations.build(model, nodes, resolution), known_units(model, units)
    X, sites, (_, Y) = locations.X, locations.sites, model.training_data()
    names, scaler = select_outputs(model.output_names_, outputs), model.output_scaler_
    centre, std = model.predict(X, True, statistic=statistic, include_noise=include_noise)
    centre, std = (np.reshape(part, (len(X), -1)) for part in (centre, std))
    if locations.is_line:
        interval = model.predict_quantiles(X, INTERVAL, include_noise=include_noise)
        low, high = np.reshape(interval, (2, len(X), -1))
        panels = create_panels(len(names), axes, (4.2, 3.0), sharex=True)
        for name, ax in zip(names, panels, strict=True):
            d = scaler.names.index(name)
            draw_band(ax, locations, centre[:, d], low[:, d], high[:, d])
            ax.plot(sites.iloc[:, 0], Y[name], "ko", markersize=3, alpha=0.6)
            labels.set_title(ax, f"{shorten(name)}: {statistic} and 95% interval")
            ax.set_xlabel(labels.wrap_to_panel(ax, with_unit(sites.columns[0], units)))
            ax.set_ylabel(labels.wrap_to_panel(ax, with_unit(name, units), side="y"))
            if labels.is_log_transformed(scaler, name):
                ax.set_yscale("log")
                labels.set_log_ticks(ax.yaxis)
        return panels[None]
    aspect, height = locations.aspect(units)
    panels = _two_rows(len(names), axes, (3.6, 0.7 + 2.4 * height))
    for name, (above, below) in zip(names, panels.T, strict=True):
        d, observed = scaler.names.index(name), Y[name].notna()
        x, y = sites.loc[observed, locations.axes].to_numpy().T
        readings = Y.loc[observed, name].to_numpy()
        scale = colour_scale(
            readings, PREDICTION_QUANTILES, labels.is_log_transformed(scaler, name)
        )
        std_scale = colour_scale(std[:, d], STD_QUANTILES)
        bars = (
            draw_surface(above, locations, centre[:, d], PREDICTION_COLOURS, scale, "both"),
            draw_surface(below, locations, std[:, d], STD_COLOURS, std_scale, "max"),
        )
        colours: Any = {"cmap": PREDICTION_COLOURS, "norm": scale}
        # With many sites, smaller markers leave the predictions visible.
        shrink = min(1.0, np.sqrt(MAX_FULL_SIZE_SITES / len(x)))
        size = {"s": max(14 * shrink**2, 0.5), "linewidths": 0.4 * shrink}
        above.scatter(x, y, c=readings, edgecolors="white", **size, **colours)
        below.plot(x, y, "w.", markersize=max(1.5 * shrink, 0.5))
        labels.set_title(above, f"{shorten(name)}: predicted {statistic}")
        labels.set_title(below, f"{shorten(name)}: standard deviation")
        for bar in bars:
            bar.ax.set_title(labels.escape_math(units.get(name, "")), fontsize="small")
    for ax in panels.flat:
        ax.set_aspect(aspect)
    label_map_axes(panels, locations, units)
    return panels


def _two_rows(n: int, axes: Any, size: Size) -> np.ndarray:
    """Return an array of axes of shape (2, n).

    If a new figure has more than MAX_COLUMNS outputs, it consists of several pairs of rows.
    """
    if axes is not None:
        return create_panels(2 * n, axes, size).reshape(2, n)
    bands = -(-n // MAX_COLUMNS)
    columns = -(-n // bands)
    grid = create_panels(2 * bands * columns, None, size, columns, sharex=True, sharey=True)
    rows = grid.reshape(bands, 2, columns).swapaxes(0, 1).reshape(2, -1)
    return np.stack([keep_first(row, n) for row in rows])
