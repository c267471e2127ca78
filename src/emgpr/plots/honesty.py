"""Whether the uncertainty of predictions is honest: as often right as it says."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from emgpr.metrics import central_coverage
from emgpr.plots.labels import BLUE, GREY, SEVERAL, literal, short, titled
from emgpr.plots.panels import chosen, label_outer, one_panel, panels, plain
from emgpr.plots.predicted import found_by

LEVELS = np.linspace(0, 1, 101)[1:-1]


def coverage(
    checked: Any, *, outputs: Sequence[str] | str | None = None, ax: Axes | None = None
) -> Axes:
    """The share of readings inside their intervals, for intervals of every level.

    On the diagonal, uncertainty is honest; below it there is too little of it, above too
    much. The band is where independent readings would be, as many as of the output with the
    fewest, two standard errors to either side. Of more than seven outputs, the three farthest
    from the diagonal are named. `checked` as in `measured_against_predicted`.
    """
    found = found_by(checked)
    names = chosen(list(found.pit.columns), outputs)
    pit = found.pit[names].to_numpy()
    shares = central_coverage(pit, LEVELS)
    ax = one_panel(ax, (4.8, 4.4))
    fewest = (~np.isnan(pit)).sum(axis=0).min()
    error = 2 * np.sqrt(LEVELS * (1 - LEVELS) / fewest)
    ax.fill_between(
        LEVELS, np.maximum(LEVELS - error, 0), np.minimum(LEVELS + error, 1), color=GREY, alpha=0.2,
        linewidth=0, label="honest, ± 2 standard errors",
    )  # fmt: skip
    ax.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    farthest = np.argsort(-np.abs(shares - LEVELS[:, None]).max(axis=0), kind="stable")
    named = range(len(names)) if len(names) <= len(SEVERAL) else sorted(farthest[:3])
    if len(named) < len(names):
        others = [d for d in range(len(names)) if d not in named]
        lines = ax.plot(LEVELS, shares[:, others], color=GREY, linewidth=0.7)
        lines[0].set_label(f"{len(others)} others")
    for colour, d in zip(SEVERAL, named, strict=False):
        ax.plot(LEVELS, shares[:, d], color=colour, label=literal(short(names)[names[d]]))
    ax.set(
        xlim=(0, 1), ylim=(0, 1), xlabel="level of the interval", ylabel="share of readings inside"
    )
    ax.set_title(f"Coverage, cross-validated by {found.by}")
    ax.set_aspect("equal")
    ax.legend(loc="upper left", frameon=False, fontsize="small")
    plain(ax)
    return ax


def pit(
    checked: Any,
    *,
    outputs: Sequence[str] | str | None = None,
    bins: int = 10,
    axes: Any = None,
) -> np.ndarray:
    """Of every output, where in its predicted distribution the readings fell (PIT).

    Level, if the uncertainty is honest: two standard errors around that are shaded. High at both
    ends is too sure, high in the middle not sure enough, sloping is a bias. `checked` as in
    `measured_against_predicted`. Returns a flat array of axes, one an output.
    """
    found = found_by(checked)
    names = chosen(list(found.pit.columns), outputs)
    drawn = panels(len(names), axes, size=(2.8, 2.4), sharex=True, sharey=True)
    for name, ax in zip(names, drawn, strict=True):
        values = found.pit[name].dropna().to_numpy()
        n, p = max(len(values), 1), 1 / bins
        error = 2 * np.sqrt(p * (1 - p) / n) / p
        ax.axhspan(max(1 - error, 0), 1 + error, color=GREY, alpha=0.25, linewidth=0)
        count, edges = np.histogram(values, bins, (0, 1))
        ax.bar(edges[:-1], count / n / p, p, align="edge", color=BLUE, alpha=0.7, edgecolor="white")
        ax.axhline(1, color="black", linewidth=0.8)
        ax.set_xlim(0, 1)
        titled(ax, f"{literal(name)} ({len(values)})")
        plain(ax)
    label_outer(drawn, "probability below", "density")
    return drawn
