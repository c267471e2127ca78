"""Variograms and cross-variograms: what the readings show, and what the model has of it."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from emgpr.geo import is_geographic
from emgpr.plots.labels import BLUE, GREY, VERMILLION, Units, literal, titled
from emgpr.plots.panels import chosen, panels, plain, with_readings

FEW = 4  # outputs of which all pairs are drawn, unless asked otherwise
FINER = 4  # bins of the model's line, for one of the readings'


def variograms(
    model: Any,
    *,
    outputs: Sequence[str] | str | None = None,
    cross: bool | None = None,
    n_lags: int = 15,
    max_lag: float | None = None,
    kind: Literal["auto", "cross", "pseudo"] = "auto",
    units: Units = None,
    axes: Any = None,
) -> np.ndarray:
    """Empirical variograms (points) and the model's (lines), on the scale the model works on.

    That scale is after transforms, with variance 1 for each output. With `cross`, by default of
    four outputs or fewer, all pairs are drawn, as a triangle; otherwise each output alone. Points
    grow with their number of pairs of sites. Where hardly any site has both of two outputs, it is
    the pseudo cross-variogram, which says so (`emgpr.variograms`). `units` names the lags' unit
    by that of the first input. Returns a flat array of axes, in the order of `pairs`: of A, B
    and C (A, A), (B, A), (B, B), (C, A), …
    """
    names = chosen(with_readings(model).output_names_, outputs)
    triangle = len(names) <= FEW if cross is None else cross
    pairs = [(a, a) for a in names]
    if triangle:
        pairs = [(a, b) for i, a in enumerate(names) for b in names[: i + 1]]
    given = {"max_lag": max_lag, "kind": kind}
    found = model.variograms(pairs, n_lags=n_lags, **given)
    smooth = model.variograms(pairs, n_lags=FINER * n_lags, **given)
    drawn = _axes(len(names), len(pairs), axes)
    X, _ = model.training_data()
    unit = "km" if is_geographic(model.crs) else (units or {}).get(X.columns[0], "")
    most = found["pairs"].max()
    for (first, second), ax in zip(pairs, drawn, strict=True):
        points, line = (
            frame[(frame["first"] == first) & (frame["second"] == second)].dropna()
            for frame in (found, smooth)
        )
        _variogram(ax, points, line, most)
        pseudo = " (pseudo)" if set(points["kind"]) == {"pseudo"} else ""
        pair = dict.fromkeys((literal(first), literal(second)))  # one name of an output with itself
        titled(ax, " × ".join(pair) + pseudo, "medium")
        ax.set_xlabel(f"lag ({unit})" if unit else "lag")
        ax.set_ylabel("semivariance")
    drawn[0].legend(loc="lower right", frameon=False, fontsize="small")
    return drawn


def _variogram(ax: Axes, points: pd.DataFrame, line: pd.DataFrame, most: int) -> None:
    ax.plot(line["lag"], line["model"], color=VERMILLION, label="model")
    size = 6 + 30 * points["pairs"] / max(most, 1)
    ax.scatter(points["lag"], points["empirical"], s=size, color=BLUE, label="readings", zorder=3)
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set_xlim(left=0)
    plain(ax)


def _axes(n: int, wanted: int, axes: Any) -> np.ndarray:
    """Of a new figure, a triangle if all pairs of n outputs are wanted."""
    if axes is not None or wanted == n:
        return panels(wanted, axes, size=(3.0, 2.6))
    grid = panels(n * n, most=n, size=(3.0, 2.6)).reshape(n, n)
    for spare in grid[np.triu_indices(n, k=1)]:
        spare.remove()
    return grid[np.tril_indices(n)]
