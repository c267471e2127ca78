"""Stacked bars that show how each output's variance is divided among latents and noise."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from emgpr.estimators import MultiOutputGP, OnePassGP, ReadingsGP
from emgpr.plots.labels import CENTRED, part_labels, tick_labels
from emgpr.plots.panels import create_panel, output_positions

NOISE_COLOUR = "#BBBBBB"
MIN_LABELLED_SHARE = 0.06  # Narrower bars have no room for a number.


def variance_shares(
    model: MultiOutputGP | ReadingsGP | OnePassGP,
    *,
    outputs: Sequence[str] | str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the shares of each output's variance that are due to each latent and to the noise.

    The legend includes the length-scale of each latent. `outputs` selects the outputs to draw
    (default: all).
    """
    shares = model.variance_shares_.iloc[output_positions(model.output_names_, outputs)]
    rows = np.arange(len(shares))
    ax = create_panel(ax, (7, 1.2 + 0.42 * len(shares)))
    colours = [*plt.get_cmap("viridis")(np.linspace(0.08, 0.92, shares.shape[1] - 1)), NOISE_COLOUR]
    labels = part_labels(model.kernels_, list(map(str, shares.columns)))
    left = np.zeros(len(shares))
    for column, colour, label in zip(shares, colours, labels, strict=True):
        width = shares[column].to_numpy()
        ax.barh(rows, width, left=left, color=colour, label=label)
        text = CENTRED | {"fontsize": 8, "color": "white" if sum(to_rgb(colour)) < 1.4 else "black"}
        for row in np.flatnonzero(width >= MIN_LABELLED_SHARE).tolist():
            ax.text(left[row] + width[row] / 2, row, f"{100 * width[row]:.0f}", **text)
        left += width
    ax.set_yticks(rows, tick_labels(shares.index))
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set_xticks(np.linspace(0, 1, 5), [f"{p}%" for p in range(0, 101, 25)])
    ax.set_xlabel("share of variance")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
