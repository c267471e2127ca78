"""The latent processes, as maps: what the outputs are mixed from."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import Normalize

from emgpr.plots.labels import (
    BLUE,
    DIVERGING,
    Units,
    literal,
    process_name,
    short,
    signed,
    titled,
    with_unit,
)
from emgpr.plots.panels import label_outer, panels, plain, with_readings
from emgpr.plots.surface import (
    as_fitted,
    as_on_paper,
    draw_surface,
    places,
    running_on,
    shape_of,
)
from emgpr.weights import aligned

HEARD = 3  # outputs named in a title


def latents(
    model: Any,
    nodes: Any = None,
    *,
    which: Sequence[int] | None = None,
    limit: int = 12,
    units: Units = None,
    axes: Any = None,
) -> np.ndarray:
    """Every latent process given the readings, with its length-scale and who hears it.

    A latent of rank k has k processes, a, b, …, along the principal axes of its weights, of which
    sign and direction are not learned; those drawn are the ones of `predict_latents`. They have
    no unit: before any reading their variance is 1. Under each name are the outputs with the
    largest weights, in standard deviations of the (transformed) output. The `limit` processes
    with the most variance are drawn, of the latents in `which` if that is given. `nodes`
    as in `maps`. Returns a flat array of axes.
    """
    X = running_on(model, with_readings(model).training_data()[0])
    nodes = places(X, nodes)
    processes = strongest(model, which, limit)
    W = aligned(model.weights_).mean(axis=0)
    names = [literal(name) for name in short(model.output_names_).values()]
    mean, std = model.predict_latents(as_fitted(model, nodes), return_std=True)
    flat, paper = X.shape[1] == 1, as_on_paper(nodes)
    aspect, height = ("auto", 0.8) if flat else shape_of(paper, units)
    size = (3.9, 0.9 + 2.5 * height)
    drawn = panels(len(processes), axes, most=4, size=size, sharex=True, sharey=not flat)
    for (q, j), ax in zip(processes, drawn, strict=True):
        name = process_name(q, j, model.kernels_[q], W.shape[-1])
        loudest = np.argsort(-np.abs(W[q, :, j]), kind="stable")[:HEARD]
        heard = ", ".join(f"{names[d]} {signed(W[q, d, j])}" for d in loudest)
        titled(ax, f"{name}\n{heard}", "medium")
        if flat:
            order = np.argsort(nodes.iloc[:, 0].to_numpy())
            x, m, s = nodes.iloc[order, 0], mean[order, q, j], std[order, q, j]
            ax.fill_between(x, m - 2 * s, m + 2 * s, color=BLUE, alpha=0.2, linewidth=0)
            ax.plot(x, m, color=BLUE)
            ax.plot(X.iloc[:, 0], np.zeros(len(X)), "|", color="black", alpha=0.4)
            plain(ax)
            continue
        reach = max(float(np.abs(mean[:, q, j]).max()), 1e-3)
        draw_surface(ax, paper, mean[:, q, j], DIVERGING, Normalize(-reach, reach), "neither")
        ax.plot(*X[paper.columns].to_numpy().T, ".", color="black", markersize=1.5, alpha=0.6)
        ax.set_aspect(aspect)
    right, up = (*(with_unit(name, units) for name in paper.columns), "process")[:2]
    label_outer(drawn, right, up)
    return drawn


def strongest(
    model: Any, which: Sequence[int] | None = None, limit: int | None = None
) -> list[tuple[int, int]]:
    """Latent and axis of the processes that bring the outputs the most variance, in order."""
    W = aligned(model.weights_)
    Q = W.shape[1]
    kept = range(Q) if which is None else list(which)
    if any(q not in range(Q) for q in kept):
        raise ValueError(f"which={list(kept)}; this model has latents 0 to {Q - 1}.")
    variance = np.sum(W**2, axis=2).mean(axis=0)
    # Half a per cent of the strongest is nothing that a picture could show.
    heard = [
        (q, j)
        for q in kept
        for j in range(W.shape[-1])
        if variance[q, j] > 5e-3 * variance.max(initial=0.0)
    ] or [(q, 0) for q in kept]
    return sorted(sorted(heard, key=lambda at: -variance[at])[:limit])
