"""Places and maps: reference systems, distances on the globe, regular grids, CF data sets.

Needs the extra `geo` (xarray, pyproj, shapely and file formats), imported when first used.
"""

from emgpr.geo.cf import dataset, grid_coordinates, variable_name
from emgpr.geo.extras import needed
from emgpr.geo.grids import Grid, covered, regular
from emgpr.geo.places import Places, columns_given, doubt_flat, longitude_latitude
from emgpr.geo.reference import LONGITUDE_LATITUDE, is_geographic, moved, reference
from emgpr.geo.regions import inside

__all__ = [
    "LONGITUDE_LATITUDE",
    "Grid",
    "Places",
    "columns_given",
    "covered",
    "dataset",
    "doubt_flat",
    "grid_coordinates",
    "inside",
    "is_geographic",
    "longitude_latitude",
    "moved",
    "needed",
    "reference",
    "regular",
    "variable_name",
]
