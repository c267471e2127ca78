"""What users of scikit-learn do without thinking, with gaps in y: docs/machine-learning.md."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import smooth_table
from sklearn import metrics as theirs
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.inspection import permutation_importance
from sklearn.metrics import make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from emgpr import EMGPR, IndependentGP, spatial_blocks
from emgpr.metrics import over_readings

FIXED = RBF(0.4, "fixed")
CV = KFold(3, shuffle=True, random_state=0)
MAE = make_scorer(over_readings(theirs.mean_absolute_error), greater_is_better=False)


def a_model(kernel=FIXED, **settings):
    return IndependentGP(kernel, random_state=0, **settings)


@pytest.fixture
def table(rng):
    X, Y = smooth_table(rng, N=45)
    Y += 0.3 * Y.std(axis=0) * rng.normal(size=Y.shape)
    Y[::4, 0] = np.nan
    return pd.DataFrame(X, columns=["east", "north"]), pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"])


def test_a_pipeline_passes_on_whatever_predict_is_asked(table):
    X, Y = table
    pipe = make_pipeline(StandardScaler(), a_model()).fit(X, Y)
    scaled = StandardScaler().fit(X)
    alone = a_model().fit(scaled.transform(X), Y)
    mean, std = pipe.predict(X[:5], return_std=True, observed=Y[["Zn"]][:5])
    known = alone.predict(scaled.transform(X[:5]), return_std=True, observed=Y[["Zn"]][:5])
    assert_allclose(mean, known[0])
    assert_allclose(std, known[1])
    assert np.isfinite(pipe.score(X, Y))


def test_names_come_through_a_pipeline_that_keeps_them(table):
    X, Y = table
    mixed = X.assign(rock=pd.Categorical(["chalk", "marl", "clay"] * 15))
    columns = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["rock"]),
        (StandardScaler(), ["east", "north"]),
        verbose_feature_names_out=False,
    )
    pipe = make_pipeline(columns, a_model()).set_output(transform="pandas").fit(mixed, Y)
    seen = ["rock_chalk", "rock_clay", "rock_marl", "east", "north"]
    assert_array_equal(pipe[-1].feature_names_in_, seen)
    assert pipe[-1].output_names_ == ["Cd", "Ni", "Zn"]
    shuffled = mixed[["rock", "north", "east"]]  # found by name
    assert_allclose(pipe.predict(shuffled), pipe.predict(mixed))


def test_other_names_than_in_fit_are_refused(table):
    X, Y = table
    with pytest.raises(ValueError, match="feature names should match"):
        a_model().fit(X, Y).predict(X.rename(columns={"east": "x"}))


def test_cross_validation_takes_gaps_in_y(table):
    X, Y = table
    scores = cross_val_score(a_model(), X, Y, cv=CV)
    by_hand = []
    for train, test in CV.split(X):
        model = a_model().fit(X.iloc[train], Y.iloc[train])
        by_hand.append(model.score(X.iloc[test], Y.iloc[test]))
    assert_allclose(scores, by_hand)
    assert np.isfinite(scores).all()


def test_a_metric_over_readings_is_the_metric_of_each_output_without_its_gaps(table):
    X, Y = table
    left_out = cross_val_predict(a_model(), X, Y, cv=CV)
    scores = cross_val_score(a_model(), X, Y, cv=CV, scoring=MAE)
    for (_, test), score in zip(CV.split(X), scores, strict=True):
        errors = (Y.iloc[test] - left_out[test]).abs().mean()  # pandas skips NaN
        assert_allclose(-score, errors.mean())


@pytest.mark.parametrize("metric", [theirs.r2_score, theirs.mean_squared_error])
def test_without_gaps_a_metric_over_readings_is_scikit_learns(rng, metric):
    truth, mean = rng.normal(size=(2, 30, 3))
    weight = rng.uniform(size=30)
    expected = metric(truth, mean, sample_weight=weight)
    assert_allclose(over_readings(metric)(truth, mean, sample_weight=weight), expected)
    assert_allclose(over_readings(metric)(truth[:, 0], mean[:, 0]), metric(truth[:, 0], mean[:, 0]))


def test_options_of_a_metric_are_passed_on(rng):
    truth, mean = rng.normal(size=(2, 30))
    pinball = make_scorer(over_readings(theirs.mean_pinball_loss), alpha=0.9)
    assert_allclose(
        pinball._score_func(truth, mean, alpha=0.9),
        theirs.mean_pinball_loss(truth, mean, alpha=0.9),
    )


def test_an_output_with_too_few_readings_has_no_part():
    truth = np.array([[1.0, 5.0], [2.0, np.nan], [4.0, np.nan]])
    mean = truth + np.array([0.5, 0.0])
    r2 = over_readings(theirs.r2_score, least=2)
    assert_allclose(r2(truth, np.nan_to_num(mean)), theirs.r2_score(truth[:, 0], mean[:, 0]))
    assert np.isnan(over_readings(theirs.mean_absolute_error)([np.nan], [1.0]))
    with pytest.raises(ValueError, match=r"y_true has shape \(3, 2\)"):
        r2(truth, mean[:, 0])


def test_scorers_are_printed_and_pickled():
    again = pickle.loads(pickle.dumps(MAE))
    assert repr(again) == repr(MAE)
    assert "mean_absolute_error" in repr(MAE)


def test_several_scores_and_folds_in_processes(table):
    X, Y = table
    blocks = spatial_blocks(X, 4)
    found = cross_validate(
        a_model(), X, Y, groups=blocks, cv=GroupKFold(2), n_jobs=2,
        scoring={"mae": MAE, "r2": make_scorer(over_readings(theirs.r2_score))},
    )  # fmt: skip
    assert np.isfinite(found["test_mae"]).all()
    assert np.isfinite(found["test_r2"]).all()


def test_a_search_reaches_into_kernels_and_keeps_the_best(table):
    X, Y = table
    pipe = make_pipeline(StandardScaler(), a_model(Matern(1.0, "fixed", nu=0.5)))
    grid = {"independentgp__kernel__length_scale": [0.01, 1.0]}
    search = GridSearchCV(pipe, grid, cv=CV, scoring=MAE).fit(X, Y)
    assert search.best_params_ == {"independentgp__kernel__length_scale": 1.0}
    assert search.predict(X[:3]).shape == (3, 3)
    assert "<div" in search._repr_html_()


def test_what_a_search_sets_is_what_is_learned_with(table):
    X, Y = table
    model = a_model(RBF(1.0, "fixed") + RBF(3.0, "fixed")).fit(X, Y)
    changed = clone(model).set_params(kernel__k1__length_scale=0.2).fit(X, Y)
    assert changed.kernels_[0].get_params()["k1__length_scale"] == 0.2
    assert model.kernels_[0].get_params()["k1__length_scale"] == 1.0
    assert not np.allclose(model.predict(X), changed.predict(X))


@pytest.mark.parametrize("model", [EMGPR(kernel=Matern(nu=1.5)), IndependentGP(transform="log")])
def test_models_show_themselves_in_a_notebook(model):
    html = model._repr_html_()
    assert type(model).__name__ in html
    assert "Matern" in html or "log" in html
    shown = model._repr_mimebundle_()
    assert set(shown) == {"text/plain", "text/html"}


def test_inputs_that_do_not_matter_are_found(table):
    X, Y = table
    X = X.assign(noise=np.random.default_rng(1).normal(size=len(X)))
    model = a_model(RBF([0.4, 0.4, 100.0], "fixed")).fit(X, Y)
    found = permutation_importance(model, X, Y, n_repeats=2, random_state=0)
    assert found.importances_mean.argmin() == 2
