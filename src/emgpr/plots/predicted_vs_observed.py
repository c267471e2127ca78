"""Plots of cross-validated predictions against the readings."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr.cross_validation import CrossValidation
from emgpr.estimators import MultiOutputGP, ReadingsGP
from emgpr.plots import labels
from emgpr.plots.labels import BLUE, VERMILLION, Units, shorten
from emgpr.plots.panels import check_keeps_readings, create_panels, select_outputs, style_axes

Array = np.ndarray


def measured_against_predicted(
    results: CrossValidation | MultiOutputGP | ReadingsGP,
    *,
    outputs: Sequence[str] | str | None = None,
    units: Units = None,
    log: bool | None = None,
    axes: Any = None,
) -> np.ndarray:
    """Plot cross-validated predictions with their 95% intervals against the readings.

    `results` is the result of `cross_validate`, or a fitted model, which is then cross-validated
    by site. Intervals that contain the reading cross the diagonal; the other intervals have a
    different colour. By default, the axes are logarithmic for outputs whose intervals are more
    symmetric on a logarithmic scale. Returns a flat array of axes, one for each output.
    """
    found, units = cross_validation_of(results), labels.known_units(results, units)
    names = select_outputs(list(found.truth.columns), outputs)
    summary = found.summary()
    panels = create_panels(len(names), axes, (3.4, 3.5))
    for name, ax in zip(names, panels, strict=True):
        frames = (found.truth, found.prediction, found.lower, found.upper)
        columns = pd.concat([frame[name] for frame in frames], axis=1).dropna()
        truth, centre, lower, upper = columns.to_numpy().T
        inside = (lower <= truth) & (truth <= upper)
        for rows, colour in ((inside, BLUE), (~inside, VERMILLION)):
            ax.vlines(truth[rows], lower[rows], upper[rows], color=colour, alpha=0.3, linewidth=0.8)
            ax.plot(truth[rows], centre[rows], "o", color=colour, markersize=2.5, alpha=0.8)
        ends = np.array([min(truth.min(), centre.min()), max(truth.max(), centre.max())])
        ax.plot(ends, ends, color="black", linewidth=0.8)
        if _symmetric_on_logs(centre, lower, upper) if log is None else log:
            ax.set(xscale="log", yscale="log")
            labels.set_log_ticks(ax.xaxis)
            labels.set_log_ticks(ax.yaxis)
        else:
            ax.ticklabel_format(useOffset=False)
            ax.locator_params(axis="x", nbins=5)
        n, mae, share = summary.loc[name, ["n", "mae", "coverage"]]
        title = f"{shorten(name)}: MAE {mae:.3g}, {share:.0%} of {n:.0f} covered"
        labels.set_title(ax, title, "medium")
        label = labels.with_unit(name, units)
        ax.set_xlabel(labels.wrap_to_panel(ax, f"measured {label}"))
        ax.set_ylabel(labels.wrap_to_panel(ax, f"predicted {label}", side="y"))
        style_axes(ax)
    return panels


def cross_validation_of(results: CrossValidation | MultiOutputGP | ReadingsGP) -> CrossValidation:
    """Return the given cross-validation results, or cross-validate the given model by site."""
    if isinstance(results, CrossValidation):
        return results
    check_keeps_readings(results)
    return results.cross_validate()


def _symmetric_on_logs(
    centre: Float[Array, " n"], lower: Float[Array, " n"], upper: Float[Array, " n"]
) -> bool:
    """Tell whether intervals are more symmetric on a logarithmic scale than on a linear one."""
    if not len(lower) or lower.min() <= 0 or (upper <= centre).any() or (centre <= lower).any():
        return False
    linear = np.log((upper - centre) / (centre - lower))
    logarithmic = np.log(np.log(upper / centre) / np.log(centre / lower))
    # The margins allow for rounding, because narrow intervals are symmetric on both scales.
    return bool(np.abs(logarithmic).mean() < 0.9 * np.abs(linear).mean() - 1e-6)
