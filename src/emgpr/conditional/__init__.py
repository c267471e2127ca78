"""Regression of each output on the outputs that are known at a location, with a residual process.

For output d at location x, where the outputs z are known:

    y_d = bᵀz + g(z) + f(x) + noise

The linear part bᵀz, the smooth function g and the residual process f have Gaussian process priors,
so that the readings of output d have the covariance

    s_b² zᵀz′ + s_g² k(z, z′) + s_f² k(x, x′) + s_n² [same reading]

with a few parameters for each set of known outputs. `RegressionKernel` is this covariance,
`fit_regression` fits its parameters, `Regression` predicts, and `ConditionalPosterior` combines the
regressions of all outputs with their own processes, which predict where nothing is known.

The parameters are fitted twice: by maximum likelihood, which is decided by the fine detail of dense
readings, and by the density of left-out blocks, which resembles prediction in a gap; and each with
and without the smooth function g. Predictions are a mixture of these four members, weighted by the
density of left-out blocks.
"""

from emgpr.conditional.fit import CRITERIA, MEMBERS, FittedRegression, fit_regression
from emgpr.conditional.kernel import RegressionKernel, RegressionRows
from emgpr.conditional.posterior import ConditionalPosterior, RegressionSet
from emgpr.conditional.regression import Regression

__all__ = [
    "CRITERIA",
    "MEMBERS",
    "ConditionalPosterior",
    "FittedRegression",
    "Regression",
    "RegressionKernel",
    "RegressionRows",
    "RegressionSet",
    "fit_regression",
]
