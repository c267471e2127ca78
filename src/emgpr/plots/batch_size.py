"""How the size of the mini-batches matters: the paper's Figures 1 and 2."""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float, Int
from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart by colour-blind readers; line styles for grey prints.
ENSEMBLE_COLOUR = "#0072B2"
REFERENCE_STYLES = (("#D55E00", "--"), ("#009E73", "-."), ("#CC79A7", ":"))


def error_against_batch_size(
    sizes: Int[np.ndarray, " S"],
    errors: Float[np.ndarray, " S"],
    references: Mapping[str, float],
    *,
    log: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """An ensemble's error for every batch size, with models that have none as level lines.

    With `log` the error axis is logarithmic, for errors of very different sizes.
    """
    if len(references) > len(REFERENCE_STYLES):
        raise ValueError(
            f"{len(references)} references; at most {len(REFERENCE_STYLES)} can be told apart."
        )
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.plot(sizes, errors, "o-", color=ENSEMBLE_COLOUR, markersize=4, label="ensemble")
    for (name, error), (colour, style) in zip(references.items(), REFERENCE_STYLES, strict=False):
        ax.axhline(error, color=colour, linestyle=style, label=name)
    if log:
        ax.set_yscale("log")
    ax.set_xlabel("sites in a mini-batch, N₀")
    ax.grid(alpha=0.25)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
