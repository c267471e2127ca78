"""GPAR: each output is regressed on the place and on the outputs before it (Requeima et al. 2019).

Outputs are ordered by their number of readings, so that those with gaps come last. Settings are
those of the authors' experiment with EEG series, with a length-scale of 2% of the extent; missing
readings are imputed, and outputs are replaced by their posterior means.
"""

import numpy as np
from gpar import GPARRegressor

REQUIREMENTS = ("torch==2.13.0", "gpar==0.3.2")
VARIANTS = {"GPAR": {}}


def fit(X, Y, seed):
    """Fit the regressions one after the other."""
    order = np.argsort(-(~np.isnan(Y)).sum(axis=0), kind="stable")
    model = GPARRegressor(
        scale=0.02 * float(np.ptp(X, axis=0).max()), linear=True, linear_scale=10.0,
        nonlinear=True, nonlinear_scale=1.0, noise=0.01, impute=True, replace=True,
        normalise_y=True,
    )  # fmt: skip
    model.fit(X, Y[:, order])
    return model, order


def predict(model, X_new):
    """Return means and standard deviations of readings."""
    regressor, order = model
    mean, lower, upper = regressor.predict(
        X_new, num_samples=50, latent=False, credible_bounds=True
    )
    position = np.argsort(order)
    return mean[:, position], ((upper - lower) / (2 * 1.959964))[:, position]
