"""The supported file formats, keyed by file extension."""

from emgpr.io import delimited_text, excel, geotiff, netcdf, parquet, zarr
from emgpr.io.base import MapFormat, TableFormat

_TABLES: tuple[TableFormat, ...] = (
    delimited_text.FORMAT, parquet.FORMAT, netcdf.TABLES, excel.FORMAT,
)  # fmt: skip
_MAPS: tuple[MapFormat, ...] = (netcdf.MAPS, zarr.FORMAT, geotiff.FORMAT)

TABLE_FORMATS = {ending: table for table in _TABLES for ending in table.endings}
MAP_FORMATS = {ending: map_format for map_format in _MAPS for ending in map_format.endings}
