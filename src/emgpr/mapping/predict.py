"""Predictions on grids and at the coordinates of a Dataset, following the CF conventions."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from emgpr import geo
from emgpr.dask import lazy_cells
from emgpr.inputs import InputSpec, is_lazy
from emgpr.io import read_region
from emgpr.mapping.variables import MapVariables, map_title, units_by_name
from emgpr.optional_imports import import_optional
from emgpr.user_warnings import warn
from emgpr.version import __version__

Array = np.ndarray


def predict_grid(
    variables: MapVariables,
    *,
    spacing: float | Sequence[float] | None,
    shape: tuple[int, int] | None,
    bounds: Sequence[float] | None,
    inside: Any,
    crs: str | None,
    units: str | Mapping[str, str] | None,
) -> Any:
    """Predict on a regular grid over two inputs; see `GPRegressor.predict_grid`."""
    inputs = variables.predictor.inputs
    names, columns = inputs.names, inputs.coordinates
    if len(names) != 2:
        raise ValueError(
            f"predict_grid needs a model with two input columns, but this model has {len(names)}: "
            f"{names}. Use predict_dataset with a Dataset that contains all input columns."
        )
    by_name = units_by_name(units, variables.outputs, names, inputs.units)
    model_crs, map_crs = inputs.crs, crs or inputs.crs
    degrees = geo.is_geographic(map_crs)
    if model_crs is None and degrees:
        warn(str(geo.flat_degrees_warning(["lon", "lat"])))
    x = y = np.empty(0)
    if bounds is None:
        x, y = columns.xy(variables.predictor.posterior.extent)
        if model_crs is not None and map_crs is not None:
            x, y = geo.transform_coordinates(x, y, model_crs, map_crs)
    grid = geo.regular_grid(x, y, spacing, shape, bounds, degrees=degrees)
    x, y = grid.cells()
    is_inside = np.ones(len(x), bool)
    if inside is not None:
        is_inside = _is_inside(inside, x, y, map_crs, degrees)
        geo.check_region_covered(grid, is_inside)
    if model_crs is not None and map_crs is not None:
        x, y = geo.transform_coordinates(x, y, map_crs, model_crs)
        is_inside &= np.isfinite(x) & np.isfinite(y)
    cells = np.empty((len(x), 2))
    cells[:, columns.x], cells[:, columns.y] = x, y
    axes = [names[columns.x], names[columns.y]]
    dims, coordinates = geo.grid_coordinates(grid, axes, map_crs, by_name)
    values = variables.cells(cells, is_inside)
    values = values.reshape(*grid.shape, *values.shape[1:])
    mapped = variables.variables(values, dims, by_name)
    size = f"spacing={spacing!r}" if shape is None else f"shape={shape!r}"
    return _as_dataset(variables, coordinates, mapped, map_crs, f"predict_grid({size})")


def predict_dataset(
    variables: MapVariables, data: Any, *, units: str | Mapping[str, str] | None
) -> Any:
    """Predict at every cell of a Dataset; see `GPRegressor.predict_dataset`."""
    xarray = import_optional("xarray", "A map")
    inputs = variables.predictor.inputs
    columns = [_dates_as_days(_find_input(data, name, inputs)) for name in inputs.names]
    if not any(column.dims for column in columns):
        raise ValueError(
            "The inputs in the Dataset have no dimensions; expected at least one input along a "
            "dimension."
        )
    by_name = units_by_name(units, variables.outputs, inputs.names, inputs.units)
    dims = _map_dims(columns, inputs.names)
    if is_lazy(data):
        values = lazy_cells(
            variables.for_worker().cells, columns, dims, data.chunksizes, len(variables.outputs),
            variables.n_values, variables.dtype,
        )  # fmt: skip
    else:
        columns = [column.transpose(*dims) for column in xarray.broadcast(*columns)]
        cells = np.column_stack([np.asarray(column.values, float).ravel() for column in columns])
        values = variables.cells(cells)
        values = values.reshape(*columns[0].shape, *values.shape[1:])
    kept = {name: data[name] for name in data.coords if set(data[name].dims) <= set(dims)}
    mapped = variables.variables(values, dims, by_name)
    return _as_dataset(variables, kept, mapped, inputs.crs, "predict_dataset")


def _as_dataset(
    variables: MapVariables,
    coordinates: Mapping[str, Any],
    mapped: Mapping[str, geo.Variable],
    crs: str | None,
    call: str,
) -> Any:
    estimator = variables.predictor.inputs.estimator
    n_sites = variables.predictor.posterior.n_sites
    return geo.cf_dataset(
        dict(coordinates) | variables.coordinates(),
        mapped,
        crs=crs,
        title=map_title(variables.outputs),
        source=f"Gaussian process regression ({estimator}) on {n_sites} sites, emgpr {__version__}",
        comment=variables.comment(),
        history=f"{estimator}.{call}",
    )


def _is_inside(
    region: Any, x: Float[Array, " M"], y: Float[Array, " M"], crs: str | None, degrees: bool
) -> Bool[Array, " M"]:
    """Tell which cells lie inside a region."""
    if callable(region):
        return np.array(region(x, y), dtype=bool)
    geometry, region_crs = read_region(region)
    wraps = geo.is_geographic(region_crs) if region_crs and crs else degrees
    return geo.points_inside(geometry, x, y, crs=crs, geometry_crs=region_crs, degrees=wraps)


def _map_dims(columns: Sequence[Any], names: Sequence[str]) -> tuple[str, ...]:
    """Return the dimensions of a map in the order recommended by CF: (time, y, x).

    If an input variable has both dimensions y and x, their order in it is kept. The order matters,
    because programs that ignore the names of dimensions assume that the last one is x.
    """
    by_ndim = sorted(columns, key=lambda column: -column.ndim)
    dims = list(dict.fromkeys(dim for column in by_ndim for dim in column.dims))
    if len(names) < 2:
        return tuple(dims)
    coordinates = geo.CoordinateColumns.from_names(names, None)
    x, y = columns[coordinates.x].dims, columns[coordinates.y].dims
    spatial = [dim for dim in dims if dim in {*x, *y}]
    separate = len(x) == len(y) == 1
    if separate and not any({*x, *y} <= {*column.dims} for column in columns):
        spatial = [*y, *x]
    return (*(dim for dim in dims if dim not in spatial), *spatial)


def _dates_as_days(column: Any) -> Any:
    """Return dates as days since 1970-01-01, as in tables, and other variables unchanged."""
    if column.dtype.kind != "M":
        return column
    return (column - np.datetime64("1970-01-01", "ns")) / np.timedelta64(1, "D")


def _find_input(data: Any, name: str, inputs: InputSpec) -> Any:
    """Return the Dataset's variable for an input, found by its name or its CF standard name."""
    if name in data.variables:
        return data[name]
    columns, names = inputs.coordinates, inputs.names
    if columns.degrees and name in (names[columns.x], names[columns.y]):
        standard_name = "longitude" if name == names[columns.x] else "latitude"
        for other in data.variables:
            if data[other].attrs.get("standard_name") == standard_name:
                return data[other]
    raise ValueError(
        f"The Dataset has no variable {name!r}, an input of this model ({names}); it has "
        f"{sorted(map(str, data.variables))}. Rename or add the variable."
    )
