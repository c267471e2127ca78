"""Geographic coordinates: reference systems, distances on the globe, grids, regions, CF data.

The optional packages (xarray, pyproj, shapely and others) are imported when first used.
"""

from emgpr.geo.cf import GRID_MAPPING, Variable, cf_dataset, grid_coordinates, variable_name
from emgpr.geo.coordinates import (
    CoordinateColumns,
    flat_degrees_warning,
    longitude_latitude,
    n_input_columns,
)
from emgpr.geo.grids import Grid, check_region_covered, regular_grid
from emgpr.geo.reference_systems import (
    LONGITUDE_LATITUDE,
    coordinate_system,
    is_geographic,
    transform_coordinates,
)
from emgpr.geo.regions import points_inside

__all__ = [
    "GRID_MAPPING",
    "LONGITUDE_LATITUDE",
    "CoordinateColumns",
    "Grid",
    "Variable",
    "cf_dataset",
    "check_region_covered",
    "coordinate_system",
    "flat_degrees_warning",
    "grid_coordinates",
    "is_geographic",
    "longitude_latitude",
    "n_input_columns",
    "points_inside",
    "regular_grid",
    "transform_coordinates",
    "variable_name",
]
