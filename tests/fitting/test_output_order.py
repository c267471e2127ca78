"""Fits do not depend on the order of the output columns.

Set EMGPR_PERMUTATIONS=20 to try that many tables.
"""

import os

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import EMGPR
from emgpr.fitting.defaults import FitSettings
from emgpr.fitting.output_order import OutputOrder

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def coupled(seed, N=26):
    """Outputs with correlated noise, some of them log-normal, with gaps."""
    rng = np.random.default_rng(seed)
    D = int(rng.integers(2, 4))
    X = rng.uniform(size=(N, 2))
    f = np.sin(4 * X @ rng.normal(size=(2, 3)))
    Y = f @ rng.normal(size=(3, D)) + 0.4 * rng.normal(size=(N, D)) @ rng.normal(size=(D, D))
    Y = np.exp(0.7 * Y) if seed % 2 else Y
    Y[1:, 1:][rng.uniform(size=(N - 1, D - 1)) < 0.1] = np.nan
    order = rng.permutation(D)
    return X, Y, np.roll(np.arange(D), 1) if (order == np.arange(D)).all() else order


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("EMGPR_PERMUTATIONS", "4"))))
def test_permuted_columns_give_permuted_predictions(seed):
    X, Y, order = coupled(seed)
    one = EMGPR(random_state=0).fit(X, Y)
    other = EMGPR(random_state=0).fit(X, Y[:, order])
    new = np.random.default_rng(1).uniform(size=(20, 2))
    mean, std = one.predict(new, return_std=True)
    assert np.abs((mean[:, order] - other.predict(new)) / std[:, order]).max() < 1e-4
    assert [one.transforms_[d] for d in order] == other.transforms_
    noise = one.posterior_.model.noise
    assert_allclose(other.posterior_.model.noise, noise[np.ix_(order, order)], atol=1e-4)
    for by, names in one.alone_.items():
        moved = sorted(int(np.flatnonzero(order == int(name))[0]) for name in names)
        assert other.alone_[by] == [str(d) for d in moved]


def test_the_order_depends_on_ranks_and_not_on_units():
    Y = np.random.default_rng(0).normal(size=(9, 4))
    Y[0, 2] = np.nan
    order = OutputOrder.of_readings(Y, FitSettings()).columns
    assert order[0] == 2
    assert_array_equal(OutputOrder.of_readings(1e3 * Y + 5, FitSettings()).columns, order)
    moved = OutputOrder.of_readings(Y[:, ::-1], FitSettings()).columns
    assert_array_equal(3 - moved, order)


def test_lists_of_kernels_keep_the_order_of_the_columns():
    settings = FitSettings(kernel=[RBF(), Matern()])
    Y = np.array([[2.0, 1.0], [1.0, 2.0]])
    assert_array_equal(OutputOrder.of_readings(Y, settings).columns, [0, 1])
    assert_array_equal(OutputOrder.of_readings(Y, FitSettings()).columns, [1, 0])


def test_lists_for_each_output_follow_their_outputs():
    """Transforms and bounds by position are those of the columns, whatever the order of the fit."""
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(25, 2))
    Y = pd.DataFrame(np.exp(rng.normal(size=(25, 3))), columns=["c", "a", "b"])
    settings = {"kernel": RBF(0.3, "fixed"), "max_iter": 3, "n_restarts": 1, "random_state": 0}
    model = EMGPR.paper(
        output_transform=["log", None, "softplus"],
        output_bounds=["auto", None, (0, 1000)], **settings,
    ).fit(X, Y)  # fmt: skip
    assert model.transforms_ == ["log", None, "softplus"]
    assert model.output_names_ == ["c", "a", "b"]
    upper = model.predict_quantiles(X, [1 - 1e-12])[0]
    assert upper[:, 2].max() <= 1000
    mean = model.training_data()[1]
    assert_allclose(mean, Y, rtol=1e-6)
