"""Regular grids: the positions of columns and rows, over given bounds or around the data."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray

MOST = 50_000_000  # cells: more is a slip of the spacing, not a map
SLACK = 1e-6  # of a step: rounding must not lose the last row


class Grid(NamedTuple):
    """Positions of columns (x) and rows (y), increasing; cells go row by row."""

    x: Float[Array, " nx"]
    y: Float[Array, " ny"]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, columns."""
        return len(self.y), len(self.x)

    def cells(self) -> tuple[Float[Array, " M"], Float[Array, " M"]]:
        """x and y of every cell's centre."""
        x, y = np.meshgrid(self.x, self.y)
        return x.ravel(), y.ravel()


def regular(
    x: Float[Array, " N"],
    y: Float[Array, " N"],
    spacing: Any = None,
    shape: Any = None,
    bounds: Any = None,
    *,
    degrees: bool = False,
) -> Grid:
    """A grid around the sites (x, y), or over bounds = (west, south, east, north).

    With a `spacing` and no bounds, cells lie at multiples of it, so that grids of different
    data fit together. Longitudes may go on beyond 180, for a grid across the date line.

    >>> grid = regular(np.array([178.2, -179.1]), np.array([50.0, 51.0]), 1.0, degrees=True)
    >>> grid.x
    array([178., 179., 180., 181.])
    >>> regular(np.array([0.0, 4.0]), np.array([0.0, 2.0]), shape=(3, 5)).y
    array([0., 1., 2.])
    """
    if (spacing is None) == (shape is None):
        raise ValueError("Give either spacing, the distance of cells, or shape, (rows, columns).")
    west, south, east, north = (
        _around(unwrapped(x) if degrees else x, y) if bounds is None else _given(bounds, degrees)
    )
    if shape is not None:
        ny, nx = _counts(shape)
        _refuse_too_many(nx, ny)
        return Grid(np.linspace(west, east, nx), np.linspace(south, north, ny))
    step_x, step_y = _steps(spacing)
    snap = bounds is None
    _refuse_too_many((east - west) / step_x + 1, (north - south) / step_y + 1)
    columns, rows = _positions(west, east, step_x, snap), _positions(south, north, step_y, snap)
    if degrees:
        rows = rows[np.abs(rows) <= 90.0 + SLACK * step_y]
        columns = columns[columns < columns[0] + 360.0 - SLACK * step_x]  # no meridian twice
    return Grid(columns, rows)


def unwrapped(longitude: Float[Array, " N"]) -> Float[Array, " N"]:
    """Longitudes that run on across the date line: cut where the sites leave the widest gap.

    >>> unwrapped(np.array([179.0, -179.0]))
    array([179., 181.])
    >>> unwrapped(np.array([-10.0, 350.0, 20.0]))
    array([-10., -10.,  20.])
    """
    around = np.unique(longitude % 360.0)
    gaps = np.diff(around, append=around[0] + 360.0)
    first = around[(np.argmax(gaps) + 1) % len(around)]
    first = first - 360.0 if first >= 180.0 else first
    return first + (longitude - first + 1e-9) % 360.0 - 1e-9


def covered(grid: Grid, inside: Bool[Array, " M"]) -> None:
    """Refuse a region that no cell lies in."""
    if not inside.any():
        raise ValueError(
            f"No cell of the grid (x {grid.x[0]:g} to {grid.x[-1]:g}, y {grid.y[0]:g} to "
            f"{grid.y[-1]:g}, {grid.shape[0]} × {grid.shape[1]}) lies inside the region. Check "
            "that its coordinates are of the same system, or make the spacing smaller."
        )


def _around(x: Float[Array, " N"], y: Float[Array, " N"]) -> tuple[float, ...]:
    return float(x.min()), float(y.min()), float(x.max()), float(y.max())


def _given(bounds: Any, degrees: bool) -> tuple[float, ...]:
    try:
        west, south, east, north = (float(end) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds={bounds!r}; expected four numbers: (west, south, east, north), which is "
            "(least x, least y, greatest x, greatest y)."
        ) from None
    east = east + 360.0 if degrees and east < west else east
    if not (west <= east and south <= north and np.isfinite([west, south, east, north]).all()):
        raise ValueError(
            f"bounds={bounds!r} hold nothing; expected (west, south, east, north) with west ≤ east "
            "and south ≤ north. Only longitudes may go across the date line."
        )
    return west, south, east, north


def _steps(spacing: Any) -> Sequence[float]:
    steps = np.ravel(np.asarray(spacing, dtype=float))
    if len(steps) not in (1, 2) or not (steps > 0).all() or not np.isfinite(steps).all():
        raise ValueError(
            f"spacing={spacing!r}; expected a positive number, or two: along x and along y."
        )
    return [float(steps[0]), float(steps[-1])]


def _counts(shape: Any) -> tuple[int, int]:
    counts = np.ravel(shape)
    if len(counts) != 2 or not (np.mod(counts, 1) == 0).all() or (counts < 1).any():
        raise ValueError(f"shape={shape!r}; expected two whole numbers: (rows, columns).")
    return int(counts[0]), int(counts[1])


def _refuse_too_many(columns: int | float, rows: int | float) -> None:
    if columns * rows > MOST:
        raise ValueError(
            f"The grid would have {columns * rows:.3g} cells; at most {MOST} can be predicted at "
            "once. Check the spacing against the units of the coordinates, or give bounds."
        )


def _positions(low: float, high: float, step: float, snap: bool) -> Float[Array, " n"]:
    if snap:
        first, last = np.floor(low / step + SLACK), np.ceil(high / step - SLACK)
        return np.round(np.arange(first, max(first, last) + 1) * step, 12)
    return low + step * np.arange(int((high - low) / step + SLACK) + 1)
