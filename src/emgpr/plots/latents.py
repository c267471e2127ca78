"""Figures of the posterior of the latent processes, and of the weights of ensemble members."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.colors import Normalize

from emgpr.estimators import MultiOutputGP, OnePassGP
from emgpr.plots import labels
from emgpr.plots.labels import BLUE, VERMILLION, Units, known_units, latent_label, with_unit
from emgpr.plots.panels import (
    check_has_latents,
    create_panels,
    label_outer,
    output_positions,
    style_axes,
)
from emgpr.plots.surface import Locations, draw_band, draw_surface, label_map_axes
from emgpr.weights import aligned

N_OUTPUTS_IN_TITLE = 3
MIN_VARIANCE = 5e-3  # relative to the strongest process; weaker processes are not drawn


def latents(
    model: MultiOutputGP,
    nodes: Any = None,
    *,
    which: Sequence[int] | None = None,
    limit: int = 12,
    outputs: Sequence[str] | str | None = None,
    units: Units = None,
    resolution: int | None = None,
    axes: Any = None,
) -> np.ndarray:
    """Draw the posterior mean of each latent process, with its length-scale and largest weights.

    A latent of rank k has k processes a, b, … along the principal axes of its weights. The signs
    and directions of these processes are not identified; they are chosen as in `predict_latents`.
    The processes are dimensionless and have prior variance 1, so the weights are in standard
    deviations of the (transformed) outputs. `which` selects latents by number (default: all). Of
    their processes, the `limit` processes that contribute the most variance are drawn. `outputs`
    selects the outputs whose weights are shown (default: all). For `nodes` and `resolution`,
    see `maps`. Returns a flat array of axes.
    """
    check_has_latents(model)
    locations, units = Locations.build(model, nodes, resolution), known_units(model, units)
    kept = output_positions(model.output_names_, outputs)
    processes = strongest_processes(model.weights_, which, limit)
    W = aligned(model.weights_).mean(axis=0)
    names = labels.abbreviate(model.output_names_)
    means, stds = model.predict_latents(locations.X, return_std=True)
    is_line, sites = locations.is_line, locations.sites
    aspect, height = ("auto", 0.8) if is_line else locations.aspect(units)
    size = (3.9, 0.9 + 2.5 * height)
    panels = create_panels(len(processes), axes, size, 4, sharex=True, sharey=not is_line)
    for (q, j), ax in zip(processes, panels, strict=True):
        mean, std, weights = means[:, q, j], stds[:, q, j], W[q, :, j]
        largest = kept[np.argsort(-np.abs(weights[kept]), kind="stable")[:N_OUTPUTS_IN_TITLE]]
        shown = ", ".join(labels.with_minus(f"{names[d]} {weights[d]:+.2f}") for d in largest)
        label = latent_label(model.kernels_[q], q, j if W.shape[-1] > 1 else None)
        labels.set_title(ax, f"{label}\nweights: {shown}", "medium")
        if is_line:
            draw_band(ax, locations, mean, mean - 2 * std, mean + 2 * std)
            ax.plot(sites.iloc[:, 0], np.zeros(len(sites)), "k|", alpha=0.4)
        else:
            scale = max(float(np.abs(mean).max()), 1e-3) * np.array([-1, 1])
            draw_surface(ax, locations, mean, labels.DIVERGING, Normalize(*scale), "neither")
            ax.plot(*sites[locations.axes].to_numpy().T, "k.", markersize=1.5, alpha=0.6)
            ax.set_aspect(aspect)
    if is_line:
        label_outer(panels, with_unit(locations.axes[0], units), "latent process")
    else:
        label_map_axes(panels, locations, units)
    return panels


def member_weights(
    model: MultiOutputGP | OnePassGP,
    *,
    which: Sequence[int] | None = None,
    limit: int = 12,
    outputs: Sequence[str] | str | None = None,
    axes: Any = None,
) -> np.ndarray:
    """Draw the weights of each latent process in all ensemble members, and their mean.

    Members are drawn as points and their mean as a bar. Weights are identified only up to a sign
    or, for rank k > 1, a rotation, so the weights of all members are first aligned with the
    principal axes of their mean. Latent q has the same kernel in all members, so its weights can be
    compared. The processes and outputs to draw are selected as in `latents`. Returns a flat array
    of axes.
    """
    check_has_latents(model)
    kept = output_positions(model.output_names_, outputs)
    W = aligned(model.weights_)[:, :, kept]
    L, _, D, rank = W.shape
    processes = strongest_processes(model.weights_, which, limit)
    names = labels.tick_labels([model.output_names_[d] for d in kept])
    size = (max(3.0, 1.0 + 0.3 * D), 2.8 + 0.08 * max(max(map(len, names)) - 5, 0))
    panels = create_panels(len(processes), axes, size, 4, sharey=True)
    columns = np.arange(D)
    offsets = np.linspace(-0.25, 0.25, L) if L > 1 else np.zeros(1)  # so that points do not overlap
    x = (columns + offsets[:, None]).ravel()
    style = {"markersize": 4, "alpha": 0.5} if L > 1 else {"markersize": 5}
    for (q, j), ax in zip(processes, panels, strict=True):
        weights = W[:, q, :, j]
        ax.axhline(0, color="black", linewidth=0.8)
        ax.plot(x, weights.ravel(), "o", color=BLUE, markeredgewidth=0, **style)
        if L > 1:
            mean = weights.mean(axis=0)
            ax.hlines(mean, columns - 0.35, columns + 0.35, color=VERMILLION, linewidth=2)
        ax.set_xticks(columns, names, rotation=labels.tick_rotation(names))
        ax.set_xlim(-0.6, D - 0.4)
        label = latent_label(model.kernels_[q], q, j if rank > 1 else None)
        labels.set_title(ax, label, "medium")
        style_axes(ax)
    label_outer(panels, "", "weight (signs aligned)")
    if axes is None and L > 1 and len(panels) > 1:
        panels[0].figure.suptitle(f"Weights of the {L} members and their mean")
    return panels


def strongest_processes(
    weights: Float[np.ndarray, "L Q D k"], which: Sequence[int] | None, limit: int
) -> list[tuple[int, int]]:
    """Return the processes that contribute the most variance, as sorted pairs (latent, axis)."""
    W = aligned(weights)
    Q = W.shape[1]
    kept = range(Q) if which is None else list(which)
    if any(q not in range(Q) for q in kept):
        raise ValueError(f"which={list(kept)}; expected latents of this model, 0 to {Q - 1}.")
    variance = np.sum(W**2, axis=2).mean(axis=0)
    visible = variance > MIN_VARIANCE * variance.max(initial=0.0)
    processes = [(q, j) for q in kept for j in range(W.shape[-1]) if visible[q, j]]
    processes = processes or [(q, 0) for q in kept]
    return sorted(sorted(processes, key=lambda process: -variance[process])[:limit])
