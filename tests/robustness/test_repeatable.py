"""The same seed gives the same bits; other numbers of threads or processes agree to 1e-8."""

import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr import EMGPR
from tests.simulated import smooth_table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
RNG = np.random.default_rng(41)
X, Y = smooth_table(RNG, N=10)
X_NEW = RNG.uniform(size=(4, 2))

# Small matrices use one thread; for the larger one of 600 sites, the limit is reduced.
PROGRAM = """
import warnings, sys
import numpy as np
from sklearn.gaussian_process.kernels import RBF
from emgpr import EMGPR, IndependentGP
from emgpr.arrays import devices
devices.MULTITHREADED_ROWS = 100
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.uniform(size=(600, 2))
Y = np.column_stack([np.sin(6 * X[:, 0]), np.cos(5 * X[:, 1])]) + 0.1 * rng.normal(size=(600, 2))
small = EMGPR.paper(random_state=0).fit(X[:20], Y[:20]).predict(X[-5:], return_std=True)
kernel = RBF(0.3, (0.1, 1.0))
large = IndependentGP(kernel, max_iter=2, n_restarts=1, random_state=0).fit(X, Y[:, 0])
np.savez(sys.argv[1], *small, *large.predict(X[-5:] + 0.01, return_std=True))
"""


@pytest.mark.parametrize("make", [pytest.param(EMGPR, marks=pytest.mark.slow), EMGPR.paper])
def test_the_same_seed_gives_the_same_bits(make):
    one, two = (make(random_state=3, max_iter=8).fit(X, Y) for _ in range(2))
    assert_array_equal(one.predict(X_NEW, return_std=True), two.predict(X_NEW, return_std=True))
    assert_array_equal(one.weights_, two.weights_)
    assert_array_equal(one.sample_y(X_NEW, 3, 0), two.sample_y(X_NEW, 3, 0))
    assert_array_equal(one.predict(X_NEW), one.predict(X_NEW))


def test_several_processes_give_the_predictions_of_one():
    settings = {"random_state": 3, "max_iter": 8, "n_restarts": 2}
    one, two = (EMGPR.paper(n_jobs=n, **settings).fit(X, Y) for n in (1, 2))
    assert_allclose(one.predict(X_NEW), two.predict(X_NEW), rtol=1e-8)


def predictions(folder, threads):
    """Predictions of a new Python process with so many threads."""
    file = folder / f"{threads}.npz"
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    with np.load(file) as stored:
        return [stored[name] for name in stored.files]


def test_the_number_of_threads_changes_predictions_by_rounding_only(tmp_path):
    for one, two in zip(predictions(tmp_path, 1), predictions(tmp_path, 2), strict=True):
        assert_allclose(one, two, rtol=1e-8)
