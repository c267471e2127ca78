"""The default transfer="auto": identities of predictions, files, lazy tables and distributions."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

import emgpr
from emgpr import EMGPR, IndependentGP
from emgpr.prediction import LMCPosterior
from emgpr.stacking import StackedPosterior

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
NAN = np.nan
QUICK = {
    "kernel": RBF(0.3, "fixed"),
    "output_transform": None,
    "output_bounds": None,
    "max_iter": 6,
    "n_restarts": 1,
    "random_state": 0,
}


def table(N=32, seed=0):
    """Three related outputs along a line; the second has a gap."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 3, size=(N, 1)), axis=0)
    f, g = np.sin(3 * X[:, 0]), np.cos(5 * X[:, 0])
    Y = np.column_stack([f, f + 0.5 * g, g]) + 0.15 * rng.normal(size=(N, 3))
    Y[(X[:, 0] > 1) & (X[:, 0] < 2), 1] = NAN
    Y[::11, 0] = NAN
    return X, Y


X, Y = table()
NEW = np.linspace(0.1, 2.9, 9)[:, None]
KNOWN = np.full((9, 3), NAN)
KNOWN[:6, 0], KNOWN[3:8, 2] = 0.4, -0.3


def fit(X=X, Y=Y, **changes):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return EMGPR(**QUICK | changes).fit(X, Y)


@pytest.fixture(scope="module")
def model():
    return fit()


@pytest.fixture(scope="module")
def logs():
    """Log-normal outputs."""
    return fit(Y=np.exp(Y), output_transform="log")


def answers(model, observed=KNOWN, new=NEW):
    """Medians and standard deviations where nothing is known, where others are, and at sites."""
    parts = [
        model.predict(new, return_std=True),
        model.predict(new, return_std=True, observed=observed),
        model.predict(X[5:25], return_std=True),
    ]
    return np.concatenate([np.stack(part) for part in parts], axis=1)


def test_the_default_is_a_mixture(model):
    assert isinstance(model.posterior_, StackedPosterior)
    weights = model.stacking_weights_
    assert_allclose(weights.sum(axis=1), 1.0)
    assert set(weights.columns) == {"own", "joint", "regression"}
    assert {("0", "", "any"), ("2", "", "any")} < set(weights.index)
    # Where nothing is known in the gap, the joint model predicts better than the own process.
    assert weights.loc[("1", "", "far"), "joint"] > 0.5
    # In the gap, the regression on the other outputs predicts best.
    assert weights.loc[("1", "0, 2", "far"), "regression"] > 0.5


def test_a_gap_is_predicted_as_well_between_the_sites_as_at_them():
    """Where nothing is known, the sites around tell as much as the joint model makes of them."""
    rng = np.random.default_rng(0)

    def signal(time):
        return (np.sin(time) + np.sin(2.3 * time) + np.sin(0.4 * time)) * [1.0, 0.8, 1.5]

    time = np.linspace(0, 20, 200)[:, None]
    table = signal(time) + 0.2 * rng.normal(size=(200, 3))
    table[80:140, 2] = np.nan
    model = EMGPR(random_state=0).fit(time, table)
    between = time[80:140] + 0.04
    error = np.sqrt(np.mean((model.predict(between) - signal(between))[:, 2] ** 2))
    assert error < 0.15  # 0.33 if the own process has the same weight as near its readings


