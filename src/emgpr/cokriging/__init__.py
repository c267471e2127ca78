"""Co-kriging: a linear model of coregionalisation fitted to variograms, with unknown means.

The variogram of outputs d and e has a nugget and Q structures, each with a matrix of sills:

    γ[d, e](h) = B_0[d, e] + Σ_q B_q[d, e] (1 − k_q(h))     for h > 0

`EmpiricalVariograms` are the values of all direct and cross-variograms in distance bins. The sill
matrices are positive semidefinite, and are fitted by weighted least squares (`fit_sills`). The
ranges of the structures are found by a search (`fit_variograms`).

Predictions are ordinary co-kriging: the mean of each output is unknown, with a prior whose variance
is large. Such a mean is a latent process with a constant kernel, so that a linear model of
coregionalisation with one more process per output predicts and leaves out readings exactly as the
kriging system with Lagrange multipliers does (`VariogramModel.with_unknown_means`).
"""

from emgpr.cokriging.empirical import MIN_COMMON_SITES, EmpiricalVariograms, averages, centred
from emgpr.cokriging.fit import FittedVariograms, fit_variograms
from emgpr.cokriging.model import MAX_MEAN_VARIANCE, VariogramModel
from emgpr.cokriging.sills import fit_sills
from emgpr.cokriging.structures import VARIOGRAM_MODELS, as_structures

__all__ = [
    "MAX_MEAN_VARIANCE",
    "MIN_COMMON_SITES",
    "VARIOGRAM_MODELS",
    "EmpiricalVariograms",
    "FittedVariograms",
    "VariogramModel",
    "as_structures",
    "averages",
    "centred",
    "fit_sills",
    "fit_variograms",
]
