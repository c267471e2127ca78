"""emgpr: three variants with the paper's RBF kernels, two with default settings, and two models.

"two-step ensemble" is the paper's method, with strided batches of D² sites. "two-step" fits one set
of weights to all readings. "joint" then maximises Vecchia's likelihood over all parameters.
"defaults" selects kernels and the noise model from the data and decides on transfer by
cross-validation. It does not select transforms, since the outputs of each problem are already
transformed. "nothing set" is `EMGPR()`, which also selects transforms. "co-kriging" fits variograms
with a nugget and two spherical structures, and "CMOGP" smooths one latent process differently for
each output.
"""

from emgpr import CMOGP, EMGPR, CoKriging, ConditionalGP

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
    "emgpr, co-kriging": {"preset": "co-kriging"},
    "emgpr, CMOGP": {"preset": "CMOGP"},
}


def fit(X, Y, seed, *, preset, **settings):
    """Fit the estimator."""
    if preset == "nothing set":
        return EMGPR(random_state=seed, **settings).fit(X, Y)
    if preset == "ConditionalGP":
        return ConditionalGP(random_state=seed).fit(X, Y)
    if preset == "co-kriging":
        return CoKriging(output_transform=None).fit(X, Y)
    if preset == "CMOGP":
        return CMOGP(output_transform=None, random_state=seed).fit(X, Y)
    if preset == "defaults":
        return EMGPR(output_transform=None, random_state=seed).fit(X, Y)
    return EMGPR.paper(random_state=seed, **settings).fit(X, Y)


def predict(model, X_new):
    """Return means and standard deviations of readings."""
    return model.predict(X_new, return_std=True)


def intervals(model, X_new):
    """Return the ends of 95% intervals of readings."""
    return model.predict_quantiles(X_new, [0.025, 0.975])
