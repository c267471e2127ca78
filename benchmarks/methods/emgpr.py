"""emgpr, RBF kernels where the paper has them: its ensemble, no ensemble, joint; and defaults.

"two-step ensemble" is the paper's method: strided batches of D² sites. "two-step" learns the
weights from all readings at once. "joint" continues that to the joint maximum likelihood, on
batches beyond 3000 readings. "defaults" chooses kernels and noise from the data and
cross-validates transfer; outputs come transformed here, so it need not choose that too.
"""

from emgpr import EMGPR

REQUIREMENTS = ("emgpr",)
VARIANTS = {
    "emgpr, two-step ensemble": {"preset": "paper"},
    "emgpr, two-step": {"preset": "paper", "batch_size": None},
    "emgpr, joint": {"preset": "paper", "refine": "joint", "max_iter": 250},
    "emgpr, defaults": {"preset": "defaults"},
}


def fit(X, Y, seed, *, preset, **settings):
    """The estimator, as a user fits it."""
    if preset == "defaults":
        return EMGPR(transform=None, random_state=seed).fit(X, Y)
    return EMGPR.paper(random_state=seed, **settings).fit(X, Y)


def predict(model, X_new):
    """Mean (of a transformed output: median) and standard deviation of a reading."""
    return model.predict(X_new, return_std=True)
