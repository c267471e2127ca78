"""Files of OnePassGP hold its sums, so that a fit can be continued."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import emgpr
from emgpr import OnePassGP
from tests.sameness import assert_same
from tests.simulated import smooth_table

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
X, Y = smooth_table(np.random.default_rng(3), N=26)
NEW = np.random.default_rng(4).uniform(size=(4, 2))
QUICK = {
    "max_iter": 4, "n_restarts": 1, "random_state": 0, "n_functions": 41, "tolerance": 0.5,
    "box": ([0, 0], [1, 1]),
}  # fmt: skip


@pytest.mark.parametrize("learn", [False, True])
def test_a_loaded_model_continues_where_it_was(learn, tmp_path):
    model = OnePassGP(**QUICK).partial_fit(X[:16], Y[:16], learn=learn)
    model.save(tmp_path / "model")
    again = emgpr.load(tmp_path / "model")
    assert_same(again.fourier_fit_, model.fourier_fit_)
    assert_same(again.predict(NEW, return_std=True), model.predict(NEW, return_std=True))
    for one in (model, again):
        one.partial_fit(X[16:], Y[16:])
    assert again.n_sites_ == model.n_sites_ == 26
    assert_allclose(again.predict(NEW), model.predict(NEW), rtol=1e-10)
    assert again.history_ == model.history_


def test_a_file_does_not_grow_with_the_sites(tmp_path, rng):
    model, sizes = OnePassGP(**QUICK).start(X, Y), []
    for n in (100, 10_000):
        x = rng.uniform(size=(n, 2))
        model.partial_fit(x, rng.normal(size=(n, 3)), learn=False).save(tmp_path / "model")
        sizes.append((tmp_path / "model").stat().st_size)
    assert sizes[1] < 1.01 * sizes[0]
