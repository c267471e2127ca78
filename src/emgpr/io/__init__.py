"""Files of tables (CSV, Excel, Parquet, NetCDF), maps (NetCDF, GeoTIFF) and regions (GeoJSON).

To add a format, add a module that defines a `TableFormat` or `MapFormat`, and list it in
`registry.py`.
"""

from emgpr.io.geojson import Region, read_region
from emgpr.io.maps import read_map, write_map
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
