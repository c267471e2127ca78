"""What every output is made of: a picture of the model."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from emgpr.plots.labels import latent_name, literal, short

NOISE_COLOUR = "#BBBBBB"


def variance_shares(model: Any, *, ax: Axes | None = None) -> Axes:
    """Of each output, the share of its variance from each latent process and from the noise.

    `model` is a fitted estimator. Latents are named by their length-scales where they have one.
    """
    shares: pd.DataFrame = model.variance_shares_
    if ax is None:
        height = 1.2 + 0.42 * len(shares)
        _, ax = plt.subplots(figsize=(7, height), layout="constrained")
    Q = shares.shape[1] - 1
    colours = [*plt.get_cmap("viridis")(np.linspace(0.08, 0.92, Q)), NOISE_COLOUR]
    labels = [*(latent_name(q, kernel) for q, kernel in enumerate(model.kernels_)), "noise"]
    left = np.zeros(len(shares))
    for column, colour, label in zip(shares, colours, labels, strict=True):
        width = shares[column].to_numpy()
        ax.barh(np.arange(len(shares)), width, left=left, color=colour, label=label)
        for row in np.flatnonzero(width >= 0.06).tolist():
            dark = sum(colour[:3]) < 1.4 if not isinstance(colour, str) else False
            ax.text(
                left[row] + width[row] / 2, row, f"{100 * width[row]:.0f}", ha="center",
                va="center", fontsize=8, color="white" if dark else "black",
            )  # fmt: skip
        left += width
    ax.set_yticks(np.arange(len(shares)), [literal(name) for name in short(shares.index).values()])
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set_xticks(np.linspace(0, 1, 5), [f"{p}%" for p in range(0, 101, 25)])
    ax.set_xlabel("share of variance")
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
