"""Layout and labels of the panels of a figure, and selection of the outputs to draw."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes

from emgpr.estimators import MultiOutputGP, ReadingsGP
from emgpr.plots.labels import escape_math

Size = tuple[float, float]  # of a panel, in inches


def create_panels(n: int, axes: Any, size: Size, max_columns: int = 5, **share: Any) -> np.ndarray:
    """Return the given axes, or create a figure with n panels of the given size.

    All rows have the same number of panels, except the last row, which may have fewer. For example,
    14 panels are laid out in rows of 5, 5 and 4.
    """
    if axes is not None:
        given = np.ravel(np.asarray(axes, dtype=object))
        if len(given) != n:
            raise ValueError(f"axes contains {len(given)} axes; expected {n}, one for each panel.")
        return given
    rows = -(-n // max_columns)
    columns = -(-n // rows)
    figsize = (size[0] * columns, size[1] * rows)
    _, grid = plt.subplots(
        rows, columns, figsize=figsize, squeeze=False, layout="constrained", **share
    )
    return keep_first(grid, n)


def keep_first(grid: np.ndarray, n: int) -> np.ndarray:
    """Return the first n axes of a grid as a flat array, and remove the others."""
    for spare in grid.flat[n:]:
        spare.remove()
    return np.array(grid.flat[:n], dtype=object)


def create_panel(ax: Axes | None, size: Size) -> Axes:
    """Return the given axes, or create a figure with a single panel."""
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    return ax


def select_outputs(names: Sequence[str], outputs: Sequence[str] | str | None) -> list[str]:
    """Return the names of the outputs to draw: the given ones or, by default, all outputs."""
    names = [str(name) for name in names]
    if outputs is None:
        return names
    selected = [outputs] if isinstance(outputs, str) else [str(name) for name in outputs]
    unknown = [name for name in selected if name not in names]
    if unknown:
        raise ValueError(
            f"outputs contains {unknown[0]!r}, which is not an output of this model; expected one "
            f"of {', '.join(names)}."
        )
    if not selected:
        raise ValueError(f"outputs is empty; expected at least one of {', '.join(names)}.")
    return selected


def output_positions(
    names: Sequence[str], outputs: Sequence[str] | str | None
) -> Int[np.ndarray, " d"]:
    """Return the positions of the outputs to draw among all outputs.

    >>> output_positions(["Cd", "Ni", "Zn"], ["Zn", "Cd"])
    array([2, 0])
    """
    all_names = [str(name) for name in names]
    return np.array([all_names.index(name) for name in select_outputs(names, outputs)])


def check_keeps_readings(model: MultiOutputGP | ReadingsGP) -> None:
    """Raise an error if the estimator does not keep its training data."""
    if not isinstance(model, MultiOutputGP | ReadingsGP):
        raise TypeError(
            "This figure needs a fitted estimator that keeps its training readings (any but "
            f"OnePassGP); got {type(model).__name__}. Plot the result of its predict method, or "
            "fit EMGPR to a subset of the rows."
        )


def check_has_latents(model: MultiOutputGP) -> None:
    """Raise an error if the estimator has no latent processes that can be drawn."""
    if isinstance(model, ReadingsGP):
        raise ValueError(
            f"This figure shows the latent processes of a linear model; {type(model).__name__} has "
            "none. Use variance_shares or coregionalization, or fit EMGPR or LMC."
        )


def label_outer(panels: np.ndarray, x: str, y: str) -> None:
    """Label the y axis of the leftmost panels and the x axis of the lowest panel in each column."""
    placed = [(ax, ax.get_subplotspec()) for ax in panels.flat]
    for ax, spec in placed:
        is_lowest = spec is None or not any(
            other is not None
            and other.colspan == spec.colspan
            and other.rowspan.start > spec.rowspan.start
            for _, other in placed
        )
        if is_lowest:
            ax.set_xlabel(escape_math(x))
            ax.tick_params(labelbottom=True)
        if spec is None or spec.is_first_col():
            ax.set_ylabel(escape_math(y))


def style_axes(ax: Axes) -> None:
    """Remove the upper and right spines, and add a faint grid."""
    ax.grid(alpha=0.25)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
