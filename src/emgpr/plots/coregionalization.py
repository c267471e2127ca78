"""Heat maps of the correlations between outputs, and of each latent's contribution to them."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from emgpr.estimators import MultiOutputGP, ReadingsGP
from emgpr.plots import labels
from emgpr.plots.panels import check_keeps_readings, create_panels, output_positions

MAX_OUTPUTS_WITH_NUMBERS = 16  # With more, numbers in the cells would be too small to read.
MAX_OUTPUTS_LARGE_NUMBERS = 6
MISSING_COLOUR = "#DDDDDD"


def coregionalization(
    model: MultiOutputGP | ReadingsGP,
    *,
    by_latent: bool | None = None,
    limit: int = 8,
    outputs: Sequence[str] | str | None = None,
    axes: Any = None,
) -> np.ndarray:
    """Draw the correlations of the signals at one location, and each latent's contribution.

    The first panel shows the correlation matrix that corresponds to the covariance
    Σ_q B_q k_q(x, x). The panels of the latents sum to this matrix, so their diagonals show each
    latent's share of the signal variance. If correlated noise was fitted, the last panel shows its
    correlations. `by_latent` determines whether there is a panel for each latent; the default is
    True for up to `limit` latents. `outputs` selects the outputs to draw (default: all). All
    correlations are on the standardised scale. Returns a flat array of axes.
    """
    check_keeps_readings(model)
    kept = output_positions(model.output_names_, outputs)
    parts = model.signal_correlations()
    tables = {"correlation of signals": parts.sum(axis=0)}
    if len(parts) > 1 and (len(parts) <= limit if by_latent is None else by_latent):
        titles = labels.part_labels(model.kernels_, list(map(str, model.variance_shares_.columns)))
        tables |= dict(zip(titles, parts, strict=False))  # the last title is that of the noise
    noise = noise_correlation(model)
    if noise is not None:
        tables["correlation of noise"] = noise
    names = labels.tick_labels([model.output_names_[d] for d in kept])
    side = max(2.8, 0.8 + 0.42 * len(names)) + 0.08 * max(max(map(len, names)) - 5, 0)
    panels = create_panels(len(tables), axes, (side, side), 4)
    for (title, table), ax in zip(tables.items(), panels, strict=True):
        image = _draw_heat_map(ax, table[np.ix_(kept, kept)], names)
        labels.set_title(ax, title, "medium")
    panels[0].figure.colorbar(image, ax=list(panels), shrink=0.8, label="correlation")
    return panels


def noise_correlation(model: MultiOutputGP | ReadingsGP) -> Float[np.ndarray, "D D"] | None:
    """Return the noise correlations between outputs, or None if the noise is independent."""
    noise = np.asarray(model.noise_)
    if noise.ndim < 2:
        return None
    std = np.sqrt(np.diagonal(noise))
    # For an output without noise, the correlation is undefined (NaN).
    with np.errstate(invalid="ignore", divide="ignore"):
        return noise / np.outer(std, std)


def _draw_heat_map(ax: Axes, table: Float[np.ndarray, "D D"], names: list[str]) -> AxesImage:
    colours = plt.get_cmap(labels.DIVERGING).with_extremes(bad=MISSING_COLOUR)
    image = ax.imshow(
        np.ma.masked_invalid(table), cmap=colours, vmin=-1, vmax=1, interpolation="nearest"
    )
    D = len(names)
    ax.set_xticks(np.arange(D), names, rotation=labels.tick_rotation(names))
    ax.set_yticks(np.arange(D), names)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    if D > MAX_OUTPUTS_WITH_NUMBERS:
        return image
    is_large = D <= MAX_OUTPUTS_LARGE_NUMBERS
    for (row, column), value in np.ndenumerate(table):
        text = "–" if np.isnan(value) else labels.with_minus(f"{value:.2f}")
        text = text if is_large else text.replace("0.", ".", 1)
        colour = "white" if abs(value) > 0.65 else "black"
        ax.text(column, row, text, fontsize=8 if is_large else 6.5, color=colour, **labels.CENTRED)
    return image
