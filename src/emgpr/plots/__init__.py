"""Figures. Each function takes data and, if you have them, axes to draw on; it returns the axes.

Only this package imports matplotlib; `import emgpr` does not.
"""

from emgpr.plots.batch_size import error_against_batch_size
from emgpr.plots.maps import maps
from emgpr.plots.shares import variance_shares

__all__ = ["error_against_batch_size", "maps", "variance_shares"]
