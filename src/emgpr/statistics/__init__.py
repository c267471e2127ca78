"""Statistics of predictive distributions, as returned in predictions, frames and maps.

To add a statistic, write a class in a new file and add it to registry.py.
"""

from emgpr.statistics.base import Statistic
from emgpr.statistics.builtin import (
    CENTRES,
    Exceedance,
    Quantiles,
    covariances,
    threshold_per_output,
    unknown_centre,
)
from emgpr.statistics.registry import columns_by_output, requested

__all__ = [
    "CENTRES",
    "Exceedance",
    "Quantiles",
    "Statistic",
    "columns_by_output",
    "covariances",
    "requested",
    "threshold_per_output",
    "unknown_centre",
]
