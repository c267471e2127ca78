"""Cross-validation of a fitted model, and whether outputs gain from each other."""

from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import lognorm, norm
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, IndependentGP, spatial_blocks
from emgpr.ensemble import join
from emgpr.prediction import condition
from tests.simulated import known_model, smooth_table, with_weights, world

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Nothing was measured in"),
]
QUICK = {
    "kernel": None,
    "output_transform": None,
    "transfer": "full",
    "max_iter": 5,
    "n_restarts": 2,
    "batch_size": 9,
    "random_state": 0,
}
GROUPS = ["north", "south", "south", "east"] * 3


@pytest.fixture
def made(rng):
    """Twelve sites, some readings missing, none at the fourth; noises of a sample correlate."""
    made = world(rng, missing=0.2, correlated=True)
    made.Y[3] = np.nan
    return made


@pytest.fixture(scope="module")
def ensemble():
    X, Y = smooth_table(np.random.default_rng(11), N=27)
    return EMGPR(**QUICK).fit(X, Y)


def by_refitting(made, by, **settings):
    """Predictions and standard deviations of models of all that is not left out."""
    mean, std = np.full((2, *made.Y.shape), np.nan)
    sites, readings = np.arange(12), np.arange(36).reshape(12, 3)
    groups = np.unique(GROUPS, return_inverse=True)[1]
    number = readings if by == "output" else (groups if by is GROUPS else sites)[:, None]
    number = np.where(np.isnan(made.Y), -1, number)
    for label in np.unique(number[number >= 0]):
        left_out = number == label
        model = known_model(made.table(np.where(left_out, np.nan, made.Y)), **settings)
        predicted = model.predict(made.X, return_std=True)
        mean[left_out], std[left_out] = predicted[0][left_out], predicted[1][left_out]
    return mean, std


@pytest.mark.parametrize(
    ("by", "settings"),
    [("site", {}), ("output", {}), (GROUPS, {}), ("site", {"conditioning": 3})],
    ids=["site", "output", "groups", "neighbours"],
)
def test_predictions_are_those_of_models_without_the_reading(made, by, settings):
    result = known_model(made, **settings).cross_validate(by)
    mean, std = by_refitting(made, by, **settings)
    assert_allclose(result.truth, made.Y)
    assert_allclose(result.prediction, mean, atol=1e-8)
    assert_allclose(result.std, std, atol=1e-8)
    assert_allclose(result.upper, mean + norm.ppf(0.975) * std, atol=1e-8)
    assert_allclose(result.lower, mean - norm.ppf(0.975) * std, atol=1e-8)
    assert_allclose(result.standardized, (made.Y - mean) / std, atol=1e-7)
    assert_allclose(result.nlpd, -norm.logpdf(made.Y, mean, std), atol=1e-7)
    assert_allclose(result.pit, norm.cdf(made.Y, mean, std), atol=1e-8)


def test_members_conditioned_on_their_batches_predict_from_the_rest_of_them(rng):
    X, Y = smooth_table(rng, N=18)
    model = EMGPR(**QUICK, conditioning="batch").fit(X, Y)
    result, posterior = model.cross_validate(), model.posterior_
    site = int(posterior.batches[0][0])
    means = []
    for i, batch in enumerate(posterior.batches):
        rest = posterior.observations.at(batch[batch != site])
        means.append(condition(rest, X[[site]], posterior.model.members([i])).mean[0, 0])
    std = result.std.iloc[site] / model.output_scaler_.scale
    assert_allclose(
        posterior.observations.y[:, site] - np.mean(means, axis=0),
        result.standardized.iloc[site] * std,
        atol=1e-8,
    )


