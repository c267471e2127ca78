"""Calibration plots for cross-validated predictions: interval coverage and PIT histograms."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from emgpr.cross_validation import CrossValidation
from emgpr.estimators import MultiOutputGP, ReadingsGP
from emgpr.metrics import central_coverage
from emgpr.plots.labels import BLUE, GREY, PALETTE, set_title, shorten, tick_labels
from emgpr.plots.panels import create_panel, create_panels, label_outer, select_outputs, style_axes
from emgpr.plots.predicted_vs_observed import cross_validation_of

LEVELS = np.linspace(0, 1, 101)[1:-1]
N_NAMED = 3  # number of outputs in the legend if there are more outputs than colours


def coverage(
    results: CrossValidation | MultiOutputGP | ReadingsGP,
    *,
    outputs: Sequence[str] | str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Plot the share of readings inside their prediction intervals against the nominal level.

    For a calibrated model, the line follows the diagonal. A line below the diagonal means that the
    intervals are too narrow, and a line above it that they are too wide. The band around the
    diagonal shows ± 2 standard errors for the output with the fewest readings, assuming independent
    readings. If there are more than seven outputs, the legend names only the three whose lines are
    farthest from the diagonal. For `results`, see `measured_against_predicted`.
    """
    found = cross_validation_of(results)
    names = select_outputs(list(found.pit.columns), outputs)
    pit = found.pit[names].to_numpy()
    shares = central_coverage(pit, LEVELS)
    ax = create_panel(ax, (4.8, 4.4))
    error = 2 * np.sqrt(LEVELS * (1 - LEVELS) / (~np.isnan(pit)).sum(axis=0).min())
    low, high = np.maximum(LEVELS - error, 0), np.minimum(LEVELS + error, 1)
    label = "calibrated, ± 2 standard errors"
    ax.fill_between(LEVELS, low, high, color=GREY, alpha=0.2, linewidth=0, label=label)
    ax.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    named = list(range(len(names)))
    if len(names) > len(PALETTE):
        farthest = np.argsort(-np.abs(shares - LEVELS[:, None]).max(axis=0), kind="stable")
        named = sorted(farthest[:N_NAMED].tolist())
        others = np.delete(shares, named, axis=1)
        lines = ax.plot(LEVELS, others, color=GREY, linewidth=0.7)
        lines[0].set_label(f"{others.shape[1]} others")
    labels = tick_labels(names)
    for colour, d in zip(PALETTE, named, strict=False):
        ax.plot(LEVELS, shares[:, d], color=colour, label=labels[d])
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="nominal coverage", ylabel="empirical coverage")
    ax.set_title(f"Coverage, cross-validated by {found.by}")
    ax.set_aspect("equal")
    ax.legend(loc="upper left", frameon=False, fontsize="small")
    style_axes(ax)
    return ax


def pit(
    results: CrossValidation | MultiOutputGP | ReadingsGP,
    *,
    outputs: Sequence[str] | str | None = None,
    bins: int = 10,
    axes: Any = None,
) -> np.ndarray:
    """Draw a histogram of the probability integral transform (PIT) for each output.

    The PIT of a reading is the predicted probability of smaller values. If the predictions are
    calibrated, the histogram is uniform to within sampling error; the shaded band shows ± 2
    standard errors. The histogram is high at both ends if the predicted uncertainty is too small,
    high in the middle if it is too large, and sloped if the predictions are biased. For `results`,
    see `measured_against_predicted`. Returns a flat array of axes, one for each output.
    """
    found = cross_validation_of(results)
    names = select_outputs(list(found.pit.columns), outputs)
    panels = create_panels(len(names), axes, (2.8, 2.4), sharex=True, sharey=True)
    for name, ax in zip(names, panels, strict=True):
        values = found.pit[name].dropna().to_numpy()
        n, p = max(len(values), 1), 1 / bins
        error = 2 * np.sqrt(p * (1 - p) / n) / p
        ax.axhspan(max(1 - error, 0), 1 + error, color=GREY, alpha=0.25, linewidth=0)
        count, edges = np.histogram(values, bins, (0, 1))
        ax.bar(edges[:-1], count / n / p, p, align="edge", color=BLUE, alpha=0.7, edgecolor="white")
        ax.axhline(1, color="black", linewidth=0.8)
        ax.set_xlim(0, 1)
        set_title(ax, f"{shorten(name)} (n = {len(values)})")
        style_axes(ax)
    label_outer(panels, "PIT", "density")
    return panels
