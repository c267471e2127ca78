"""GPy: coregionalised regression by maximum likelihood.

ICM: one RBF, W of rank 2. LCM: an RBF for each output, W_q of rank 1. Each coregionalisation has
GPy's diagonal kappa too; variances of the RBFs are held at 1, as in GPy's tutorial, for W has
them. From length-scale 0.1 and a seeded W; L-BFGS-B to its own convergence (at most GPy's 1000).
"""

import GPy
import numpy as np

REQUIREMENTS = ("GPy==1.15.0",)
VARIANTS = {"GPy, ICM": {"kind": "ICM"}, "GPy, LCM": {"kind": "LCM"}}


def fit(X, Y, seed, *, kind):
    """Outputs measured at different sites are lists to GPy."""
    np.random.seed(seed)  # noqa: NPY002 (where GPy draws W from)
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
    """Every output at every place, noise included."""
    model, D = model
    parts = []
    for d in range(D):
        task = np.full((len(X_new), 1), d)
        parts.append(model.predict(np.hstack([X_new, task]), Y_metadata={"output_index": task}))
    mean, variance = (np.column_stack([part[i][:, 0] for part in parts]) for i in (0, 1))
    return mean, np.sqrt(variance)