@pytest.mark.parametrize("rule", ["poe", "rbcm"])
def test_members_are_combined_as_in_predictions(ensemble, rule):
    try:
        result = ensemble.set_params(combine=rule).cross_validate()
    finally:
        ensemble.set_params(combine="mean")
    observations, model = ensemble.posterior_.observations, ensemble.posterior_.model
    rest = observations.at(np.arange(1, observations.n_sites))
    signals = condition(rest, observations.x[:1], model)
    prior = model.B.sum(axis=1)[:, None]  # kernels have unit variance
    mean, cov = join(rule, signals.mean, signals.cov, prior)
    std = np.sqrt(np.diagonal(cov[0, 0] + model.noise))
    expected = (observations.y[:, 0] - mean[0, 0]) / std
    assert_allclose(result.standardized.iloc[0], expected, rtol=1e-6)


def test_results_have_the_rows_of_the_training_inputs(made):
    """The last, too, in which nothing was measured."""
    made.Y[-1] = np.nan
    X = pd.DataFrame(made.X, index=[f"well {i}" for i in range(12)], columns=["a", "b"])
    Y = pd.DataFrame(made.Y, columns=["Cd", "Ni", "Zn"])
    labels = [None if i in (3, 11) else i % 2 for i in range(12)]
    model = IndependentGP(RBF(0.3, "fixed"), random_state=0)
    result = model.fit(X, Y).cross_validate(labels)
    assert result.crps.index.tolist() == X.index.tolist()
    assert result.crps.columns.tolist() == ["Cd", "Ni", "Zn"]
    assert_array_equal(result.crps.isna(), np.isnan(made.Y))


def test_results_of_transformed_outputs_are_in_original_units():
    X, Y = smooth_table(np.random.default_rng(3), N=20)
    Y = Y / Y.std(axis=0) * 0.5
    settings = {"kernel": RBF(0.3, "fixed"), "random_state": 0}
    logs = IndependentGP(**settings, output_transform=None).fit(X, Y).cross_validate()
    result = IndependentGP(**settings, output_transform="log").fit(X, np.exp(Y)).cross_validate()
    for name in ("truth", "prediction", "lower", "upper"):
        assert_allclose(getattr(result, name), np.exp(getattr(logs, name)))
    for name in ("pit", "standardized"):
        assert_allclose(getattr(result, name), getattr(logs, name), atol=1e-9)
    density = lognorm.logpdf(result.truth, logs.std, scale=result.prediction)
    assert_allclose(result.nlpd, -density)


def test_an_estimator_that_is_not_fitted_cannot_be_validated():
    for method in (EMGPR().cross_validate, EMGPR().transfer_report):
        with pytest.raises(NotFittedError):
            method()


def test_progress_is_shown_if_verbose(made, capsys):
    known_model(made).set_params(verbose=1).cross_validate()
    assert "Leaving out: members" in capsys.readouterr().err


# --- transfer


def related_outputs(rng, N=60):
    """Two outputs that are nearly equal, and a third that is independent of them."""
    X = rng.uniform(size=(N, 2))
    f, g = (np.linalg.cholesky(RBF(0.15)(X) + 1e-9 * np.eye(N)) @ rng.normal(size=(N, 2))).T
    return X, np.column_stack([f, f, g]) + 0.1 * rng.normal(size=(N, 3))


@pytest.fixture(scope="module")
def related():
    """A table of related outputs and a model of it."""
    X, Y = related_outputs(np.random.default_rng(20171))
    return X, EMGPR(**QUICK | {"batch_size": None, "max_iter": 60}).fit(X, Y)


def test_outputs_that_inform_each_other_gain(related):
    _, model = related
    report = model.transfer_report("output")
    assert report.table["verdict"].tolist() == ["gains", "gains", "no difference"]
    assert report.losing == []
    assert report.table.loc["0", "gain_percent"] > 30
    summary = model.cross_validate("output").summary()
    assert_allclose(report.table[["mae", "nlpd"]], summary[["mae", "nlpd"]])


