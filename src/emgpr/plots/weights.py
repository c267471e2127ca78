"""What the members of the ensemble learned, side by side."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from emgpr.plots.labels import BLUE, VERMILLION, literal, process_name, short, titled, upright
from emgpr.plots.latents import strongest
from emgpr.plots.panels import label_outer, panels, plain
from emgpr.weights import aligned


def member_weights(
    model: Any, *, which: Sequence[int] | None = None, limit: int = 12, axes: Any = None
) -> np.ndarray:
    """Every member's weight of every output on each latent process, and their mean.

    A point is a member, spread sideways so that all are seen; a bar is the mean. Weights are
    learned only up to a sign (of rank k, a rotation), so members are first turned towards the
    principal axes of what they have in common. A latent has one kernel for all members, so
    none need be matched. Panels are chosen as by `latents`. Returns a flat array of axes.
    """
    W = aligned(model.weights_)
    L, _, D, rank = W.shape
    processes = strongest(model, which, limit)
    names = [literal(name) for name in short(model.output_names_).values()]
    size = (max(3.0, 1.0 + 0.3 * D), 2.8 + 0.08 * max(max(map(len, names)) - 5, 0))
    drawn = panels(len(processes), axes, most=4, size=size, sharey=True)
    beside = np.linspace(-0.25, 0.25, L) if L > 1 else np.zeros(1)
    for (q, j), ax in zip(processes, drawn, strict=True):
        weights = W[:, q, :, j]
        at = np.arange(D)
        ax.axhline(0, color="black", linewidth=0.8)
        look = {"markersize": 4, "alpha": 0.5} if L > 1 else {"markersize": 5}
        places = (at + beside[:, None]).ravel()
        ax.plot(places, weights.ravel(), "o", color=BLUE, markeredgewidth=0, **look)
        if L > 1:
            ax.hlines(weights.mean(axis=0), at - 0.35, at + 0.35, color=VERMILLION, linewidth=2)
        ax.set_xticks(at, names, rotation=upright(names))
        ax.set_xlim(-0.6, D - 0.4)
        titled(ax, process_name(q, j, model.kernels_[q], rank), "medium")
        plain(ax)
    label_outer(drawn, "", "weight, sign aligned")
    if axes is None and L > 1 and len(drawn) > 1:
        drawn[0].figure.suptitle(f"Weights of {L} members, and their mean")
    return drawn
