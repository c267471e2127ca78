"""Regression of an output on the outputs known at the same location (kriging with external drift).

For output d at location x, where the outputs z are known,

    y_d = drift h(z)ᵀβ + residual process f(x) + noise

The drift is a linear and a smooth function of the known outputs, whose coefficients have Gaussian
priors, so that there can be more known outputs than readings. Given the length-scale of the
residual process, its share of the residual variance, and the priors, everything has a closed form.
There are some forty combinations of these settings (`all_settings`). Predictions are a mixture of
them, weighted by how well each predicts left-out readings (`fit_regression`): single readings, or
blocks of neighbouring readings, as in a gap.

The weights do not depend on the likelihood, because with dense readings it mainly measures how well
a reading is predicted from its neighbours, and in a gap there are no neighbours.
"""

from emgpr.regression.fit import FittedRegression, LeftOutRegression, fit_regression
from emgpr.regression.predict import Regression
from emgpr.regression.rows import RegressionRows
from emgpr.regression.settings import DriftPrior, Residual, Setting

__all__ = [
    "DriftPrior",
    "FittedRegression",
    "LeftOutRegression",
    "Regression",
    "RegressionRows",
    "Residual",
    "Setting",
    "fit_regression",
]
