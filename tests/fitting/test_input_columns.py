"""Length-scales of input columns: coordinates share one, other columns have their own."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, ICM, IndependentGP
from emgpr.fitting.input_columns import are_coordinates, describe_ignored_columns
from emgpr.inputs import read_training_table

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N = 70


def inputs_of(X):
    table = read_training_table(X, np.zeros(len(X)), estimator="EMGPR")
    return table.inputs, table.x


def survey(seed=0):
    """Two coordinates in metres, and a covariate between 0 and 1 that explains everything."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "east": rng.uniform(0, 5000, N),
            "north": rng.uniform(0, 5000, N),
            "dist": rng.uniform(size=N),
        }
    )
    f = np.sin(6 * X["dist"].to_numpy())
    return X, np.column_stack([f, -f]) + 0.1 * rng.normal(size=(N, 2))


@pytest.mark.parametrize(
    ("scales", "same"), [([1, 1], True), ([1, 8], True), ([1, 50], False), ([1, 1, 1], False)]
)
def test_two_columns_of_similar_extent_are_coordinates(rng, scales, same):
    X = rng.uniform(size=(30, len(scales))) * scales
    assert are_coordinates(*inputs_of(X)) == same


def test_columns_that_hardly_change_distances_are_named():
    X, _ = survey()
    text = describe_ignored_columns([RBF()], *inputs_of(X), automatic=True)
    assert "The values of 'dist' vary so much less" in text
    assert 'kernel="auto"' in text
    assert describe_ignored_columns([RBF([1, 1, 1])], *inputs_of(X), automatic=True) == ""
    assert describe_ignored_columns([RBF()], *inputs_of(X[["east", "north"]]), automatic=True) == ""
    assert describe_ignored_columns([RBF()], *inputs_of(X * [1e-3, 1e-3, 5]), automatic=True) == ""


def test_the_method_of_the_paper_warns_of_a_covariate_without_effect():
    X, Y = survey()
    settings = {"max_iter": 3, "n_restarts": 1, "batch_size": None, "random_state": 0}
    with pytest.warns(UserWarning, match="'dist' vary so much less than those of"):
        EMGPR.paper(**settings).fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize("Estimator", [IndependentGP, ICM, EMGPR])
def test_a_covariate_is_used_and_its_unit_does_not_matter(Estimator):
    X, Y = survey()
    train, test = slice(0, 50), slice(50, None)

    def predict(X):
        model = Estimator(random_state=0).fit(X[train], Y[train])
        return model.predict(X[test], return_std=True)

    mean, std = predict(X)
    error = np.abs(mean - Y[test]).mean()
    assert error < 0.25 * np.abs(predict(X[["east", "north"]])[0] - Y[test]).mean()
    for column in X:
        for factor, within in ((2.0**20, 1e-6), (1e6, 1e-3)):
            other, _ = predict(X.assign(**{column: factor * X[column]}))
            assert np.abs((other - mean) / std).max() < within


@pytest.mark.slow
def test_more_than_ten_columns_are_standardised(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 12)) * 10.0 ** rng.uniform(-4, 4, 12)
    z = X / X.std(axis=0)
    y = z[:, 0] + np.sin(z[:, 1]) + 0.1 * rng.normal(size=60)
    model = IndependentGP(random_state=0).fit(X[:45], y[:45])
    assert_allclose(model.input_spec_.scales, X[:45].std(axis=0))
    assert np.abs(model.predict(X[45:]) - y[45:]).mean() < 0.8 * y.std()
    model.save(tmp_path / "many.emgpr")
    again = IndependentGP.load(tmp_path / "many.emgpr")
    assert_allclose(again.predict(X[45:]), model.predict(X[45:]))
    assert_allclose(again.training_data()[0], X[:45])
    fixed = IndependentGP(RBF(), output_transform=None, random_state=0)
    with pytest.warns(UserWarning, match="one length-scale for all input columns"):
        assert fixed.fit(X, y).input_spec_.scales is None
