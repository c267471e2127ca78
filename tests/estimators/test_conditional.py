"""ConditionalGP as an estimator: the family's methods, gaps, transforms and bad parameters."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression

import emgpr
from emgpr import ConditionalGP, IndependentGP
from emgpr.estimators import conditional
from emgpr.report import write_report
from emgpr.report.transfer import transfer_statements, transfer_table
from tests.conditional.test_posterior import KNOWN, NEW, SETTINGS, X, Y

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
QUICK = {"kernel": RBF(0.4, "fixed"), "max_iter": 4, "random_state": 0}
PLACES = pd.DataFrame(X, columns=["east", "north"])
# Outputs that depend on each other, but hardly on the place.
COMMON = np.random.default_rng(1).normal(size=(40, 1))
LOGS = 0.3 * (COMMON * [1.0, -2.0, 1.5] + 0.2 * np.random.default_rng(2).normal(size=(40, 3)))
OUTPUTS = pd.DataFrame(np.exp(LOGS), columns=["Cd", "Ni", "Zn"]).where(~np.isnan(Y))


@pytest.fixture(scope="module")
def model():
    return ConditionalGP(**QUICK | {"max_iter": 30}, output_transform="log").fit(PLACES, OUTPUTS)


def test_every_prediction_accepts_observed(model):
    known = pd.DataFrame(np.exp(KNOWN), columns=OUTPUTS.columns)
    places = pd.DataFrame(NEW, columns=PLACES.columns)
    median, std = model.predict(places, return_std=True, observed=known)
    mean, cov = model.predict(places, return_cov=True, observed=known, statistic="mean")
    assert np.all(mean > median)  # of log-normal distributions
    assert_allclose(np.sqrt(np.einsum("mdd->md", cov)), std)
    low, middle, high = model.predict_quantiles(places, [0.05, 0.5, 0.95], observed=known)
    assert_allclose(middle, median, rtol=1e-6)
    assert np.all((low < middle) & (middle < high))
    exceedance = model.predict_exceedance(places, list(median[0]), observed=known)
    assert_allclose(exceedance[0], 0.5, atol=1e-6)
    assert model.sample_y(places, 3, observed=known).shape == (6, 3, 3)
    frame = model.predict_frame(places, observed=known)
    assert_allclose(frame["Ni"], median[:, 1])


def test_outputs_without_negative_readings_are_not_predicted_to_be_negative():
    table = np.abs(Y)
    model = ConditionalGP(**QUICK).fit(X, table)
    assert (model.predict_quantiles(X, 0.001) >= 0).all()


def test_cross_validation_by_output_uses_the_known_outputs(model):
    by_site, by_output = (model.cross_validate(by).summary()["rmse"] for by in ("site", "output"))
    assert (by_output < by_site).all()
    settings = QUICK | {"max_iter": 30, "output_transform": "log"}
    alone = IndependentGP(**settings).fit(PLACES, OUTPUTS)
    assert_allclose(by_site, alone.cross_validate().summary()["rmse"])


def test_the_transfer_report_compares_with_independent_outputs(model):
    report = model.transfer_report("output").table
    assert (report["gain_percent"] > 0).all()
    assert model.alone_ == {"site": ["Cd", "Ni", "Zn"], "output": []}


def test_regressions_are_listed(model):
    model.predict(PLACES[:12])
    row = model.regressions_.loc["Ni", "Cd, Zn", "blocks", False]
    assert list(row.index) == [
        "linear", "smooth", "smooth_scale", "residual", "residual_scale", "noise", "weight"
    ]  # fmt: skip
    theta = model.posterior_.regressions.fitted[1, (0, 2)][1].theta
    assert_allclose(row[:-1], np.exp([1, 1, 2, 1, 2, 1] * theta / 2))
    weights = model.regressions_.loc["Ni", "Cd, Zn"]["weight"]
    assert_allclose(weights.sum(), 1.0)
    assert (weights > 0).all()


def test_no_regressions_are_fitted_before_they_are_needed():
    fresh = ConditionalGP(**QUICK).fit(PLACES, OUTPUTS)
    assert len(fresh.regressions_) == 0
    fresh.predict(PLACES + 10)
    assert len(fresh.regressions_) == 0


def test_coefficients_can_vary(rng):
    """The coefficient changes its sign over the region."""
    x, z = np.linspace(0, 1, 120)[:, None], rng.normal(size=120)
    table = np.column_stack([z, np.cos(np.pi * x[:, 0]) * z + 0.05 * rng.normal(size=120)])
    truth = table[::3, 1].copy()
    table[::3, 1] = np.nan
    errors = {}
    for varying in (False, True):
        model = ConditionalGP("rbf", varying_coefficients=varying, random_state=0).fit(x, table)
        errors[varying] = np.abs(model.predict(x[::3])[:, 1] - truth).mean()
    assert errors[True] < 0.5 * errors[False]


def test_functions_can_be_nonlinear(rng):
    """An output is the square of another one, and neither depends on the place."""
    x, z = rng.uniform(size=(120, 2)), rng.normal(size=120)
    table = np.column_stack([z, z**2 + 0.05 * rng.normal(size=120)])
    truth = table[::3, 1].copy()
    table[::3, 1] = np.nan
    settings = {"output_transform": None, "output_bounds": None, "random_state": 0}
    model = ConditionalGP("rbf", **settings).fit(x, table)
    assert np.abs(model.predict(x[::3])[:, 1] - truth).mean() < 0.3 * np.abs(truth - 1).mean()
    weights = model.regressions_["weight"].groupby("linear").sum()
    assert weights[False] > 0.9


def test_a_plan_says_that_regressions_are_not_included():
    plan = ConditionalGP(**QUICK).plan(PLACES, OUTPUTS)
    assert [step.name for step in plan.steps][-1] == "step 1"
    assert "Regressions on known outputs are not included" in str(plan)
    assert "not included" not in str(IndependentGP(**QUICK).plan(PLACES, OUTPUTS))


def gap(rng, n=120):
    """Two known series, and one that depends on them and on a residual process of its own."""
    x = np.linspace(0, 12, n)[:, None]
    root = np.linalg.cholesky(np.exp(-np.abs(x - x.T)) + 1e-9 * np.eye(n))
    a, b, residual = (root @ rng.normal(size=n) for _ in range(3))
    y = a - 0.5 * b + 0.3 * residual + 0.1 * rng.normal(size=n)
    return x, np.column_stack([a, b, y])


@pytest.mark.slow
def test_intervals_hold_in_gaps(rng):
    """95% intervals for 30 gaps of 40 readings each: on average, 86% to 99% of these are inside.

    In 300 other gaps, 94% were inside, with a standard deviation of 0.095 between gaps, since
    readings in a gap depend on each other. Means of 30 of these, drawn with replacement, are
    outside the limits in one of 7,500 cases.
    """
    inside = []
    for _ in range(30):
        x, table = gap(rng)
        truth = table[60:100, 2].copy()
        table[60:100, 2] = np.nan
        model = ConditionalGP("rbf", output_transform=None, random_state=0).fit(x, table)
        low, high = model.predict_quantiles(x[60:100], [0.025, 0.975])[..., 2]
        inside.append(np.mean((low < truth) & (truth < high)))
    assert 0.86 < np.mean(inside) < 0.99


def test_a_long_gap_is_filled_better_than_by_least_squares_or_alone(rng):
    errors = {"conditional": [], "alone": [], "least squares": []}
    settings = {"kernel": "matern12", "output_transform": None, "random_state": 0}
    for _ in range(4):
        x, table = gap(rng)
        truth = table[40:60, 2].copy()
        gappy = table.copy()
        gappy[40:60, 2] = np.nan
        for name, Estimator in (("conditional", ConditionalGP), ("alone", IndependentGP)):
            filled = Estimator(**settings).fit(x, gappy).predict(x[40:60])[:, 2]
            errors[name].append(np.mean((filled - truth) ** 2))
        read = np.r_[:40, 60:120]
        line = LinearRegression().fit(table[read, :2], table[read, 2]).predict(table[40:60, :2])
        errors["least squares"].append(np.mean((line - truth) ** 2))
    ours, alone, line = (np.mean(values) for values in errors.values())
    assert ours < 0.5 * alone
    assert ours < line


def test_the_order_of_sites_and_outputs_does_not_matter():
    plain = ConditionalGP(**SETTINGS).fit(X, Y).predict(NEW, return_std=True, observed=KNOWN)
    order, rows = [2, 0, 1], np.random.default_rng(0).permutation(len(X))
    other = ConditionalGP(**SETTINGS).fit(X[rows], Y[rows][:, order])
    again = other.predict(NEW, return_std=True, observed=KNOWN[:, order])
    for one, two in zip(plain, again, strict=True):
        assert_allclose(two, one[:, order], rtol=1e-2, atol=1e-3)


def test_a_row_without_readings_changes_nothing():
    plain = ConditionalGP(**SETTINGS).fit(X, Y)
    with pytest.warns(UserWarning, match="Nothing was measured in"):
        padded = ConditionalGP(**SETTINGS).fit(
            np.vstack([X, [[0.5, 0.5]]]), np.vstack([Y, np.full((1, 3), np.nan)])
        )
    one, two = (model.predict(NEW, observed=KNOWN) for model in (plain, padded))
    assert_allclose(two, one, rtol=1e-8)


def test_a_saved_model_predicts_the_same(model, tmp_path):
    known = pd.DataFrame(np.exp(KNOWN), columns=OUTPUTS.columns)
    places = pd.DataFrame(NEW, columns=PLACES.columns)
    before = model.predict(places, return_std=True, observed=known)
    model.save(tmp_path / "metals.emgpr")
    again = emgpr.load(tmp_path / "metals.emgpr")
    assert isinstance(again, ConditionalGP)
    pd.testing.assert_frame_equal(again.regressions_, model.regressions_)
    for one, two in zip(
        before, again.predict(places, return_std=True, observed=known), strict=True
    ):
        assert_allclose(two, one, rtol=1e-10)


def test_a_report_can_be_written(model, tmp_path):
    pytest.importorskip("jinja2")
    write_report(model, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf8")
    assert "its own readings" in text


def test_a_single_output_is_an_ordinary_gaussian_process():
    ours, theirs = (
        Estimator(**SETTINGS).fit(X, Y[:, 2]).predict(NEW, return_std=True)
        for Estimator in (ConditionalGP, IndependentGP)
    )
    for one, two in zip(ours, theirs, strict=True):
        assert_allclose(one, two)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"residual_kernel": "smooth"}, 'residual_kernel="smooth"|residual_kernel=.smooth'),
        ({"varying_coefficients": "yes"}, "varying_coefficients='yes'; expected True or False"),
        ({"max_iter": 0}, "max_iter=0"),
    ],
)
def test_invalid_parameters_are_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        ConditionalGP(**setting).fit(X, Y)


def a_gap(N=40):
    """Three related series, the last of which has a gap."""
    rng = np.random.default_rng(0)
    X = np.linspace(0, 10, N)[:, None]
    z = np.sin(X) + np.sin(2.3 * X)
    Y = np.hstack([z, 2 * z, -z]) + 0.1 * rng.normal(size=(N, 3))
    Y[20:30, 2] = np.nan
    return X, Y


@pytest.mark.filterwarnings("ignore:Output '1' has one value only")
def test_a_constant_output_has_no_regression_even_if_another_value_is_known():
    X, Y = a_gap()
    Y[:, 1] = 5.0
    model = ConditionalGP(random_state=0).fit(X, Y)
    before = model.predict(X[:1] + 0.05, observed=[[1.0, np.nan, 1.0]], return_std=True)
    model.predict(X[:2] + 0.05, observed=[[1.0, 7.0, 1.0], [1.0, np.nan, 1.0]])
    after = model.predict(X[:1] + 0.05, observed=[[1.0, np.nan, 1.0]], return_std=True)
    assert_allclose(after, before)
    assert "1" not in model.regressions_.index.get_level_values("output")


@pytest.mark.parametrize(
    "changed",
    [
        {"residual_kernel": "rbf"},
        {"varying_coefficients": True},
        {"parameter_uncertainty": False},
    ],
)
def test_a_file_contains_the_fitted_model_even_if_parameters_were_changed(changed, tmp_path):
    X, Y = a_gap()
    model = ConditionalGP(random_state=0, max_iter=20).fit(X, Y)
    expected = model.predict(X, return_std=True)
    model.set_params(**changed).save(tmp_path / "model.emgpr")
    found = emgpr.load(tmp_path / "model.emgpr").predict(X, return_std=True)
    assert_allclose(found, expected, rtol=1e-9)


def test_more_readings_than_a_regression_can_use_are_refused_by_fit(monkeypatch):
    monkeypatch.setattr(conditional, "MAX_READINGS", 39)
    with pytest.raises(ValueError, match="'0' has 40 readings; ConditionalGP takes at most 39"):
        ConditionalGP(random_state=0, max_iter=2, n_restarts=1).fit(*a_gap())


def test_all_regressions_are_listed_whatever_the_names_of_outputs():
    X, Y = a_gap()
    Y = pd.DataFrame(np.column_stack([Y[:, :2], Y[:, :2]]), columns=["a", "b", "a, b", "c"])
    model = ConditionalGP(random_state=0, max_iter=5, n_restarts=1).fit(X, Y)
    known = pd.DataFrame(np.full((2, 4), np.nan), columns=Y.columns)
    known.loc[0, ["a", "b"]] = 1.0
    known.loc[1, "a, b"] = 1.0
    model.predict(X[:2] + 0.05, observed=known)
    assert len(model.regressions_) == 4 * len(model.posterior_.regressions.fitted)


def test_the_report_does_not_say_that_transfer_was_tested():
    model = ConditionalGP(random_state=0, max_iter=5, n_restarts=1).fit(*a_gap())
    assert "are used to predict" in transfer_statements(model)[1]
    assert not transfer_table(model).note
