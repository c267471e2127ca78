"""The posterior: which outputs are known decides which model predicts."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from emgpr import ConditionalGP, IndependentGP
from emgpr.conditional import Regression, RegressionRows, posterior
from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION
from emgpr.prediction import Posterior

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
RNG = np.random.default_rng(5)
X = RNG.uniform(size=(40, 2))
F = np.sin(5 * X[:, 0]) + X[:, 1]
Y = np.column_stack([F, 1 - 2 * F, F**2]) + 0.1 * RNG.normal(size=(40, 3))
Y[:12, 1] = np.nan
Y[12:15, 0] = np.nan
NEW = RNG.uniform(size=(6, 2))
KNOWN = np.full((6, 3), np.nan)
KNOWN[:3, 0], KNOWN[2:4, 2] = 0.5, -0.4
SETTINGS = {
    "kernel": RBF(0.4, "fixed"),
    "output_transform": None,
    "output_bounds": None,
    "max_iter": 4,
    "random_state": 0,
}


def fitted(Estimator=ConditionalGP, **changes):
    return Estimator(**SETTINGS | changes).fit(X, Y).posterior_


@pytest.fixture(scope="module")
def given():
    return fitted()


@pytest.fixture(scope="module")
def own():
    return fitted(IndependentGP)


def test_it_satisfies_the_protocol(given):
    assert isinstance(given, Posterior)


@pytest.mark.parametrize("include_noise", [False, True])
def test_where_nothing_is_known_outputs_are_independent(given, own, include_noise):
    nothing = np.full((6, 3), np.nan)
    expected = own.predict(NEW, include_noise=include_noise)
    for observed in (None, nothing):
        predicted = given.predict(NEW, observed, include_noise=include_noise)
        assert_allclose(predicted.mean, expected.mean, rtol=1e-12)
        assert_allclose(predicted.cov, expected.cov, rtol=1e-12, atol=1e-15)


def test_where_others_are_known_a_regression_predicts(given):
    predicted = given.predict(NEW, KNOWN)
    extended, _ = given.condition_on(NEW, KNOWN, include_noise=True)
    for row, d, known in ((0, 1, (0,)), (2, 1, (0, 2)), (3, 0, (2,)), (3, 1, (2,))):
        new = RegressionRows.build(NEW[[row]], KNOWN[[row]][:, known])
        mean, variance = mixture(extended, (d, known), new)
        assert_allclose(predicted.mean[0, row, d], mean)
        assert_allclose(predicted.cov[0, row, d, d], variance)
        others = np.arange(3) != d
        assert not predicted.cov[0, row, d, others].any()
    assert len(given.regressions.fitted) >= 5


def mixture(given, question, new):
    """Mean and variance of the mixture of the four regressions at one row."""
    density = np.exp([fitted.left_out for fitted in given.regressions.fitted[question]])
    weights = density**2 / (density**2).sum()
    means, variances = np.array([m.predict(new) for m in given.members(question)])[..., 0].T
    return weights @ means, weights @ (variances + means**2) - (weights @ means) ** 2


def test_a_known_output_is_predicted_by_its_own_process(given, own):
    ours, theirs = (p.predict(NEW, KNOWN) for p in (given, own))
    for row, d in zip(*np.nonzero(~np.isnan(KNOWN)), strict=True):
        assert_allclose(ours.mean[0, row, d], theirs.mean[0, row, d])
        assert_allclose(ours.cov[0, row, d, d], theirs.cov[0, row, d, d])


def test_training_readings_at_a_location_are_known(given):
    """Rows 0 to 11 lack output 1; their other readings need not be repeated in `observed`."""
    implicit, explicit = given.predict(X[:12]), given.predict(X[:12], given.reference_values[:12])
    assert_allclose(implicit.mean, explicit.mean)
    assert_allclose(implicit.cov, explicit.cov, atol=1e-15)
    signal = given.predict(X[:12], include_noise=False)
    assert_allclose(signal.mean[..., 1], implicit.mean[..., 1])
    noise = given.regressions.weights((1, (0, 2))) @ [
        np.exp(f.theta[5]) for f in given.regressions.fitted[1, (0, 2)]
    ]
    # The uncertainty of the noise is added to predictions of readings, too.
    assert np.all(implicit.cov[0, :, 1, 1] - signal.cov[0, :, 1, 1] > 0.99 * noise)


def test_means_do_not_need_variances(given):
    means = given.predict(NEW, KNOWN, with_cov=False).mean
    assert_allclose(means, given.predict(NEW, KNOWN).mean)


def test_missing_known_outputs_are_imputed_by_their_own_process(given, own):
    rows, y = given.readings((1, (0, 2)))
    assert len(rows) == len(y) == 28
    imputed = np.flatnonzero(np.isnan(Y[12:, 0]))
    expected = own.predict(X[12:15])
    assert_allclose(rows.z[imputed, 0] * np.sqrt(2), expected.mean[0, :, 0])
    assert_allclose(rows.imputed[imputed], expected.cov[0, :, 0, 0] / 2)
    assert not np.delete(rows.imputed, imputed).any()


def test_new_readings_of_an_output_are_used_where_it_was_not_read(given):
    """Output 1 is read at one place; at another place nearby, its residual is known better."""
    x = np.array([[0.5, 0.5], [0.5, 0.5001]])
    others = np.array([[0.3, np.nan, 0.1], [0.3, np.nan, 0.1]])
    read = others.copy()
    before = given.predict(x, others)
    read[0, 1] = before.mean[0, 0, 1] + 0.3
    after = given.predict(x, read)
    assert after.mean[0, 1, 1] > before.mean[0, 1, 1]
    assert after.cov[0, 1, 1, 1] < before.cov[0, 1, 1, 1]


def test_parameters_are_fitted_to_training_readings_only(given):
    read = np.array([[0.3, np.nan, 0.1], [2.0, 1.5, np.nan]])
    fresh = fitted()
    fresh.predict(NEW[:2], read)
    given.predict(X[:12])
    ours, theirs = (p.regressions.fitted[1, (0, 2)] for p in (fresh, given))
    for one, other in zip(ours, theirs, strict=True):
        assert_allclose(one.theta, other.theta)


def test_samples_have_the_predicted_distribution(given):
    """Four standard errors in 2 × 18 comparisons: a false alarm in about 400 seeds; one is used."""
    drawn = given.sample(NEW, 4000, np.random.default_rng(0), KNOWN)
    predicted = given.predict(NEW, KNOWN)
    variance = np.einsum("mdd->md", predicted.cov[0])
    error = (drawn.mean(axis=0) - predicted.mean[0]) / np.sqrt(variance / 4000)
    assert np.abs(error).max() < 4
    assert_allclose(drawn.var(axis=0), variance, rtol=4 * np.sqrt(2 / 4000))


def test_samples_are_joint_where_the_same_outputs_are_known(given):
    x = np.array([[0.4, 0.4], [0.4, 0.4002]])
    known = np.array([[0.3, np.nan, np.nan]] * 2)
    drawn = given.sample(x, 500, np.random.default_rng(0), known, include_noise=False)
    assert np.corrcoef(drawn[:, 0, 1], drawn[:, 1, 1])[0, 1] > 0.8


@pytest.mark.parametrize("by", ["site", "output"])
def test_left_out_readings_are_predicted_without_them(given, own, by):
    N = len(X)
    sets = np.tile(np.arange(N), (3, 1)) if by == "site" else np.arange(3 * N).reshape(3, N)
    predicted = given.leave_out(sets)
    if by == "site":
        expected = own.leave_out(sets)
        assert_allclose(predicted.mean, expected.mean)
        assert_allclose(predicted.cov, expected.cov)
        return
    for d, i in ((1, 20), (1, 13), (2, 3)):
        check_left_out(given, predicted, sets, d, i)


def test_a_gap_in_several_outputs_can_be_left_out(given):
    """Outputs 0 and 1 at ten sites: output 2 is known there, and readings in the gap are not."""
    sets = np.arange(3 * len(X)).reshape(3, -1)
    sets[:2, 20:30] = 1000
    sites = np.arange(18, 32)
    predicted = given.leave_out(sets, sites)
    assert predicted.mean.shape == (1, 14, 3)
    for d, i in ((0, 22), (1, 25), (2, 25), (0, 19)):
        check_left_out(given, predicted, sets, d, i, sites)


def check_left_out(given, predicted, sets, d, i, sites=None):
    """Compare with a posterior from which the readings of the set have been removed."""
    table = given.observations
    kept = np.where((sets == sets[d, i]).T, np.nan, table.table)
    without = replace(given, observations=Observations.from_table(table.x, kept))
    known = tuple(np.flatnonzero(~np.isnan(kept[i]) & (np.arange(3) != d)).tolist())
    new = without.rows_of((d, known), X[[i]], kept[[i]])
    mean, variance = mixture(without, (d, known), new)
    at = i if sites is None else int(np.flatnonzero(sites == i)[0])
    assert_allclose(predicted.mean[0, at, d], mean, rtol=1e-6)
    assert_allclose(predicted.cov[0, at, d, d], variance, rtol=1e-6)


def test_without_parameter_uncertainty_intervals_are_shorter(given):
    plug_in = fitted(parameter_uncertainty=False)
    ours, theirs = (p.predict(NEW, KNOWN).cov[0, :3, 1, 1] for p in (given, plug_in))
    assert np.all(theirs < ours)


def test_a_constant_output_needs_no_regression():
    table = np.column_stack([Y[:, 2], np.full(40, 3.0)])
    with pytest.warns(UserWarning, match="one value only"):
        model = ConditionalGP(**SETTINGS).fit(X, table)
    known = np.array([[0.5, np.nan]])
    assert_allclose(model.predict(NEW[:1], observed=known)[0, 1], 3.0)
    assert model.posterior_.regressions.fitted == {}


def test_too_many_readings_are_refused(given, monkeypatch):
    monkeypatch.setattr(posterior, "MAX_READINGS", 20)
    with pytest.raises(ValueError, match=r"Output '1' has 28 readings; .* at most 20\. Fit"):
        given.readings((1, (0,)))


def test_columns_in_different_units_keep_the_ratio_of_their_length_scales():
    wide = X * [1.0, 1000.0]
    one = ConditionalGP(**SETTINGS).fit(X, Y)
    two = ConditionalGP(**SETTINGS | {"kernel": RBF([0.4, 400.0], "fixed")}).fit(wide, Y)
    predicted = [
        model.predict(x, observed=KNOWN)[:4, 1] for model, x in ((one, NEW), (two, NEW * [1, 1000]))
    ]
    assert_allclose(predicted[1], predicted[0], atol=1e-4)


def test_questions_are_answered_from_any_process(given):
    """A worker needs the same posterior."""
    assert given.for_worker() is given
    given.fit_regressions([(0, (1, 2))], DEFAULT_EXECUTION)
    assert [type(member) for member in given.members((0, (1, 2)))] == 4 * [Regression]


def test_a_search_that_does_not_converge_is_reported_once_for_each_regression():
    table = pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"])
    model = ConditionalGP(**SETTINGS | {"max_iter": 1}).fit(X, table)
    known = pd.DataFrame([[np.nan, 0.5, 0.2]], columns=table.columns)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(NEW[:1], observed=known)
        model.predict(NEW[:1], observed=known, return_std=True)
    (warning,) = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert warning.filename == __file__
    assert str(warning.message) == (
        "Regression of output 'Cd' on known outputs 'Ni', 'Zn': the search for its parameters did "
        "not converge within max_iter=1; increase max_iter and fit the model again."
    )


def test_a_search_that_converges_is_not_reported():
    model = ConditionalGP(**SETTINGS | {"max_iter": 200}).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(NEW, observed=KNOWN)
    members = [f for pair in model.posterior_.regressions.fitted.values() for f in pair]
    assert members
    assert all(fitted.converged for fitted in members)
