"""scikit-learn: an independent GP for each output, which is the reference for all other methods.

The kernel is an RBF of unit variance plus a WhiteKernel. A single optimisation with L-BFGS-B starts
from length-scale 0.1 and noise variance 0.1.
"""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

REQUIREMENTS = ("scikit-learn",)
VARIANTS = {"scikit-learn, independent": {}}


def fit(X, Y, seed):
    """Fit a regressor to each output at the sites where it was measured."""
    kernel = RBF(0.1) + WhiteKernel(0.1)
    return [
        GaussianProcessRegressor(kernel, random_state=seed).fit(X[seen], y[seen])
        for y, seen in zip(Y.T, ~np.isnan(Y.T), strict=True)
    ]


def predict(model, X_new):
    """Return means and standard deviations, which include the noise of the WhiteKernel."""
    parts = [regressor.predict(X_new, return_std=True) for regressor in model]
    return np.column_stack([m for m, _ in parts]), np.column_stack([s for _, s in parts])
