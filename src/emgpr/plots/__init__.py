"""Figures of fitted models. Every function draws on given axes or on new axes, and returns them.

This package imports matplotlib, whereas `import emgpr` does not. docs/pictures.md shows all
figures.
"""

from emgpr.plots.batch_size import error_against_batch_size
from emgpr.plots.calibration import coverage, pit
from emgpr.plots.coregionalization import coregionalization
from emgpr.plots.correlations import correlation_map
from emgpr.plots.latents import latents, member_weights
from emgpr.plots.maps import maps
from emgpr.plots.predicted_vs_observed import measured_against_predicted
from emgpr.plots.variance_share_bars import variance_shares
from emgpr.plots.variograms import variograms

__all__ = [
    "coregionalization",
    "correlation_map",
    "coverage",
    "error_against_batch_size",
    "latents",
    "maps",
    "measured_against_predicted",
    "member_weights",
    "pit",
    "variance_shares",
    "variograms",
]
