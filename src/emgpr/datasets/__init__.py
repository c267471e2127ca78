"""Real data with several correlated outputs: two included data sets, and a reader for a third.

- `load_jura`: seven heavy metals in the soil of the Swiss Jura at 359 sites, and a map grid.
- `jura_table`: the Jura data as inputs and outputs, with metals withheld at the validation sites.
- `load_amsua`: 14 channels of a satellite sounder at 630 sites.
- `read_atms`: 22 channels of the ATMS sounder, from HDF5 granules distributed by NOAA.
"""

from emgpr.datasets.amsua import load_amsua
from emgpr.datasets.atms import read_atms
from emgpr.datasets.jura import JuraTable, jura_table, load_jura

__all__ = ["JuraTable", "jura_table", "load_amsua", "load_jura", "read_atms"]
