"""GPy: coregionalised regression by maximum likelihood.

ICM has one RBF kernel and W of rank 2. LCM has an RBF kernel for each output and W_q of rank 1.
Each coregionalisation matrix also has GPy's diagonal kappa. The RBF variances are fixed at 1, as in
GPy's tutorial, since W contains them. The optimisation starts from length-scale 0.1 and a random W,
and uses L-BFGS-B until convergence (at most 1000 iterations, GPy's default).
"""

import GPy
import numpy as np

REQUIREMENTS = ("GPy==1.15.0",)
VARIANTS = {"GPy, ICM": {"kind": "ICM"}, "GPy, LCM": {"kind": "LCM"}}


def fit(X, Y, seed, *, kind):
    """Fit a model to lists of sites and readings with one item for each output, as GPy requires."""
    np.random.seed(seed)  # noqa: NPY002 (GPy draws W from it)
    D = Y.shape[1]
    kernels = [GPy.kern.RBF(X.shape[1], lengthscale=0.1) for _ in range(1 if kind == "ICM" else D)]
    rank = 2 if kind == "ICM" else 1
    kernel = GPy.util.multioutput.LCM(X.shape[1], D, kernels, W_rank=rank)
    seen = ~np.isnan(Y)
    model = GPy.models.GPCoregionalizedRegression(
        [X[seen[:, d]] for d in range(D)],
        [Y[seen[:, d], d : d + 1] for d in range(D)],
        kernel=kernel,
    )
    model[".*rbf.variance"].constrain_fixed(1.0, warning=False)
    model[".*Gaussian_noise"].constrain_positive(warning=False)
    model[".*Gaussian_noise"] = 0.1
    model.optimize("lbfgsb", max_iters=1000)
    return model, D


def predict(model, X_new):
    """Return means and standard deviations of readings of every output."""
    model, D = model
    parts = []
    for d in range(D):
        task = np.full((len(X_new), 1), d)
        parts.append(model.predict(np.hstack([X_new, task]), Y_metadata={"output_index": task}))
    mean, variance = (np.column_stack([part[i][:, 0] for part in parts]) for i in (0, 1))
    return mean, np.sqrt(variance)
