"""Files in and out: tables (CSV, Parquet, NetCDF), maps (NetCDF, GeoTIFF), regions (GeoJSON)."""

from emgpr.io.maps import read_map, write_map
from emgpr.io.regions import Region, read_region
from emgpr.io.tables import read_table, without_codes, write_table

__all__ = [
    "Region",
    "read_map",
    "read_region",
    "read_table",
    "without_codes",
    "write_map",
    "write_table",
]
