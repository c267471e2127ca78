"""A plot of an ensemble's error against its batch size, as in Figures 1 and 2 of the paper."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from emgpr.plots.labels import BLUE, GREEN, PURPLE, VERMILLION
from emgpr.plots.panels import create_panel, style_axes

# Both colours and line styles differ, so that lines can be told apart in black and white.
REFERENCE_STYLES = ((VERMILLION, "--"), (GREEN, "-."), (PURPLE, ":"))


def error_against_batch_size(
    sizes: Int[np.ndarray, " S"],
    errors: Float[np.ndarray, " S"],
    references: Mapping[str, float] | None = None,
    *,
    label: str = "error",
    log: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Plot the error of an ensemble against its batch size.

    `references` is a dict with the errors of up to three other models, drawn as horizontal lines.
    `label` is the label of the error axis, which is logarithmic if `log` is True.
    """
    references = references or {}
    if len(references) > len(REFERENCE_STYLES):
        raise ValueError(
            f"references contains {len(references)} models; expected at most "
            f"{len(REFERENCE_STYLES)}, the number of line styles."
        )
    is_new, ax = ax is None, create_panel(ax, (6.4, 4.2))
    ax.plot(sizes, errors, "o-", color=BLUE, markersize=4, label="ensemble")
    for (name, error), (colour, style) in zip(references.items(), REFERENCE_STYLES, strict=False):
        ax.axhline(error, color=colour, linestyle=style, label=name)
    if log:
        ax.set_yscale("log")
    ax.set_xlabel("sites per batch, N₀")
    ax.set_ylabel(label)
    style_axes(ax)
    if is_new:  # On given axes, the caller adds a title and a legend.
        ax.set_title("Error of the ensemble against its batch size")
        ax.legend(frameon=False, fontsize="small")
    return ax
