"""Pictures of data and models. Each function takes axes if you have them, and returns the axes.

Only this package imports matplotlib; `import emgpr` does not. docs/pictures.md shows all of them.
"""

from emgpr.plots.batch_size import error_against_batch_size
from emgpr.plots.coregionalization import coregionalization
from emgpr.plots.honesty import coverage, pit
from emgpr.plots.latents import latents
from emgpr.plots.maps import maps
from emgpr.plots.predicted import measured_against_predicted
from emgpr.plots.shares import variance_shares
from emgpr.plots.variograms import variograms
from emgpr.plots.weights import member_weights

__all__ = [
    "coregionalization",
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
