"""Fits do not depend on the order of the output columns.

Set EMGPR_PERMUTATIONS=20 to try that many tables.
"""

import os
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr import EMGPR, IndependentGP
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
    known = np.where(np.arange(Y.shape[1]) == order[0], np.nan, Y[:20])
    for observed in (None, known):
        permuted = None if observed is None else observed[:, order]
        mean, std = one.predict(new, return_std=True, observed=observed)
        moved = other.predict(new, observed=permuted)
        assert np.abs((mean[:, order] - moved) / std[:, order]).max() < 1e-4
    assert [one.transforms_[d] for d in order] == other.transforms_
    noise = one.posterior_.model.noise
    assert_allclose(other.posterior_.model.noise, noise[np.ix_(order, order)], atol=1e-4)
    for pattern, weights in one.posterior_.stack.known.items():
        moved = other.posterior_.stack.known[_moved(pattern, order)]
        assert_allclose([moved.near, moved.far], [weights.near, weights.far], atol=1e-3)


def _moved(pattern, order):
    """The same pattern about a table whose columns are in this order."""
    d, known = pattern
    at = np.argsort(order)
    return int(at[d]), tuple(sorted(at[list(known)].tolist()))


@pytest.mark.parametrize("n_equal", [0, 1, 40, 120])
def test_the_first_rows_that_differ_determine_the_order(rng, n_equal):
    """Against the ranks of all readings; in the first rows, the ranks of all outputs are equal."""
    Y = rng.integers(5, size=(120, 5)).astype(float)
    Y[rng.uniform(size=Y.shape) < 0.2] = np.nan
    Y[:n_equal] = np.where(np.arange(n_equal) % 3, np.nan, -1.0)[:, None]
    Y[:, 4] = Y[:, 1]
    ranks = np.nan_to_num(rankdata(Y, axis=0, nan_policy="omit"))
    found = OutputOrder.of_readings(Y, FitSettings()).columns
    assert_array_equal(found, np.lexsort(ranks[::-1]))


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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"output_bounds": {"z": (0, 1)}}, r"expected any of \['c', 'a', 'b'\]"),
        ({"output_transform": {"z": "log"}}, r"\['c', 'a', 'b'\]"),
        ({"compositions": [["a", "z"]]}, r"expected names among \['c', 'a', 'b'\]"),
        ({"output_transform": "log"}, "but output 'c' has 1 values"),
        ({"output_bounds": (0, None)}, "Output 'c' has 1 readings"),
    ],
)
def test_messages_list_the_outputs_in_the_order_of_the_columns(settings, message):
    X, Y = np.arange(6.0)[:, None], np.tile(np.arange(6.0) + 1, (3, 1)).T
    Y[:, 0], Y[2] = Y[::-1, 0], -1.0
    table = pd.DataFrame(Y, columns=["c", "a", "b"])
    assert OutputOrder.of_readings(Y, FitSettings()).columns.tolist() != [0, 1, 2]
    with pytest.raises(ValueError, match=message):
        EMGPR(**settings).fit(X, table)


def test_warnings_of_step_1_follow_the_order_of_the_columns():
    X, Y, order = coupled(2)
    names = ["c", "a", "b"][: Y.shape[1]]
    for columns in (np.arange(len(names)), order):
        frame = pd.DataFrame(Y[:, columns], columns=names)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            IndependentGP(kernel=RBF(), max_iter=1, n_restarts=1, random_state=0).fit(X, frame)
        said = [str(warning.message) for warning in caught]
        assert [text.split("'")[1] for text in said if text.startswith("Step 1")] == names
