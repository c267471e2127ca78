"""Empirical and fitted variograms and cross-variograms."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from emgpr.estimators import MultiOutputGP, ReadingsGP
from emgpr.inspection import variogram_warnings
from emgpr.plots.labels import (
    BLUE,
    GREY,
    VERMILLION,
    Units,
    escape_math,
    known_units,
    length_unit,
    set_length_ticks,
    set_title,
    shorten,
)
from emgpr.plots.panels import check_keeps_readings, create_panels, select_outputs, style_axes
from emgpr.user_warnings import warn

MAX_OUTPUTS_IN_PAIRS = 4  # With more outputs, cross-variograms are not drawn by default.
MODEL_LAGS = 4  # points of the fitted line per empirical lag
PANEL_SIZE = (3.0, 2.6)


def variograms(
    model: MultiOutputGP | ReadingsGP,
    *,
    outputs: Sequence[str] | str | None = None,
    cross: bool | None = None,
    n_lags: int = 15,
    max_lag: float | None = None,
    kind: Literal["auto", "cross", "pseudo"] = "auto",
    units: Units = None,
    axes: Any = None,
) -> np.ndarray:
    """Draw empirical variograms as points and fitted variograms as lines.

    Both are on the standardised scale, on which transformed outputs have variance 1. If `cross` is
    True, cross-variograms are drawn as well, and the panels form a triangle; this is the default
    for up to four outputs. Larger points represent more pairs of sites. If very few sites have
    readings of both outputs, the pseudo cross-variogram is drawn instead, and its title says so
    (see `emgpr.variograms`). The lag is labelled with the unit of the first input in `units`, by
    default `model.units_`. There is a warning if a fitted variogram is more than twice or less
    than half as high as the empirical one at large lags.

    Returns a flat array of axes. For outputs A, B and C, the order is (A, A), (B, A), (B, B),
    (C, A), …
    """
    check_keeps_readings(model)
    names = select_outputs(model.output_names_, outputs)
    pairs = pairs_of(names, cross)
    options: dict[str, Any] = {"max_lag": max_lag, "kind": kind}
    empirical = model.variograms(pairs, n_lags=n_lags, **options)
    fitted = model.variograms(pairs, n_lags=MODEL_LAGS * n_lags, **options)
    panels = _create_axes(len(names), len(pairs), axes)
    first_input = model.training_data()[0].columns[0]
    is_km = model.input_spec_.coordinates.degrees
    unit = "km" if is_km else known_units(model, units).get(first_input, "")
    unit, unit_size = length_unit(unit, float(empirical["lag"].max()))
    for message in variogram_warnings(empirical):
        warn(f"{message} Try another kernel.")
    max_pairs = max(empirical["pairs"].max(), 1)
    for pair, ax in zip(pairs, panels, strict=True):
        points, line = (
            frame[(frame["first"] == pair[0]) & (frame["second"] == pair[1])].dropna()
            for frame in (empirical, fitted)
        )
        ax.plot(line["lag"], line["model"], color=VERMILLION, label="model")
        size = 6 + 30 * points["pairs"] / max_pairs
        ax.scatter(
            points["lag"], points["empirical"], s=size, color=BLUE, label="readings", zorder=3
        )
        ax.axhline(0, color=GREY, linewidth=0.8)
        ax.set_xlim(left=0)
        style_axes(ax)
        title = " × ".join(
            map(shorten, dict.fromkeys(pair))
        )  # A variogram of one output has a single name.
        set_title(ax, title + " (pseudo)" * (set(points["kind"]) == {"pseudo"}), "medium")
        ax.set_xlabel(escape_math(f"lag ({unit})") if unit else "lag")
        set_length_ticks(ax.xaxis, unit_size)
        ax.set_ylabel("semivariance")
    panels[0].legend(loc="lower right", frameon=False, fontsize="small")
    return panels


def pairs_of(names: Sequence[str], cross: bool | None = None) -> list[tuple[str, str]]:
    """Return the pairs of outputs to draw: all pairs, or only each output with itself."""
    if len(names) <= MAX_OUTPUTS_IN_PAIRS if cross is None else cross:
        return [(a, b) for i, a in enumerate(names) for b in names[: i + 1]]
    return [(a, a) for a in names]


def _create_axes(n_outputs: int, n_panels: int, axes: Any) -> np.ndarray:
    """Return the given axes, or new axes, which form a lower triangle if all pairs are drawn."""
    if axes is not None or n_panels == n_outputs:
        return create_panels(n_panels, axes, PANEL_SIZE)
    n = n_outputs
    grid = create_panels(n * n, None, PANEL_SIZE, n).reshape(n, n)
    for spare in grid[np.triu_indices(n, k=1)]:
        spare.remove()
    return grid[np.tril_indices(n)]
