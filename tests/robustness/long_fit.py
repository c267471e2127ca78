"""A fit in a process of its own, for tests that end it: python long_fit.py KIND OUT [CHECKPOINT].

Says "begun" when it begins, and writes all that was learned and predicted when it ends.
"""

import sys
import warnings
from time import monotonic

import numpy as np

from emgpr import EMGPR, checkpoint
from emgpr.weights import fit

MODELS = {
    "paper": (lambda **more: EMGPR.paper(batch_size=12, random_state=1, **more), 288),
    "joint": (lambda **more: EMGPR(transform=None, random_state=1, **more), 80),
    "workers": (
        lambda **more: EMGPR(batch_size=40, transform=None, n_jobs=2, random_state=1, **more),
        80,
    ),
    "endless": (lambda **more: EMGPR(max_iter=10**9, random_state=1, **more), 150),
    "endless workers": (lambda **more: EMGPR.paper(n_jobs=2, **more), 600),
}


def a_table(N):
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(N, 2))
    f, g = np.sin(7 * X[:, 0]), np.cos(6 * X[:, 1] + X[:, 0])
    Y = np.column_stack([f, f + g, g - f * g]) + 0.2 * rng.normal(size=(N, 3))
    Y[::5, 1] = np.nan
    return X, Y


def learned(model, X):
    """All arrays of a fitted model, and its predictions."""
    mean, std = model.predict(X[:20] + 0.01, return_std=True)
    return {
        "weights": model.weights_,
        "noise": model.noise_,
        "theta": np.concatenate([kernel.theta for kernel in model.kernels_]),
        "history": np.array([stage.log_likelihood for stage in model.history_]),
        "height": np.array(model.log_marginal_likelihood_value_),
        "sites": np.concatenate(model.batches_),
        "alone": np.array([str(sorted(model.alone_.items()))]),
        "n_iter": np.array(model.n_iter_),
        "mean": mean,
        "std": std,
    }


def never_ending(*given, **settings):
    """A search that goes round and round, a step of a tenth of a second at a time."""
    began = monotonic()
    while monotonic() < began + 600:
        np.linalg.inv(np.eye(300))


if __name__ == "__main__":  # and not where doctests are looked for
    warnings.simplefilter("ignore")
    checkpoint.EVERY, checkpoint.SHARE = 0.0, 1.0  # after every piece: there is much to resume
    fit.room = lambda device: 32.0 * 36**2 * 8  # eight members of 36 readings at a time
    kind, out, *path = sys.argv[1:]
    make, N = MODELS[kind]
    X, Y = a_table(N)
    if kind == "endless":
        sys.modules["emgpr.weights.refine"].minimize = never_ending
    if kind == "endless workers":
        fit._fit = never_ending
    print("begun", flush=True)
    began = monotonic()
    model = make(checkpoint=path[0] if path else None).fit(X, Y)
    print(monotonic() - began, flush=True)
    np.savez(out, **learned(model, X))
