"""Where to draw: axes for so many panels, and which outputs have one."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes


def panels(
    n: int, axes: Any = None, *, most: int = 5, size: tuple[float, float] = (3.2, 3.0), **share: Any
) -> np.ndarray:
    """n axes: the given ones, or those of a new figure in rows of `most` at most.

    Rows are made alike in length: 14 panels are three rows of five, the last one short.
    """
    if axes is not None:
        given = np.ravel(np.asarray(axes, dtype=object))
        if len(given) != n:
            raise ValueError(f"axes holds {len(given)} axes; this picture has {n} panels.")
        return given
    rows = -(-n // most)
    columns = -(-n // rows)
    figsize = (size[0] * columns, size[1] * rows)
    _, grid = plt.subplots(
        rows, columns, figsize=figsize, squeeze=False, layout="constrained", **share
    )
    for spare in grid.flat[n:]:
        spare.remove()
    return np.array(grid.flat[:n], dtype=object)


def one_panel(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """The given axes, or those of a new figure."""
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    return ax


def chosen(names: Sequence[str], outputs: Sequence[str] | str | None) -> list[str]:
    """The outputs to draw, as asked for: all, one, or several."""
    names = [str(name) for name in names]
    if outputs is None:
        return names
    wanted = [outputs] if isinstance(outputs, str) else [str(name) for name in outputs]
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        what = f"{unknown[0]!r}, which is none" if unknown else "none"
        raise ValueError(f"outputs names {what}; this model has {', '.join(names)}.")
    return wanted


def with_readings(model: Any) -> Any:
    """The model, if it is one that has kept its readings."""
    if not hasattr(model, "training_data"):
        raise TypeError(
            f"this picture is of a fitted estimator that keeps its readings, such as EMGPR; got "
            f"{type(model).__name__}. Draw what its predict says, or fit EMGPR to some of the rows."
        )
    return model


def label_outer(drawn: np.ndarray, x: str, y: str) -> None:
    """Axis labels to the left of rows and below columns, some of which end sooner than others."""
    placed = [(ax, ax.get_subplotspec()) for ax in drawn.flat]
    for ax, spec in placed:
        under = [
            other
            for _, other in placed
            if spec
            and other
            and other.colspan == spec.colspan
            and other.rowspan.start > spec.rowspan.start
        ]
        if not under:
            ax.set_xlabel(x)
            ax.tick_params(labelbottom=True)
        if not spec or spec.is_first_col():
            ax.set_ylabel(y)


def plain(ax: Axes) -> None:
    """No frame above and to the right, and a faint grid."""
    ax.grid(alpha=0.25)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
