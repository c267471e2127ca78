"""Predictions against what was measured."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from emgpr.estimators.findings import CrossValidation
from emgpr.plots.labels import (
    BLUE,
    VERMILLION,
    Units,
    literal,
    log_ticks,
    titled,
    with_unit,
    within,
)
from emgpr.plots.panels import chosen, panels, plain, with_readings


def measured_against_predicted(
    checked: Any,
    *,
    outputs: Sequence[str] | str | None = None,
    units: Units = None,
    log: bool | None = None,
    axes: Any = None,
) -> np.ndarray:
    """What was predicted of every reading when it was left out, with its 95% interval.

    `checked` is what `cross_validate` found, or a fitted model, which is then cross-validated by
    site. An interval that holds the reading crosses the diagonal; those that do not are drawn in
    another colour. Axes are logarithmic where intervals are more even on logarithms, unless `log`
    says. Returns a flat array of axes, one an output.
    """
    found = found_by(checked)
    names = chosen(list(found.truth.columns), outputs)
    summary = found.summary()
    drawn = panels(len(names), axes, size=(3.4, 3.5))
    for name, ax in zip(names, drawn, strict=True):
        parts = (found.truth, found.prediction, found.lower, found.upper)
        truth, centre, lower, upper = pd.concat(
            [part[name] for part in parts], axis=1
        ).dropna().to_numpy().T  # fmt: skip
        inside = (lower <= truth) & (truth <= upper)
        for rows, colour in ((inside, BLUE), (~inside, VERMILLION)):
            ax.vlines(truth[rows], lower[rows], upper[rows], color=colour, alpha=0.3, linewidth=0.8)
            ax.plot(truth[rows], centre[rows], "o", color=colour, markersize=2.5, alpha=0.8)
        ends = np.array([min(truth.min(), centre.min()), max(truth.max(), centre.max())])
        ax.plot(ends, ends, color="black", linewidth=0.8)
        if _even_on_logs(centre, lower, upper) if log is None else log:
            ax.set(xscale="log", yscale="log")
            log_ticks(ax.xaxis)
            log_ticks(ax.yaxis)
        else:
            ax.ticklabel_format(useOffset=False)
            ax.locator_params(axis="x", nbins=5)
        n, mae, share = summary.loc[name, ["n", "mae", "coverage"]]
        said = f"MAE {mae:.3g}, {share:.0%} of {n:.0f} inside"
        titled(ax, f"{literal(name)}: {said}", "medium")
        ax.set(
            xlabel=within(ax, f"measured {with_unit(name, units)}"),
            ylabel=within(ax, f"predicted {with_unit(name, units)}", side="y"),
        )
        plain(ax)
    return drawn


def found_by(checked: Any) -> CrossValidation:
    """What cross-validation found: given, or by the model that is."""
    if isinstance(checked, CrossValidation):
        return checked
    return with_readings(checked).cross_validate()


def _even_on_logs(centre: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> bool:
    """Whether intervals reach as far up as down on logarithms, rather than as they are."""
    if not len(lower) or lower.min() <= 0 or (upper <= centre).any() or (centre <= lower).any():
        return False
    plain_ratio = np.log((upper - centre) / (centre - lower))
    log_ratio = np.log(np.log(upper / centre) / np.log(centre / lower))
    # Rounding apart: intervals may be even both ways where they are narrow.
    return bool(np.abs(log_ratio).mean() < 0.9 * np.abs(plain_ratio).mean() - 1e-6)
