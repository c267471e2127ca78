"""Models asked of themselves: cross-validation, and whether transfer was worth it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import lognorm, norm
from simulated import known_model, smooth_table, world
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, IndependentGP
from emgpr.covariance.dense import coregionalization
from emgpr.ensemble import join
from emgpr.estimators.left_out import spatial_blocks
from emgpr.estimators.validation import losing_outputs
from emgpr.metrics import mean_absolute_error
from emgpr.prediction import condition

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Nothing was read in"),
]
QUICK = {
    "kernel": None,
    "transform": None,
    "transfer": "full",
    "max_iter": 5,
    "n_restarts": 2,
    "batch_size": 9,
    "random_state": 0,
}
GROUPS = ["north", "south", "south", "east"] * 3


@pytest.fixture
def made(rng):
    """Twelve sites, some readings missing, none at the fourth; noises of a sample are joined."""
    made = world(rng, missing=0.2, correlated=True)
    made.Y[3] = np.nan
    return made


@pytest.fixture(scope="module")
def ensemble():
    X, Y = smooth_table(np.random.default_rng(11), N=27)
    return EMGPR(**QUICK).fit(X, Y)


def by_fitting_again(made, by, **settings):
    """Predictions and deviations of models that never had what is left out."""
    mean, std = np.full((2, *made.Y.shape), np.nan)
    sites, readings = np.arange(12), np.arange(36).reshape(12, 3)
    groups = np.unique(GROUPS, return_inverse=True)[1]
    number = readings if by == "output" else (groups if by is GROUPS else sites)[:, None]
    number = np.where(np.isnan(made.Y), -1, number)
    for label in np.unique(number[number >= 0]):
        left_out = number == label
        model = known_model(made.table(np.where(left_out, np.nan, made.Y)), **settings)
        told = model.predict(made.X, return_std=True)
        mean[left_out], std[left_out] = told[0][left_out], told[1][left_out]
    return mean, std


@pytest.mark.parametrize(
    ("by", "settings"),
    [("site", {}), ("output", {}), (GROUPS, {}), ("site", {"conditioning": 3})],
    ids=["site", "output", "groups", "neighbours"],
)
def test_it_predicts_as_models_that_never_had_the_reading(made, by, settings):
    checked = known_model(made, **settings).cross_validate(by)
    mean, std = by_fitting_again(made, by, **settings)
    assert_allclose(checked.truth, made.Y)
    assert_allclose(checked.prediction, mean, atol=1e-8)
    assert_allclose(checked.std, std, atol=1e-8)
    assert_allclose(checked.upper, mean + norm.ppf(0.975) * std, atol=1e-8)
    assert_allclose(checked.lower, mean - norm.ppf(0.975) * std, atol=1e-8)
    assert_allclose(checked.standardized, (made.Y - mean) / std, atol=1e-7)
    assert_allclose(checked.nlpd, -norm.logpdf(made.Y, mean, std), atol=1e-7)
    assert_allclose(checked.pit, norm.cdf(made.Y, mean, std), atol=1e-8)


def test_members_that_know_their_batch_predict_from_it(rng):
    X, Y = smooth_table(rng, N=18)
    model = EMGPR(**QUICK, conditioning="batch").fit(X, Y)
    checked = model.cross_validate()
    site = int(model._parts[0][0])
    told = []
    for W, part in zip(model.weights_, model._parts, strict=True):
        rest = model._seen.at(part[part != site])
        told.append(condition(rest, X[[site]], model.kernels_, W[None], model._noise).mean[0, 0])
    assert_allclose(
        model._seen.y[:, site] - np.mean(told, axis=0),
        checked.standardized.iloc[site] * spread(model, checked, site),
        atol=1e-8,
    )


def spread(model, checked, site):
    """The standard deviation of a prediction, standardised."""
    return checked.std.iloc[site] / model._scale.scale


@pytest.mark.parametrize("rule", ["poe", "rbcm"])
def test_members_are_joined_as_in_predictions(ensemble, rule):
    ensemble.combine = rule
    try:
        checked = ensemble.cross_validate()
    finally:
        ensemble.combine = "mean"
    seen = ensemble._seen
    rest = seen.at(np.arange(1, seen.n_sites))
    belief = condition(rest, seen.x[:1], ensemble.kernels_, ensemble.weights_, ensemble._noise)
    before = coregionalization(ensemble.weights_).sum(axis=1)[:, None]  # kernels of unit variance
    mean, cov = join(rule, belief.mean, belief.cov, before)
    std = np.sqrt(np.diagonal(cov[0, 0] + ensemble._noise))
    assert_allclose(checked.standardized.iloc[0], (seen.y[:, 0] - mean[0, 0]) / std, rtol=1e-6)


def test_the_rows_are_those_of_the_inputs(made):
    """Also the last, at which nothing was measured."""
    made.Y[-1] = np.nan
    X = pd.DataFrame(made.X, index=[f"well {i}" for i in range(12)])
    Y = pd.DataFrame(made.Y, columns=["Cd", "Ni", "Zn"])
    labels = [None if i in (3, 11) else i % 2 for i in range(12)]
    model = IndependentGP(RBF(0.3, "fixed"), random_state=0)
    checked = model.fit(X.set_axis(["a", "b"], axis=1), Y).cross_validate(labels)
    assert checked.crps.index.tolist() == X.index.tolist()
    assert checked.crps.columns.tolist() == ["Cd", "Ni", "Zn"]
    assert_array_equal(checked.crps.isna(), np.isnan(made.Y))
    assert_allclose(checked.residual, checked.truth - checked.prediction)


def test_through_a_transform_it_is_on_the_users_scale():
    X, Y = smooth_table(np.random.default_rng(3), N=20)
    Y = Y / Y.std(axis=0) * 0.5
    settings = {"kernel": RBF(0.3, "fixed"), "random_state": 0}
    logs = IndependentGP(**settings).fit(X, Y).cross_validate()
    checked = IndependentGP(**settings, transform="log").fit(X, np.exp(Y)).cross_validate()
    for name in ("truth", "prediction", "lower", "upper"):
        assert_allclose(getattr(checked, name), np.exp(getattr(logs, name)))
    for name in ("pit", "standardized"):
        assert_allclose(getattr(checked, name), getattr(logs, name), atol=1e-9)
    density = lognorm.logpdf(checked.truth, logs.std, scale=checked.prediction)
    assert_allclose(checked.nlpd, -density)


def test_the_summary_has_a_row_an_output(made):
    checked = known_model(made).cross_validate()
    summary = checked.summary()
    assert summary.columns.tolist() == ["n", "mae", "rmse", "smse", "nlpd", "crps", "coverage"]
    assert summary["n"].tolist() == (~np.isnan(made.Y)).sum(axis=0).tolist()
    truth, mean = checked.truth.to_numpy(), checked.prediction.to_numpy()
    assert_allclose(summary["mae"], mean_absolute_error(truth, mean))
    assert_allclose(summary["smse"], summary["rmse"] ** 2 / np.nanvar(truth, axis=0))
    assert_allclose(summary["crps"], np.nanmean(checked.crps, axis=0))
    inside = np.abs(checked.standardized) <= norm.ppf(0.975)
    assert_allclose(summary["coverage"], inside.sum() / summary["n"])
    n = int(summary["n"].sum())
    assert repr(checked).startswith(f"Cross-validation by site: {n} readings of 3 outputs\n")
    assert "<table" in checked._repr_html_()


@pytest.mark.parametrize(
    ("by", "complaint"),
    [
        (
            "sites",
            'by=\'sites\'; expected "site", "output", "block", or 12 labels: one for each row',
        ),
        (5, "by=5; expected .*spatial_blocks"),
        (np.zeros((12, 2)), r"by \(shape \(12, 2\)\); expected"),
        (np.arange(11), "by has 11 labels; expected .* 12 labels"),
        ([1, np.nan] * 6, r"no label in 5 rows .* first in rows \[1, 5, 7, 9, 11\]"),
        (["a"] * 12, "every reading into one group, 'a'"),
    ],
)
def test_what_cannot_be_left_out_is_refused(made, by, complaint):
    with pytest.raises(ValueError, match=complaint):
        known_model(made).cross_validate(by)


@pytest.mark.filterwarnings("ignore:Output '1' was read 4 times only")
def test_a_group_with_every_reading_of_an_output_is_refused(made):
    made.Y[6:, 1] = np.nan
    n = int((~np.isnan(made.Y[:, 1])).sum())
    with pytest.raises(ValueError, match=f"Group 'west' holds all {n} readings of output '1'"):
        known_model(made).transfer_report(["west"] * 6 + ["east"] * 6)


def test_before_fit_there_is_nothing_to_check():
    for ask in (EMGPR().cross_validate, EMGPR().transfer_report):
        with pytest.raises(NotFittedError):
            ask()


def related(rng, N=60):
    """Two outputs that are nearly one, and a third that has nothing to do with them."""
    X = rng.uniform(size=(N, 2))
    f, g = (np.linalg.cholesky(RBF(0.15)(X) + 1e-9 * np.eye(N)) @ rng.normal(size=(N, 2))).T
    return X, np.column_stack([f, f, g]) + 0.1 * rng.normal(size=(N, 3))


def test_outputs_that_inform_each_other_gain(rng):
    X, Y = related(rng)
    model = EMGPR(**QUICK | {"batch_size": None, "max_iter": 60}).fit(X, Y)
    report = model.transfer_report("output")
    assert report.table["verdict"].tolist() == ["gains", "gains", "no difference"]
    assert report.losing == []
    assert report.table.loc["0", "gain_percent"] > 30
    assert repr(report).endswith("Transfer helps 0, 1; no difference is seen for 2.")
    assert "<table" in report._repr_html_()
    assert 0 not in losing_outputs(model, "output")
    checked = model.cross_validate("output").summary()
    assert_allclose(report.table[["mae", "nlpd"]], checked[["mae", "nlpd"]])


def test_outputs_that_transfer_spoils_lose(rng):
    X, Y = related(rng)
    model = EMGPR(**QUICK | {"batch_size": None}).fit(X, Y)
    model.weights_ = np.ones((1, 3, 3, 1))  # as if all were one
    report = model.transfer_report("output")
    assert report.losing == ["0", "1", "2"]
    assert repr(report).endswith("Transfer harms 0, 1, 2.")
    assert losing_outputs(model, "output").tolist() == [0, 1, 2]


def test_no_transfer_makes_no_difference(made):
    """Nor is it lower than without: all are losing, in the sense of a safe fit."""
    model = IndependentGP(RBF(0.3, "fixed"), random_state=0).fit(made.X, made.Y)
    table = model.transfer_report(GROUPS).table
    assert_array_equal(table["difference"], 0.0)
    assert set(table["verdict"]) == {"no difference"}
    assert losing_outputs(model).tolist() == [0, 1, 2]


def test_differences_are_averaged_in_each_group_first(rng):
    X, Y = related(rng)
    model = EMGPR(**QUICK | {"batch_size": None}).fit(X, Y)
    blocks = spatial_blocks(X, 6, random_state=0)
    table = model.transfer_report(blocks).table
    ours = model.cross_validate(blocks).residual.abs()
    alone = model._apart
    model.kernels_, model.weights_, model._noise = alone.kernels, alone.W[None], alone.noise
    theirs = model.cross_validate(blocks).residual.abs()
    means = (ours - theirs).groupby(blocks).mean()
    assert_allclose(table["difference"], means.mean())
    assert_allclose(table["standard_error"], means.std() / np.sqrt(6))


def test_outputs_that_have_nothing_in_common_are_not_said_to_gain():
    """Six draws of three independent outputs, learned jointly.

    One draw in forty has a false gain (measured on 200); three of six by chance: once in 3400.
    """
    alarms = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(40, 2))
        root = np.linalg.cholesky(RBF(0.2)(X) + 1e-9 * np.eye(40))
        Y = root @ rng.normal(size=(40, 3)) + 0.3 * rng.normal(size=(40, 3))
        model = EMGPR(batch_size=None, refine="joint", n_restarts=2, random_state=0).fit(X, Y)
        alarms += "gains" in set(model.transfer_report().table["verdict"])
    assert alarms <= 2


def test_blocks_are_of_neighbours_whatever_the_units(rng):
    X = rng.uniform(size=(80, 2)) * [1.0, 1e4]
    blocks = spatial_blocks(X, 4, random_state=1)
    assert_array_equal(blocks, spatial_blocks(X, 4, random_state=1))
    assert sorted(set(blocks)) == [0, 1, 2, 3]
    scaled = X / X.std(axis=0)
    centres = np.array([scaled[blocks == b].mean(axis=0) for b in range(4)])
    nearest = np.linalg.norm(scaled[:, None] - centres, axis=-1).argmin(axis=1)
    assert_array_equal(nearest, blocks)
    model = known_model(replace(world(rng, N=80), X=scaled))
    assert "by 4 groups" in repr(model.cross_validate(blocks))


@pytest.mark.parametrize("n", [1, 5, True])
def test_blocks_that_cannot_be_made_are_refused(n):
    with pytest.raises(ValueError, match=f"n_blocks={n}; expected a whole number from 2 to 4"):
        spatial_blocks(np.arange(4.0)[:, None], n)


def test_a_bar_shows_how_far_it_is(made, capsys):
    model = known_model(made)
    model.verbose = 1
    model.cross_validate()
    assert "Leaving out: members" in capsys.readouterr().err
