"""How the outputs go together, as the model has it."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from emgpr.plots.labels import DIVERGING, latent_name, literal, short, titled, upright
from emgpr.plots.panels import panels, with_readings

WRITTEN = 16  # outputs up to which numbers are written into the cells


def coregionalization(
    model: Any, *, by_latent: bool | None = None, limit: int = 8, axes: Any = None
) -> np.ndarray:
    """Correlations of the outputs' signals at one place, and what each latent brings to them.

    The first panel is the correlation of Σ_q B_q k_q(x, x); those of the latents sum to it, so
    that a diagonal shows how much of an output's signal is a latent's. Last, where it was learned,
    the correlation of the noises of a sample. `by_latent` draws the latents too: unless it is
    set, up to `limit` of them, else none. All on the model's scale, after transforms.
    Returns a flat array of axes.
    """
    parts = with_readings(model).signal_correlations()
    few = len(parts) <= limit
    shown = range(len(parts)) if by_latent or (by_latent is None and few) else range(0)
    tables = {"correlation of signals": parts.sum(axis=0)}
    if len(parts) > 1:
        tables |= {latent_name(q, model.kernels_[q]): parts[q] for q in shown}
    noise = np.asarray(model.noise_)
    if noise.ndim == 2:
        spread = np.sqrt(np.diagonal(noise))
        tables["correlation of noises"] = noise / np.outer(spread, spread)
    names = [literal(name) for name in short(model.output_names_).values()]
    side = max(2.8, 0.8 + 0.42 * len(names)) + 0.08 * max(max(map(len, names)) - 5, 0)
    drawn = panels(len(tables), axes, most=4, size=(side, side))
    for (title, table), ax in zip(tables.items(), drawn, strict=True):
        image = _heat_map(ax, table, names)
        titled(ax, title, "medium")
    drawn[0].figure.colorbar(image, ax=list(drawn), shrink=0.8, label="correlation")
    return drawn


def _heat_map(ax: Axes, table: np.ndarray, names: list[str]) -> Any:
    colours = plt.get_cmap(DIVERGING).with_extremes(bad="#DDDDDD")
    image = ax.imshow(
        np.ma.masked_invalid(table), cmap=colours, vmin=-1, vmax=1, interpolation="nearest"
    )
    D = len(names)
    ax.set_xticks(np.arange(D), names, rotation=upright(names))
    ax.set_yticks(np.arange(D), names)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if D <= WRITTEN:
        for (row, column), value in np.ndenumerate(table):
            text = "–" if np.isnan(value) else f"{value:.2f}".replace("-", "−")
            if D > 6:  # 0.87 as .87, for room
                text = text.replace("0.", ".", 1)
            ax.text(
                column, row, text, ha="center", va="center", fontsize=8 if D <= 6 else 6.5,
                color="white" if abs(value) > 0.65 else "black",
            )  # fmt: skip
    return image
