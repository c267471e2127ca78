"""ConditionalGP as an estimator: the family's methods, gaps, transforms and bad parameters."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression

import emgpr
from emgpr import ConditionalGP, IndependentGP
from emgpr.regression.settings import all_settings
from emgpr.report import write_report
from emgpr.report.stacking import transfer_statements, transfer_table

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
NAN = np.nan
RNG = np.random.default_rng(5)
X = RNG.uniform(size=(40, 2))
F = np.sin(5 * X[:, 0]) + X[:, 1]
Y = np.column_stack([F, 1 - 2 * F, F**2]) + 0.1 * RNG.normal(size=(40, 3))
Y[:12, 1] = NAN
Y[12:15, 0] = NAN
NEW = RNG.uniform(size=(6, 2))
KNOWN = np.full((6, 3), NAN)
KNOWN[:3, 0], KNOWN[2:4, 2] = 0.5, -0.4
QUICK = {"kernel": RBF(0.4, "fixed"), "max_iter": 4, "n_restarts": 1, "random_state": 0}
SETTINGS = QUICK | {"output_transform": None, "output_bounds": None}
PLACES = pd.DataFrame(X, columns=["east", "north"])
# Outputs that depend on each other, but hardly on the place.
COMMON = np.random.default_rng(1).normal(size=(40, 1))
LOGS = 0.3 * (COMMON * [1.0, -2.0, 1.5] + 0.2 * np.random.default_rng(2).normal(size=(40, 3)))
OUTPUTS = pd.DataFrame(np.exp(LOGS), columns=["Cd", "Ni", "Zn"]).where(~np.isnan(Y))


@pytest.fixture(scope="module")
def model():
    return ConditionalGP(**QUICK, output_transform="log").fit(PLACES, OUTPUTS)


@pytest.fixture(scope="module")
def plain():
    return ConditionalGP(**SETTINGS).fit(X, Y)


def test_every_prediction_accepts_observed(model):
    known = pd.DataFrame(np.exp(KNOWN), columns=OUTPUTS.columns)
    places = pd.DataFrame(NEW, columns=PLACES.columns)
    median, std = model.predict(places, return_std=True, observed=known)
    mean, cov = model.predict(places, return_cov=True, observed=known, statistic="mean")
    assert np.all(mean > 0)
    assert_allclose(np.sqrt(np.einsum("mdd->md", cov)), std)
    low, middle, high = model.predict_quantiles(places, [0.05, 0.5, 0.95], observed=known)
    assert_allclose(middle, median, rtol=1e-6)
    assert np.all((low < middle) & (middle < high))
    exceedance = model.predict_exceedance(places, list(median[0]), observed=known)
    assert_allclose(exceedance[0], 0.5, atol=1e-6)
    assert model.sample_y(places, 3, observed=known).shape == (6, 3, 3)
    frame = model.predict_frame(places, observed=known)
    assert_allclose(frame["Ni"], median[:, 1])


def test_where_nothing_is_known_outputs_are_independent(plain):
    alone = IndependentGP(**SETTINGS).fit(X, Y)
    nothing = np.full((6, 3), NAN)
    expected = alone.predict(NEW, return_std=True)
    for observed in (None, nothing):
        assert_allclose(plain.predict(NEW, return_std=True, observed=observed), expected)


def test_the_joint_model_is_no_candidate(plain):
    plain.predict(NEW, observed=KNOWN)
    weights = plain.stacking_weights_
    assert_array_equal(weights["joint"], 0.0)
    assert_allclose(weights.sum(axis=1), 1.0)
    assert (weights.xs("any", level="distance")["own"] == 1).all()


def test_outputs_without_negative_readings_are_not_predicted_to_be_negative():
    model = ConditionalGP(**QUICK).fit(X, np.abs(Y))
    assert (model.predict_quantiles(X, 0.001) >= 0).all()


def test_cross_validation_by_output_uses_the_known_outputs(model):
    by_site, by_output = (model.cross_validate(by).summary()["rmse"] for by in ("site", "output"))
    assert (by_output < by_site).all()
    alone = IndependentGP(**QUICK, output_transform="log").fit(PLACES, OUTPUTS)
    assert_allclose(by_site, alone.cross_validate().summary()["rmse"])


def test_the_transfer_report_compares_with_independent_outputs(model):
    by_output, by_site = (model.transfer_report(by).table for by in ("output", "site"))
    assert (by_output["gain_percent"] > 0).all()
    assert_array_equal(by_site["gain_percent"], 0.0)


def test_regressions_are_listed_with_their_candidates(plain):
    plain.predict(NEW, observed=KNOWN)
    frame, stack = plain.regressions_, plain.posterior_.stack
    assert list(frame.columns) == [
        "length_scale", "residual_share", "varying_variance", "linear_variance", "smooth_share",
        "weight_near", "weight_far", "variance_near", "variance_far",
    ]  # fmt: skip
    fitted = stack.regressions[1, (0, 2)]
    rows = frame.loc[("1", "0, 2")]
    assert len(rows) == len(fitted.kept)
    settings = [(*residual, *prior) for residual, prior in fitted.kept]
    assert_allclose(rows.iloc[:, :5], settings)
    assert set(settings) <= {(*residual, *prior) for residual, prior in all_settings(False)}
    assert_allclose(rows[["weight_near", "weight_far"]].to_numpy().T, fitted.weights)
    assert_allclose(rows[["variance_near", "variance_far"]].to_numpy().T, fitted.variances)
    sums = frame.groupby(level=["output", "known"])[["weight_near", "weight_far"]].sum()
    assert_allclose(sums, 1.0)
    assert len(sums) == len(stack.regressions)


@pytest.mark.slow
def test_all_questions_are_listed_whatever_the_names_of_outputs(plain):
    """The output "a, b" is not the pair of the outputs a and b."""
    rng = np.random.default_rng(0)
    table = np.column_stack([Y[:, 0], Y[:, 2], rng.normal(size=40), rng.normal(size=40)])
    frame = pd.DataFrame(table, columns=["a", "b", "a, b", "c"]).fillna(0.0)
    model = ConditionalGP(**SETTINGS).fit(X, frame)
    known = pd.DataFrame(np.full((2, 4), NAN), columns=frame.columns)
    known.loc[0, ["a", "b"]] = 1.0
    known.loc[1, "a, b"] = 1.0
    model.predict(X[:2] + 0.05, observed=known)
    stack = model.posterior_.stack
    assert {(3, (0, 1)), (3, (2,))} <= set(stack.known)
    assert len(model.stacking_weights_) == 4 + 2 * len(stack.known)
    kept = sum(len(fitted.kept) for fitted in stack.regressions.values())
    assert len(model.regressions_) == kept


def test_models_without_regressions_have_an_empty_list():
    single = ConditionalGP(**SETTINGS).fit(X, Y[:, 2])
    assert len(single.regressions_) == len(single.stacking_weights_) == 0
    assert single.regressions_.index.names == ["output", "known"]


@pytest.mark.slow
def test_coefficients_can_vary(rng):
    """The coefficient changes its sign over the region."""
    x, z = np.linspace(0, 1, 120)[:, None], rng.normal(size=120)
    table = np.column_stack([z, np.cos(np.pi * x[:, 0]) * z + 0.05 * rng.normal(size=120)])
    truth = table[::3, 1].copy()
    table[::3, 1] = NAN
    errors = {}
    for varying in (False, True):
        model = ConditionalGP("rbf", varying_coefficients=varying, random_state=0).fit(x, table)
        errors[varying] = np.abs(model.predict(x[::3])[:, 1] - truth).mean()
        assert (model.regressions_["varying_variance"] > 0).any() == varying
    assert errors[True] < 0.6 * errors[False]


def test_functions_can_be_nonlinear(rng):
    """An output is the square of another one, and neither depends on the place."""
    x, z = rng.uniform(size=(90, 2)), rng.normal(size=90)
    table = np.column_stack([z, z**2 + 0.05 * rng.normal(size=90)])
    truth = table[::3, 1].copy()
    table[::3, 1] = NAN
    model = ConditionalGP(**SETTINGS).fit(x, table)
    assert np.abs(model.predict(x[::3])[:, 1] - truth).mean() < 0.3 * np.abs(truth - 1).mean()
    smooth = model.regressions_.loc["1"].query("smooth_share > 0")
    assert smooth["weight_near"].sum() > 0.9


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["matern12", "matern32", "matern52", "rbf"])
def test_the_residual_kernel_is_used(kernel):
    model = ConditionalGP(**SETTINGS, residual_kernel=kernel).fit(X, Y)
    assert model.posterior_.stack.kernel == kernel
    assert np.isfinite(model.predict(NEW, observed=KNOWN)).all()


def gap(rng, n=90):
    """Two known series, and one that depends on them and on a residual process of its own."""
    x = np.linspace(0, 9, n)[:, None]
    root = np.linalg.cholesky(np.exp(-np.abs(x - x.T)) + 1e-9 * np.eye(n))
    a, b, residual = (root @ rng.normal(size=n) for _ in range(3))
    y = a - 0.5 * b + 0.3 * residual + 0.1 * rng.normal(size=n)
    return x, np.column_stack([a, b, y])


@pytest.mark.slow
def test_a_long_gap_is_filled_better_than_by_least_squares_or_alone(rng):
    errors = {"conditional": [], "alone": [], "least squares": []}
    settings = {"kernel": "matern12", "output_transform": None, "random_state": 0}
    for _ in range(4):
        x, table = gap(rng)
        truth = table[40:60, 2].copy()
        gappy = table.copy()
        gappy[40:60, 2] = NAN
        for name, Estimator in (("conditional", ConditionalGP), ("alone", IndependentGP)):
            filled = Estimator(**settings).fit(x, gappy).predict(x[40:60])[:, 2]
            errors[name].append(np.mean((filled - truth) ** 2))
        read = np.r_[:40, 60:90]
        line = LinearRegression().fit(table[read, :2], table[read, 2]).predict(table[40:60, :2])
        errors["least squares"].append(np.mean((line - truth) ** 2))
    ours, alone, line = (np.mean(values) for values in errors.values())
    assert ours < 0.5 * alone
    assert ours < line


@pytest.mark.slow
def test_the_order_of_sites_and_outputs_does_not_matter(plain):
    expected = plain.predict(NEW, return_std=True, observed=KNOWN)
    order, rows = [2, 0, 1], np.random.default_rng(0).permutation(len(X))
    other = ConditionalGP(**SETTINGS).fit(X[rows], Y[rows][:, order])
    again = other.predict(NEW, return_std=True, observed=KNOWN[:, order])
    for one, two in zip(expected, again, strict=True):
        assert_allclose(two, one[:, order], rtol=1e-2, atol=1e-3)


@pytest.mark.slow
def test_a_row_without_readings_changes_nothing(plain):
    with pytest.warns(UserWarning, match="Nothing was measured in"):
        padded = ConditionalGP(**SETTINGS).fit(
            np.vstack([X, [[0.5, 0.5]]]), np.vstack([Y, np.full((1, 3), NAN)])
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
    after = again.predict(places, return_std=True, observed=known)
    for one, two in zip(before, after, strict=True):
        assert_allclose(two, one, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("changed", [{"residual_kernel": "rbf"}, {"varying_coefficients": True}])
def test_a_file_contains_the_fitted_model_even_if_parameters_were_changed(changed, tmp_path):
    model = ConditionalGP(**SETTINGS).fit(X, Y)
    expected = model.predict(NEW, return_std=True, observed=KNOWN)
    model.set_params(**changed).save(tmp_path / "model.emgpr")
    again = emgpr.load(tmp_path / "model.emgpr")
    found = again.predict(NEW, return_std=True, observed=KNOWN)
    assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.slow
def test_a_report_can_be_written(model, tmp_path):
    pytest.importorskip("jinja2")
    write_report(model, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf8")
    assert "regression on these outputs" in text
    assert "mainly by their own processes" in transfer_statements(model)[0]
    assert transfer_table(model) is not None


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


@pytest.mark.filterwarnings("ignore:Output '1' has one value only")
def test_a_constant_output_has_no_regression_even_if_another_value_is_known():
    table = Y.copy()
    table[:, 1] = 5.0
    model = ConditionalGP(**SETTINGS).fit(X, table)
    at = X[:2] + 0.05
    before = model.predict(at[:1], observed=[[1.0, NAN, 1.0]], return_std=True)
    model.predict(at, observed=[[1.0, 7.0, 1.0], [1.0, NAN, 1.0]])
    after = model.predict(at[:1], observed=[[1.0, NAN, 1.0]], return_std=True)
    assert_allclose(after, before)
    assert "1" not in model.regressions_.index.get_level_values("output")


@pytest.mark.slow
def test_more_known_outputs_than_readings(rng):
    """Twenty outputs, one of which was measured at fifteen sites."""
    x, common = rng.uniform(size=(40, 2)), rng.normal(size=(40, 1))
    table = common + 0.5 * rng.normal(size=(40, 20))
    truth = table[15:, 0].copy()
    table[15:, 0] = NAN
    model = ConditionalGP(**SETTINGS).fit(x, table)
    median, std = (part[15:, 0] for part in model.predict(x, return_std=True))
    assert np.isfinite(std).all()
    assert np.mean((median - truth) ** 2) < 0.8 * np.mean((truth - np.nanmean(table[:, 0])) ** 2)


@pytest.mark.slow
def test_many_readings_are_predicted_from_neighbours():
    """More readings than a regression uses at once; draws and predictions agree.

    20 means within 5 standard errors: a false alarm in 87,000 runs.
    """
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(760, 1))
    z = rng.normal(size=760)
    table = np.column_stack([z, z + np.sin(20 * x[:, 0]) + 0.1 * rng.normal(size=760)])
    truth = table[::19, 1].copy()
    table[::19, 1] = NAN
    settings = SETTINGS | {"kernel": RBF(0.1, "fixed"), "latent_learner": "vecchia"}
    model = ConditionalGP(**settings).fit(x, table)
    at = x[::19]
    median, std = (part[:, 1] for part in model.predict(at, return_std=True))
    assert np.sqrt(np.mean((median - truth) ** 2)) < 0.2
    drawn = model.sample_y(at[:20], 400, random_state=0)[:, 1]
    assert np.all(np.abs(drawn.mean(axis=1) - median[:20]) < 5 * std[:20] / np.sqrt(400) + 0.02)


def test_a_plan_includes_the_regressions():
    plans = [Model(**QUICK).plan(PLACES, OUTPUTS) for Model in (ConditionalGP, IndependentGP)]
    conditional, independent = ([step.name for step in plan.steps] for plan in plans)
    assert conditional == [*independent, "stacking"]
    assert plans[0].steps[-1].seconds > 0


def test_parts_of_a_whole_are_predicted_without_known_outputs_and_a_warning_says_so():
    parts = 100 * np.random.default_rng(3).dirichlet([2, 2, 2], 40)
    table = pd.DataFrame(parts, columns=["sand", "silt", "clay"]).assign(other=F)
    model = ConditionalGP(**QUICK, compositions=[["sand", "silt", "clay"]])
    with pytest.warns(UserWarning, match=r"a whole \(sand, silt, clay\).*without known outputs"):
        model.fit(X, table)
    known = np.full((1, 4), NAN)
    known[0, 3] = 1.0
    alone, given = model.predict(NEW[:1]), model.predict(NEW[:1], observed=known)
    assert_allclose(given[0, :3], alone[0, :3])


@pytest.mark.parametrize("estimator", [ConditionalGP, emgpr.EMGPR])
def test_outputs_that_were_never_measured_together_can_both_be_known(estimator):
    """Knowing a second output does not make the first one useless."""
    rng = np.random.default_rng(0)
    x, new = rng.uniform(size=(80, 2)), rng.uniform(size=(60, 2))
    f = np.sin(6 * x[:, 0]) + rng.normal(size=80)
    Y = f[:, None] + 0.1 * rng.normal(size=(80, 3))
    Y[:40, 0] = Y[40:, 1] = NAN
    truth = np.sin(6 * new[:, 0]) + rng.normal(size=60)
    both = np.column_stack([truth, truth, np.full(60, NAN)])
    one = np.where([True, False, True], both, NAN)
    model = estimator(**SETTINGS).fit(x, Y)
    errors = [
        np.abs(model.predict(new, observed=known)[:, 2] - truth).mean() for known in (one, both)
    ]
    assert errors[0] < 0.3
    assert errors[1] < 0.3
