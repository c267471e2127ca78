"""Regular grids within given bounds or around the data."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

Array = np.ndarray

MAX_CELLS = 50_000_000  # More cells are probably due to a mistake in the spacing.
STEP_TOLERANCE = 1e-6  # as a fraction of a step, so that rounding does not omit the last row


class Grid(NamedTuple):
    """Positions of columns (x) and rows (y), in increasing order; cells are listed row by row."""

    x: Float[Array, " nx"]
    y: Float[Array, " ny"]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.y), len(self.x)

    def cells(self) -> tuple[Float[Array, " M"], Float[Array, " M"]]:
        """Return x and y of the centre of every cell."""
        x, y = np.meshgrid(self.x, self.y)
        return x.ravel(), y.ravel()


def regular_grid(
    x: Float[Array, " N"],
    y: Float[Array, " N"],
    spacing: Any = None,
    shape: Any = None,
    bounds: Any = None,
    *,
    degrees: bool = False,
) -> Grid:
    """Return a grid around the points (x, y), or within bounds = (west, south, east, north).

    With `spacing` and without bounds, the positions of cells are multiples of the spacing, so that
    the cells of grids around different data coincide. In a grid across the date line, longitudes
    exceed 180.

    >>> grid = regular_grid(np.array([178.2, -179.1]), np.array([50.0, 51.0]), 1.0, degrees=True)
    >>> grid.x
    array([178., 179., 180., 181.])
    >>> regular_grid(np.array([0.0, 4.0]), np.array([0.0, 2.0]), shape=(3, 5)).y
    array([0., 1., 2.])
    """
    if (spacing is None) == (shape is None):
        raise ValueError(
            "Expected either spacing (the distance between cells) or shape (rows, columns); pass "
            "exactly one of them."
        )
    if bounds is None:
        x = unwrap_longitudes(x) if degrees else x
        west, south, east, north = (float(end) for end in (x.min(), y.min(), x.max(), y.max()))
    else:
        west, south, east, north = _read_bounds(bounds, degrees)
    if shape is not None:
        ny, nx = _read_shape(shape)
        _check_n_cells(nx, ny)
        return Grid(np.linspace(west, east, nx), np.linspace(south, north, ny))
    step_x, step_y = _read_spacing(spacing)
    snap = bounds is None
    _check_n_cells((east - west) / step_x + 1, (north - south) / step_y + 1)
    columns, rows = _positions(west, east, step_x, snap), _positions(south, north, step_y, snap)
    if degrees:
        rows = rows[np.abs(rows) <= 90.0 + STEP_TOLERANCE * step_y]
        # Include each meridian only once.
        columns = columns[columns < columns[0] + 360.0 - STEP_TOLERANCE * step_x]
    return Grid(columns, rows)


def unwrap_longitudes(longitude: Float[Array, " N"]) -> Float[Array, " N"]:
    """Make longitudes continuous across the date line, starting after the widest gap.

    >>> unwrap_longitudes(np.array([179.0, -179.0]))
    array([179., 181.])
    >>> unwrap_longitudes(np.array([-10.0, 350.0, 20.0]))
    array([-10., -10.,  20.])
    """
    sorted_longitudes = np.unique(longitude % 360.0)
    gaps = np.diff(sorted_longitudes, append=sorted_longitudes[0] + 360.0)
    first = sorted_longitudes[(np.argmax(gaps) + 1) % len(sorted_longitudes)]
    first = first - 360.0 if first >= 180.0 else first
    return first + (longitude - first + 1e-9) % 360.0 - 1e-9


def check_region_covered(grid: Grid, inside: Bool[Array, " M"]) -> None:
    """Raise ValueError if no cell lies inside the region."""
    if not inside.any():
        raise ValueError(
            f"No cell of the grid (x {grid.x[0]:g} to {grid.x[-1]:g}, y {grid.y[0]:g} to "
            f"{grid.y[-1]:g}, {grid.shape[0]} × {grid.shape[1]}) lies inside the region. Check "
            "that both have the same reference system, or reduce the spacing."
        )


def _read_bounds(bounds: Any, degrees: bool) -> tuple[float, ...]:
    try:
        west, south, east, north = (float(end) for end in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"bounds={bounds!r}; expected four numbers: (west, south, east, north), which are "
            "(lowest x, lowest y, highest x, highest y)."
        ) from None
    east = east + 360.0 if degrees and east < west else east
    if not (west <= east and south <= north and np.isfinite([west, south, east, north]).all()):
        raise ValueError(
            f"bounds={bounds!r} contain no cell; expected (west, south, east, north) with west ≤ "
            "east and south ≤ north. Only longitudes may cross the date line."
        )
    return west, south, east, north


def _read_spacing(spacing: Any) -> tuple[float, float]:
    steps = np.ravel(np.asarray(spacing, dtype=float))
    if len(steps) not in (1, 2) or not (steps > 0).all() or not np.isfinite(steps).all():
        raise ValueError(
            f"spacing={spacing!r}; expected a positive number, or two numbers, for x and y."
        )
    return float(steps[0]), float(steps[-1])


def _read_shape(shape: Any) -> tuple[int, int]:
    counts = np.ravel(shape)
    if len(counts) != 2 or not (np.mod(counts, 1) == 0).all() or (counts < 1).any():
        raise ValueError(f"shape={shape!r}; expected two whole numbers: (rows, columns).")
    return int(counts[0]), int(counts[1])


def _check_n_cells(columns: int | float, rows: int | float) -> None:
    if columns * rows > MAX_CELLS:
        raise ValueError(
            f"The grid would have {columns * rows:.3g} cells; expected at most {MAX_CELLS}. Check "
            "that the spacing is in the units of the coordinates, or pass bounds."
        )


def _positions(low: float, high: float, step: float, snap: bool) -> Float[Array, " n"]:
    if snap:
        first = np.floor(low / step + STEP_TOLERANCE)
        last = np.ceil(high / step - STEP_TOLERANCE)
        return np.round(np.arange(first, max(first, last) + 1) * step, 12)
    return low + step * np.arange(int((high - low) / step + STEP_TOLERANCE) + 1)
