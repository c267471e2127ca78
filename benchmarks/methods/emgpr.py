"""emgpr: three variants with the paper's RBF kernels, and two with default settings.

"two-step ensemble" is the paper's method, with strided batches of D² sites. "two-step" fits one set
of weights to all readings. "joint" then maximises Vecchia's likelihood over all parameters.
"defaults" selects kernels and the noise model from the data and decides on transfer by
cross-validation. It does not select transforms, since the outputs of each problem are already
transformed. "nothing set" is `EMGPR()`, which also selects transforms.
"""

from emgpr import EMGPR

REQUIREMENTS = ("emgpr",)
VARIANTS = {
    "emgpr, two-step ensemble": {"preset": "paper"},
    "emgpr, two-step": {"preset": "paper", "batch_size": None},
    "emgpr, joint": {
        "preset": "paper",
        "refine": "joint",
        "batch_size": None,
        "n_neighbours": "auto",
        "max_iter": 250,
    },
    "emgpr, defaults": {"preset": "defaults"},
    "emgpr, nothing set": {"preset": "nothing set"},
}


def fit(X, Y, seed, *, preset, **settings):
    """Fit the estimator."""
    if preset == "nothing set":
        return EMGPR(random_state=seed).fit(X, Y)
    if preset == "defaults":
        return EMGPR(output_transform=None, random_state=seed).fit(X, Y)
    return EMGPR.paper(random_state=seed, **settings).fit(X, Y)


def predict(model, X_new):
    """Return means and standard deviations of readings."""
    return model.predict(X_new, return_std=True)
