"""Rows of pandas tables are matched by their index."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr import ICM
from emgpr.inputs import match_rows, read_training_table

X = pd.DataFrame({"east": [1.0, 2.0, 3.0]}, index=["a", "b", "c"])
Y = pd.DataFrame({"Cd": [10.0, 20.0, 30.0]}, index=["a", "b", "c"])
OTHER_ORDER = "The rows of {} are in another order than the rows of X; .*reset_index"


@pytest.mark.parametrize("column", [False, True])
def test_another_order_of_the_same_labels_is_told_and_undone(column):
    shuffled = Y.loc[["c", "a", "b"]]
    shuffled = shuffled["Cd"] if column else shuffled
    with pytest.warns(UserWarning, match=OTHER_ORDER.format("y")):
        table = read_training_table(X, shuffled, estimator="EMGPR")
    assert_array_equal(table.Y, Y)


@pytest.mark.parametrize(
    "given",
    [
        Y,
        Y.reset_index(drop=True)[::1],
        Y.to_numpy(),
        Y["Cd"].tolist(),
        Y.set_axis(["a", "b", "c"]),
    ],
    ids=str,
)
def test_equal_or_default_indices_are_matched_by_position(given):
    assert match_rows(X, given, "y") is given
    assert match_rows(X.reset_index(drop=True), Y[::-1], "y").iloc[0, 0] == 30


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a", "b", "d"], "y has no row 'c'"),
        (["a", "a", "b"], "y has no row 'c'"),
        ([1, 2, 3], "y has no row 'a'"),
    ],
)
def test_other_labels_are_refused(labels, message):
    with pytest.raises(ValueError, match=f"different index labels: {message}.*reset_index"):
        read_training_table(X, Y.set_axis(labels), estimator="EMGPR")
    repeated = X.set_axis(["a", "a", "b"])
    with pytest.raises(ValueError, match="labels that occur several times"):
        match_rows(repeated, repeated[::-1], "y")


def test_the_default_labels_in_another_order_are_told():
    numbered = X.reset_index(drop=True)
    shuffled = Y.reset_index(drop=True).iloc[[2, 0, 1]]
    with pytest.warns(UserWarning, match=r"are matched by position. .* pass y.loc\[X.index\]"):
        assert match_rows(numbered, shuffled, "y") is shuffled


def test_a_slice_of_the_default_index_is_an_index_of_its_own():
    odd, even = Y.reset_index(drop=True)[1:], Y.reset_index(drop=True)[:2]
    assert_array_equal(match_rows(odd, even, "y"), even)  # 0, 1 is the default
    with pytest.raises(ValueError, match="different index labels"):
        match_rows(odd, even.set_axis([2, 3]), "y")


def test_observed_readings_and_scores_follow_the_index():
    rng = np.random.default_rng(0)
    sites = pd.DataFrame(rng.uniform(size=(12, 2)), columns=["x", "y"])
    readings = pd.DataFrame(rng.normal(size=(12, 2)), columns=["Cd", "Zn"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the readings are noise
        model = ICM(random_state=0).fit(sites, readings)
    new = sites[:3].set_axis(["p", "q", "r"])
    observed = pd.DataFrame({"Zn": [0.1, 0.5, 0.9]}, index=["p", "q", "r"])
    expected = model.predict(new, observed=observed)
    shuffled = observed[::-1]
    with pytest.warns(UserWarning, match=OTHER_ORDER.format("observed")):
        assert_allclose(model.predict(new, observed=shuffled), expected)
    with pytest.warns(UserWarning, match=OTHER_ORDER.format("observed")):
        samples = model.sample_y(new, 2, observed=shuffled)
    assert_allclose(samples, model.sample_y(new, 2, observed=observed))
    truth = readings[:3].set_axis(["p", "q", "r"])
    with pytest.warns(UserWarning, match=OTHER_ORDER.format("y")):
        assert model.score(new, truth[::-1]) == pytest.approx(model.score(new, truth))