def test_outputs_that_are_modelled_as_one_although_they_differ_lose():
    X, Y = related_outputs(np.random.default_rng(20171))
    exact = {"batch_size": None, "n_neighbours": None, "parameter_uncertainty": False}
    model = with_weights(EMGPR(**QUICK | exact).fit(X, Y), np.ones((1, 3, 3, 1)))
    assert model.transfer_report("output").losing == ["0", "1", "2"]


def test_independent_outputs_have_no_difference_and_no_gain(made):
    model = IndependentGP(RBF(0.3, "fixed"), random_state=0).fit(made.X, made.Y)
    table = model.transfer_report(GROUPS).table
    assert_array_equal(table["difference"], 0.0)
    assert set(table["verdict"]) == {"no difference"}


def test_a_single_output_gains_nothing():
    """The joint optimisation changes its predictions, but there are no other outputs."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 20, 40))[:, None]
    y = np.sin(X) + 0.2 * rng.normal(size=(40, 1))
    model = EMGPR("rbf", random_state=0).fit(X, y)
    table = model.transfer_report().table
    assert table["difference"].abs().max() > 0
    assert table["verdict"].tolist() == ["no difference"]


def test_two_sites_show_no_difference():
    """A tiny difference with a tinier standard error is not a gain."""
    X, Y = related_outputs(np.random.default_rng(20171))
    model = EMGPR("rbf", random_state=0).fit(X[:2], Y[:2])
    assert set(model.transfer_report().table["verdict"]) == {"no difference"}


def test_differences_are_averaged_in_each_group_first(related):
    X, model = related
    blocks = spatial_blocks(X, 6, random_state=0)
    table = model.transfer_report(blocks).table
    ours = model.cross_validate(blocks).residual.abs()
    alone = copy(model)
    alone.posterior_ = replace(model.posterior_, model=model.posterior_.independent)
    theirs = alone.cross_validate(blocks).residual.abs()
    means = (ours - theirs).groupby(blocks).mean()
    assert_allclose(table["difference"], means.mean())
    assert_allclose(table["standard_error"], means.std() / np.sqrt(6))


def test_unrelated_outputs_are_rarely_found_to_gain():
    """Six tables of three independent outputs, fitted jointly.

    If one table in twenty has a false gain, three of six have one once in 450 draws.
    """
    settings = {"rank": 1, "noise": "independent", "transfer": "full", "n_restarts": 2}
    settings |= {"output_transform": None, "max_iter": 40, "random_state": 0}
    alarms = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(40, 2))
        root = np.linalg.cholesky(RBF(0.2)(X) + 1e-9 * np.eye(40))
        Y = root @ rng.normal(size=(40, 3)) + 0.3 * rng.normal(size=(40, 3))
        model = EMGPR(RBF(), batch_size=None, refine="joint", **settings)
        alarms += "gains" in set(model.fit(X, Y).transfer_report().table["verdict"])
    assert alarms <= 2


def test_the_parts_of_a_whole_keep_their_correlations():
    """95% intervals of 3 × 300 readings in each of two tables; without correlations, 90 to 91%.

    The standard error is 0.7%, and the fits differ from the truth.
    """
    inside = []
    for seed in (0, 2):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(420, 2))
        f = np.column_stack([np.sin(5 * X[:, 0]), np.cos(4 * X[:, 1]), np.sin(3 * X.sum(axis=1))])
        parts = np.exp(f + 0.4 * rng.normal(size=f.shape))
        Y = pd.DataFrame(100 * parts / parts.sum(axis=1, keepdims=True), columns=["a", "b", "c"])
        model = EMGPR(compositions=[["a", "b", "c"]], max_iter=40, n_restarts=2, random_state=0)
        model.fit(X[:120], Y[:120])
        weights = model.stacking_weights_
        assert (weights["joint"] == 1).all()
        low, high = model.predict_quantiles(X[120:], [0.025, 0.975])
        inside.append(np.mean((low < Y[120:]) & (Y[120:] < high)))
    assert 0.925 < np.mean(inside) < 0.975
