"""The supported file formats, keyed by file extension."""

from emgpr.io import delimited_text, geotiff, netcdf, parquet
from emgpr.io.base import MapFormat, TableFormat

_TABLES: tuple[TableFormat, ...] = (delimited_text.FORMAT, parquet.FORMAT, netcdf.TABLES)
_MAPS: tuple[MapFormat, ...] = (netcdf.MAPS, geotiff.FORMAT)

TABLE_FORMATS = {ending: table for table in _TABLES for ending in table.endings}
MAP_FORMATS = {ending: map_format for map_format in _MAPS for ending in map_format.endings}
