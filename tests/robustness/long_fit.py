"""Fits in processes of their own, for tests that end them.

`python long_fit.py KIND FOLDER` prints "begun" and fits with the checkpoint FOLDER/fit.ck. Searches
of the endless kinds do not end; each process that runs one makes a file in the folder SEARCHES.

`python long_fit.py KIND FOLDER KILLS` fits without interruption, and then with a checkpoint after
being killed so many times: at random moments, and at last as soon as results were stored. It writes
what was fitted and predicted to FOLDER/whole.npz and FOLDER/resumed.npz. Each fit is a fork, which
saves importing everything again.
"""

import contextlib
import os
import signal
import sys
import traceback
import warnings
from pathlib import Path
from time import monotonic, sleep

import numpy as np

from emgpr import EMGPR, checkpoint
from emgpr.weights import fit, joint_vecchia

MODELS = {
    "paper": (lambda **more: EMGPR.paper(batch_size=12, random_state=1, **more), 216),
    "joint": (lambda **more: EMGPR(output_transform=None, random_state=1, **more), 70),
    "workers": (
        lambda **more: EMGPR(
            batch_size=40, output_transform=None, n_jobs=2, random_state=1, **more
        ),
        80,
    ),
    "endless": (lambda **more: EMGPR(max_iter=10**9, random_state=1, **more), 100),
    "endless workers": (lambda **more: EMGPR.paper(n_jobs=2, **more), 600),
}


def simulate(N):
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(N, 2))
    f, g = np.sin(7 * X[:, 0]), np.cos(6 * X[:, 1] + X[:, 0])
    Y = np.column_stack([f, f + g, g - f * g]) + 0.2 * rng.normal(size=(N, 3))
    Y[::5, 1] = np.nan
    return X, Y


def results(model, X):
    """All arrays of a fitted model, and its predictions."""
    mean, std = model.predict(X[:20] + 0.01, return_std=True)
    return {
        "weights": model.weights_,
        "noise": model.noise_,
        "theta": np.concatenate([kernel.theta for kernel in model.kernels_]),
        "history": np.array([stage.log_likelihood for stage in model.history_]),
        "log_likelihood": np.array(model.log_marginal_likelihood_value_),
        "sites": np.concatenate(model.batches_),
        "stacking": model.stacking_weights_.to_numpy(),
        "n_iter": np.array(model.n_iter_),
        "mean": mean,
        "std": std,
    }


def never_ending(*given, **settings):
    """Stand in for a search: steps of a fraction of a second for ten minutes."""
    Path(os.environ["SEARCHES"], str(os.getpid())).touch()
    began = monotonic()
    while monotonic() < began + 600:
        np.linalg.inv(np.eye(300))


def fit_and_store(kind, out, path):
    make, N = MODELS[kind]
    X, Y = simulate(N)
    np.savez(out, **results(make(checkpoint=path).fit(X, Y), X))


def after(seconds):
    end = monotonic() + seconds
    return lambda: monotonic() >= end


def when_grown(path):
    sizes = []

    def has_grown():
        sizes.extend([path.stat().st_size] if path.exists() else [])
        return bool(sizes) and sizes[-1] > sizes[0]

    return has_grown


def fork_fit(kind, out, path=None, kill_now=lambda: False):
    """Fit in a fork with a process group of its own; tell whether it ended before being killed."""
    pid = os.fork()
    if not pid:
        os.setsid()
        status = 1
        with contextlib.suppress(BaseException):
            try:
                fit_and_store(kind, out, path)
                status = 0
            except BaseException:
                traceback.print_exc()
        os._exit(status)
    ended = status = 0
    while not ended and not kill_now():
        sleep(0.005)
        ended, status = os.waitpid(pid, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):  # workers are in the same group
        os.killpg(pid, signal.SIGKILL)
    if not ended:
        os.waitpid(pid, 0)
    if status:
        sys.exit(f"The fit of {kind!r} failed.")
    return bool(ended)


def kill_and_resume(kind, folder, kills):
    whole, resumed, path = folder / "whole.npz", folder / "resumed.npz", folder / "fit.ck"
    rng = np.random.default_rng(list(kind.encode()))
    began = monotonic()
    fork_fit(kind, whole)
    seconds = monotonic() - began
    while kills:
        kill_now = when_grown(path) if kills == 1 else after(seconds * rng.uniform(0.02, 0.5))
        # A fit that ends before it is killed removes its checkpoint; the next one begins again.
        kills -= not fork_fit(kind, resumed, path, kill_now)
    fork_fit(kind, resumed, path)


if __name__ == "__main__":  # doctests import this module
    warnings.simplefilter("ignore")
    checkpoint.MIN_INTERVAL, checkpoint.MAX_TIME_SHARE = 0.0, 1.0  # write after every piece
    fit.chunk_bytes = lambda device: 32.0 * 36**2 * 8  # eight members of 36 readings at a time
    kind, folder, *kills = sys.argv[1:]
    if kills:
        kill_and_resume(kind, Path(folder), int(kills[0]))
    else:
        if kind == "endless":
            joint_vecchia.fit_jointly = never_ending
        if kind == "endless workers":
            fit._fit = never_ending
        print("begun", flush=True)
        fit_and_store(kind, Path(folder, "none.npz"), Path(folder, "fit.ck"))
