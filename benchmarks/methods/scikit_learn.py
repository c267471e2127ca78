"""scikit-learn: an independent GP for each output, which every other method is measured against.

RBF of unit variance + WhiteKernel, from length-scale 0.1 and noise 0.1, one start, L-BFGS-B to
its own convergence.
"""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

REQUIREMENTS = ("scikit-learn",)
VARIANTS = {"scikit-learn, independent": {}}


def fit(X, Y, seed):
    """One regressor an output, from the sites where it was measured."""
    kernel = RBF(0.1) + WhiteKernel(0.1)
    return [
        GaussianProcessRegressor(kernel, random_state=seed).fit(X[seen], y[seen])
        for y, seen in zip(Y.T, ~np.isnan(Y.T), strict=True)
    ]


def predict(model, X_new):
    """The white kernel's noise is in the standard deviations."""
    parts = [task.predict(X_new, return_std=True) for task in model]
    return np.column_stack([m for m, _ in parts]), np.column_stack([s for _, s in parts])
