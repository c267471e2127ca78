"""How the size of the mini-batches matters: the paper's Figures 1 and 2."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

from emgpr.plots.labels import BLUE, GREEN, PURPLE, VERMILLION
from emgpr.plots.panels import one_panel, plain

REFERENCE_STYLES = ((VERMILLION, "--"), (GREEN, "-."), (PURPLE, ":"))  # styles for grey prints


def error_against_batch_size(
    sizes: Int[np.ndarray, " S"],
    errors: Float[np.ndarray, " S"],
    references: Mapping[str, float] | None = None,
    *,
    label: str = "error",
    log: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """An ensemble's error for every batch size, with models that have none as level lines.

    `label` says what error it is, and its unit. With `log` the error axis is logarithmic, for
    errors of very different sizes.
    """
    references = references or {}
    if len(references) > len(REFERENCE_STYLES):
        raise ValueError(
            f"{len(references)} references; at most {len(REFERENCE_STYLES)} can be told apart."
        )
    own, ax = ax is None, one_panel(ax, (6.4, 4.2))
    ax.plot(sizes, errors, "o-", color=BLUE, markersize=4, label="ensemble")
    for (name, error), (colour, style) in zip(references.items(), REFERENCE_STYLES, strict=False):
        ax.axhline(error, color=colour, linestyle=style, label=name)
    if log:
        ax.set_yscale("log")
    ax.set_xlabel("sites in a mini-batch, N₀")
    ax.set_ylabel(label)
    plain(ax)
    if own:  # on axes that are given, titles and legends are for who gave them
        ax.set_title("Error of the ensemble against the size of its batches")
        ax.legend(frameon=False, fontsize="small")
    return ax
