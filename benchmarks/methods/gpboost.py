"""GPBoost: an independent GP for each output, with Vecchia's approximation.

The covariance is exponential, with a constant mean. The likelihood of each reading is conditioned
on 20 earlier neighbours, and predictions on 30 readings.
"""

import gpboost
import numpy as np

REQUIREMENTS = ("gpboost==1.8.0", "pandas")
VARIANTS = {"GPBoost, Vecchia": {}}


def fit(X, Y, seed):
    """Fit a model to each output at the sites where it was measured."""
    return [
        _fit_output(X[seen], y[seen], seed) for y, seen in zip(Y.T, ~np.isnan(Y.T), strict=True)
    ]


def predict(model, X_new):
    """Return means and standard deviations of readings."""
    constant = np.ones((len(X_new), 1))
    parts = [
        output.predict(gp_coords_pred=X_new, X_pred=constant, predict_var=True) for output in model
    ]
    means, variances = (np.column_stack([part[key] for part in parts]) for key in ("mu", "var"))
    return means, np.sqrt(variances)


def _fit_output(X, y, seed):
    model = gpboost.GPModel(
        gp_coords=X, cov_function="exponential", gp_approx="vecchia", num_neighbors=20,
        num_parallel_threads=1, seed=seed,
    )  # fmt: skip
    model.fit(y=y, X=np.ones((len(y), 1)))
    model.set_prediction_data(num_neighbors_pred=30)
    return model