@pytest.mark.slow
@pytest.mark.parametrize("order", [[2, 0, 1], [1, 0, 2]])
def test_the_order_of_outputs_does_not_matter(model, order):
    moved = fit(Y=Y[:, order])
    found = answers(moved, KNOWN[:, order])
    assert_allclose(found, answers(model)[..., order], rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_the_order_of_sites_hardly_matters(model):
    """The optimisation takes another path."""
    rows = np.random.default_rng(3).permutation(len(X))
    shuffled = fit(X[rows], Y[rows])
    assert_allclose(answers(shuffled), answers(model), rtol=0.1, atol=0.05)


@pytest.mark.slow
def test_units_do_not_matter(model):
    """Up to candidates whose weights are just large enough for them to be kept."""
    scale, shift = np.array([10.0, 0.1, 3.0]), np.array([5.0, -2.0, 0.0])
    other = fit(7 * X, Y * scale + shift, kernel=RBF(2.1, "fixed"))
    median, std = other.predict(7 * NEW, return_std=True, observed=KNOWN * scale + shift)
    expected = model.predict(NEW, return_std=True, observed=KNOWN)
    assert_allclose((median - shift) / scale, expected[0], rtol=0.01, atol=0.01)
    assert_allclose(std / scale, expected[1], rtol=0.01)


@pytest.mark.slow
def test_rows_of_nan_are_the_same_as_absence(model):
    with pytest.warns(UserWarning, match="Nothing was measured in"):
        padded = EMGPR(**QUICK).fit(np.vstack([X, [[1.5]]]), np.vstack([Y, np.full((1, 3), NAN)]))
    assert_allclose(answers(padded), answers(model), rtol=1e-7, atol=1e-9)
    nothing = np.full((9, 3), NAN)
    for one, two in zip(
        model.predict(NEW, return_std=True),
        model.predict(NEW, return_std=True, observed=nothing),
        strict=True,
    ):
        assert_allclose(two, one, rtol=1e-9)


def test_a_site_with_missing_outputs_is_one_where_the_others_are_known(model):
    """The answer at a training site is the one for new readings with the same values."""
    gap = np.flatnonzero(np.isnan(Y[:, 1]) & ~np.isnan(Y[:, 0]))
    at_site = model.predict(X[gap], return_std=True)
    repeated = model.predict(X[gap], return_std=True, observed=Y[gap])
    for one, two in zip(at_site, repeated, strict=True):
        assert_allclose(two[:, 1], one[:, 1], rtol=1e-7)


def test_a_single_output_is_not_stacked():
    single = fit(Y=Y[:, 2])
    assert type(single.posterior_) is LMCPosterior
    assert len(single.stacking_weights_) == 0
    alone = IndependentGP(**QUICK).fit(X, Y[:, 2])
    assert_allclose(single.predict(NEW), alone.predict(NEW), rtol=0.05, atol=0.02)


def test_full_transfer_is_the_joint_model(model):
    full = fit(transfer="full")
    assert type(full.posterior_) is LMCPosterior
    assert len(full.stacking_weights_) == 0
    joint = model.posterior_.with_transfer()
    for known in (None, (KNOWN - model.output_scaler_.shift) / model.output_scaler_.scale):
        one, two = full.posterior_.predict(NEW, known), joint.predict(NEW, known)
        assert_allclose(two.mean, one.mean, rtol=1e-9)
        assert_allclose(two.cov, one.cov, rtol=1e-9)


def test_without_transfer_outputs_are_independent(model):
    none = fit(transfer="none")
    assert type(none.posterior_) is LMCPosterior
    assert len(none.stacking_weights_) == 0
    own = model.posterior_.without_transfer()
    for known in (None, model.output_scaler_.standardise(KNOWN)):
        one, two = (posterior.predict(NEW, known) for posterior in (none.posterior_, own))
        assert_allclose(two.mean, one.mean, rtol=1e-9)
        assert_allclose(two.cov, one.cov, rtol=1e-9)


@pytest.mark.slow
def test_safe_is_the_former_name_of_auto(model):
    former = fit(transfer="safe")
    assert_array_equal(answers(former), answers(model))
    assert former.get_params()["transfer"] == "safe"  # constructors store what they are given
    with pytest.raises(ValueError, match="transfer='half'; expected one of 'auto', 'full', 'none'"):
        fit(transfer="half")


@pytest.mark.slow
def test_parts_of_a_whole_are_predicted_by_the_joint_model():
    rng = np.random.default_rng(1)
    noisy = np.column_stack([np.sin(3 * X), np.cos(3 * X), 0 * X]) + 0.1 * rng.normal(size=(32, 3))
    parts = 100 * np.exp(noisy) / np.exp(noisy).sum(axis=1, keepdims=True)
    names = ["sand", "silt", "clay"]
    frame = pd.DataFrame(np.column_stack([parts, Y[:, 2]]), columns=[*names, "ph"])
    model = fit(Y=frame, compositions=[names], output_transform=dict.fromkeys(names, "log"))
    weights = model.stacking_weights_
    for name in names:
        assert_array_equal(weights.loc[name], [[0.0, 1.0, 0.0]])
    assert {output for output, known, _ in weights.index if known} == {"ph"}
    mean = model.predict(NEW, statistic="mean")
    assert_allclose(mean[:, :3].sum(axis=1), 100.0)
    drawn = model.sample_y(NEW[:2], 5, random_state=0)
    assert_allclose(drawn[:, :3].sum(axis=1), 100.0)
    known = np.full((9, 4), NAN)
    known[:, 3] = 0.2
    assert np.isfinite(model.predict(NEW, return_std=True, observed=known)).all()


def test_a_new_set_of_known_outputs_is_answered(model):
    fresh = fit()
    asked = set(fresh.posterior_.stack.known)
    known = np.where([[True, False, False]], 0.4, np.full((9, 3), NAN))
    before = len(fresh.stacking_weights_)
    median, std = fresh.predict(NEW, return_std=True, observed=known)
    assert set(fresh.posterior_.stack.known) - asked == {(1, (0,)), (2, (0,))}
    assert len(fresh.stacking_weights_) == before + 4
    again = fresh.predict(NEW, return_std=True, observed=known)
    assert_array_equal(again, (median, std))


@pytest.mark.parametrize("chunk", [7, 41])
def test_lazy_predictions_are_the_same(chunk, model):
    """At new locations, and at sites where some outputs are known."""
    da = pytest.importorskip("dask.array")
    locations = np.vstack([NEW, X])
    lazy = da.from_array(locations, chunks=(chunk, 1))
    expected = model.predict(locations, return_std=True)
    for part, same in zip(model.predict(lazy, return_std=True), expected, strict=True):
        assert_allclose(part.compute(scheduler="synchronous"), same, rtol=1e-7, atol=1e-9)


def test_a_saved_model_is_the_same(model, tmp_path):
    expected = answers(model)
    samples = model.sample_y(NEW, 3, random_state=1, observed=KNOWN)
    model.save(tmp_path / "model.emgpr")
    again = emgpr.load(tmp_path / "model.emgpr")
    assert_array_equal(answers(again), expected)
    assert_array_equal(again.sample_y(NEW, 3, random_state=1, observed=KNOWN), samples)


def test_cross_validation_is_of_what_is_predicted(model):
    """By output, each reading is predicted from the mixture that the others leave."""
    checked = model.cross_validate("output")
    posterior, scaler = model.posterior_, model.output_scaler_
    predicted = posterior.leave_out(np.arange(96).reshape(3, 32))
    read = ~np.isnan(Y)
    assert_allclose(checked.prediction.to_numpy()[read], scaler.median(predicted)[read], rtol=1e-9)
    assert_allclose(checked.std.to_numpy()[read], scaler.std(predicted)[read], rtol=1e-9)


# Distributions against samples. Standard errors are those of independent draws.


@pytest.mark.parametrize("name", ["model", "logs"])
@pytest.mark.parametrize("known", [None, KNOWN], ids=["nothing known", "others known"])
def test_statistics_are_those_of_samples(name, known, request):
    """27 values each of 3 quantiles, 1 exceedance and 1 mean, within 5 standard errors.

    A false alarm occurs in 13,000 runs.
    """
    model, n = request.getfixturevalue(name), 6000
    known = np.exp(known) if name == "logs" and known is not None else known
    drawn = model.sample_y(NEW, n, random_state=0, observed=known)  # (M, D, n)
    q = np.array([0.05, 0.5, 0.9])
    quantiles = model.predict_quantiles(NEW, list(q), observed=known)
    for p, quantile in zip(q, quantiles, strict=True):
        below = np.mean(drawn < quantile[..., None], axis=-1)
        assert np.all(np.abs(below - p) < 5 * np.sqrt(p * (1 - p) / n))
    threshold = quantiles[1].mean(axis=0)
    above = model.predict_exceedance(NEW, list(threshold), observed=known)
    found = np.mean(drawn > threshold[:, None], axis=-1)
    assert np.all(np.abs(found - above) <= 5 * np.sqrt(above * (1 - above) / n) + 1e-9)
    mean, std = model.predict(NEW, return_std=True, observed=known, statistic="mean")
    assert np.all(np.abs(drawn.mean(axis=-1) - mean) < 5 * std / np.sqrt(n))
    error = (np.square(drawn - mean[..., None])).std(axis=-1) / np.sqrt(n)
    if name == "model":  # the sample variance of log-normal outputs converges slowly
        assert np.all(np.abs(drawn.var(axis=-1) - std**2) < 5 * error)


def test_covariances_between_outputs_are_those_of_samples(model):
    """27 covariances within 5 standard errors: a false alarm in 60,000 runs."""
    n = 6000
    drawn = np.moveaxis(model.sample_y(NEW, n, random_state=2), -1, 0)
    mean, cov = model.predict(NEW, return_cov=True, statistic="mean")
    deviation = drawn - mean
    products = deviation[..., :, None] * deviation[..., None, :]
    error = products.std(axis=0) / np.sqrt(n)
    assert np.all(np.abs(products.mean(axis=0) - cov) < 5 * error)


def test_densities_integrate_the_distribution(logs):
    """The log density is the derivative of the distribution function, in original units."""
    posterior, scaler = logs.posterior_, logs.output_scaler_
    predicted = posterior.predict(NEW, scaler.standardise(np.exp(KNOWN)))
    at, step = np.full((9, 3), 1.3), 1e-5
    slope = (scaler.cdf(predicted, at + step) - scaler.cdf(predicted, at - step)) / (2 * step)
    assert_allclose(np.exp(scaler.log_density(predicted, at)), slope, rtol=1e-5, atol=1e-8)


def series(rng, n=60):
    """Two known series, and one that depends on them and on a residual process of its own."""
    x = np.linspace(0, 6, n)[:, None]
    root = np.linalg.cholesky(np.exp(-np.abs(x - x.T)) + 1e-9 * np.eye(n))
    a, b, residual = (root @ rng.normal(size=n) for _ in range(3))
    return x, np.column_stack([a, b, a - 0.5 * b + 0.3 * residual + 0.1 * rng.normal(size=n)])


@pytest.mark.slow
def test_intervals_hold_in_gaps(rng):
    """95% intervals for 8 gaps of 20 readings each: on average, at least 75% are inside.

    In 150 other gaps, 93% were inside, with a standard deviation of 0.10 between gaps, since
    readings in a gap depend on each other. The mean of 8 gaps, drawn with replacement from these,
    is below 0.75 once in 10,000 cases.
    """
    inside, errors = [], []
    for _ in range(8):
        x, complete = series(rng)
        truth, gappy = complete[25:45, 2], complete.copy()
        gappy[25:45, 2] = NAN
        model = EMGPR(
            "matern12", output_transform=None, random_state=0, max_iter=8, n_restarts=1
        ).fit(x, gappy)
        low, middle, high = model.predict_quantiles(x[25:45], [0.025, 0.5, 0.975])[..., 2]
        inside.append(np.mean((low < truth) & (truth < high)))
        of_mean = np.mean((np.nanmean(gappy[:, 2]) - truth) ** 2)
        errors.append(np.mean((middle - truth) ** 2) / of_mean)
    assert np.mean(inside) >= 0.75
    assert np.mean(errors) < 0.5


@pytest.mark.slow
def test_all_readings_of_an_output_in_one_fold_of_another_do_not_stop_a_fit():
    """Two outputs are missing together, and one of them was measured in a small region only."""
    x, Z = table(60, seed=4)
    Z[x[:, 0] < 1.8, 1] = Z[x[:, 0] < 2.7, 2] = NAN
    Z[:, 0] = np.sin(3 * x[:, 0])
    model = fit(x, Z)
    assert np.isfinite(model.predict(NEW, return_std=True)).all()


@pytest.mark.slow
def test_an_output_with_one_reading_does_not_stop_a_fit():
    Z = Y.copy()
    Z[1:, 2] = NAN
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EMGPR(**QUICK).fit(X, Z)
    assert np.isfinite(model.predict(NEW, return_std=True, observed=KNOWN)).all()


@pytest.mark.parametrize("place", ["near", "far"])
def test_a_frame_explains_which_models_predict(model, place):
    """Near readings, and in the middle of the gap."""
    at = X[[30]] + 1e-6 if place == "near" else np.array([[1.5]])
    known = np.array([[0.4, NAN, -0.3]])
    frame = model.predict_frame(at, observed=known, explain=True)
    columns = [f"1_weight_{candidate}" for candidate in ("own", "joint", "regression")]
    expected = model.stacking_weights_.loc[("1", "0, 2", place)]
    assert_allclose(frame[columns].iloc[0], expected, atol=1e-9)
    assert list(frame) == [
        f"{d}{part}"
        for d in range(3)
        for part in ("", "_std", "_weight_own", "_weight_joint", "_weight_regression")
    ]


def test_the_only_model_of_a_single_output_has_the_weight_one():
    measured = ~np.isnan(Y[:, 0])
    model = EMGPR(**QUICK).fit(X[measured], Y[measured][:, :1])
    frame = model.predict_frame(NEW, explain=True)
    weights = frame[["0_weight_own", "0_weight_joint", "0_weight_regression"]]
    assert_allclose(weights, np.tile([1.0, 0.0, 0.0], (len(NEW), 1)))


def test_one_model_needs_no_explanation():
    with pytest.raises(ValueError, match="each output of this estimator is predicted by one model"):
        EMGPR(**QUICK, transfer="full").fit(X, Y).predict_frame(NEW, explain=True)
