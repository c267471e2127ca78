"""Predictions of a regression against a dense Gaussian process, and samples against predictions."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from emgpr.regression import (
    DriftPrior,
    FittedRegression,
    Regression,
    RegressionRows,
    Residual,
    Setting,
    predict,
)
from emgpr.regression.drift import Drift
from tests.regression import written_out
from tests.regression.written_out import simulated_rows
from tests.simulated import agrees

KEPT = (
    Setting(Residual(1.0, 0.0), DriftPrior(3.0, 0.0)),
    Setting(Residual(0.3, 0.8), DriftPrior(3.0, 0.0)),
    Setting(Residual(0.3, 0.8), DriftPrior(40.0, 0.5)),
    Setting(Residual(0.1, 0.95, 0.5), DriftPrior(3.0, 0.3)),
)
FITTED = FittedRegression(
    KEPT,
    np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.3, 0.5]]),
    np.array([[0.3, 0.2, 0.5, 0.1], [0.6, 0.9, 0.4, 1.5]]),
)
FAR = np.array([0.0, 1.0, 0.25, 0.6])


@pytest.fixture(params=["measured", "imputed"])
def regression(rng, request):
    rows = simulated_rows(rng, n=24, imputed=request.param == "imputed")
    return Regression("matern32", FITTED, rows, rng.normal(size=24))


@pytest.fixture
def new(rng):
    return simulated_rows(rng, n=4)


def of_candidates(regression, new, include_noise=True):
    """Means and joint covariances of all settings, for a total variance of one."""
    centres = Drift.around(regression.rows).centres
    given = regression.rows, regression.y, new, include_noise
    found = [
        written_out.predict(regression.kernel, setting, centres, *given)
        for setting in regression.fitted.kept
    ]
    return tuple(np.stack(part) for part in zip(*found, strict=True))


def mixed(regression, means, variances, far):
    """Mean and variance of each row, whose weights and variances lie between near and far."""
    fitted = regression.fitted
    expected = []
    for i, share in enumerate(far):
        weights = (1 - share) * fitted.weights[0] + share * fitted.weights[1]
        scale = (1 - share) * fitted.variances[0] + share * fitted.variances[1]
        second = weights @ (scale * variances[:, i] + means[:, i] ** 2)
        expected.append((weights @ means[:, i], second - (weights @ means[:, i]) ** 2))
    return np.array(expected).T


def test_predictions_in_blocks_of_rows_are_the_same(regression, new, monkeypatch):
    together, sizes = regression.predict(new, FAR), []
    krige = Regression._krige

    def recorded(self, residual, new, *given):
        sizes.append(len(new))
        return krige(self, residual, new, *given)

    monkeypatch.setattr(Regression, "_krige", recorded)
    monkeypatch.setattr(predict, "ARRAYS_PER_LOCATION", 1e9)  # a block is a single row
    assert_allclose(regression.predict(new, FAR), together, rtol=1e-10)
    assert set(sizes) == {1}


def test_many_rows_are_predicted_without_their_joint_covariance(regression, rng, monkeypatch):
    """Only samples need it; its size is the square of the number of rows."""
    largest, covariance = [0], Residual.covariance

    def recorded(self, kernel, a, b):
        found = covariance(self, kernel, a, b)
        largest[0] = max(largest[0], found.size)
        return found

    monkeypatch.setattr(Residual, "covariance", recorded)
    many = simulated_rows(rng, n=5000)
    regression.predict(many, np.zeros(5000))
    assert largest[0] <= 5000 * len(regression.y)


@pytest.mark.parametrize("include_noise", [False, True])
def test_predictions_are_a_mixture_of_dense_gaussian_processes(regression, new, include_noise):
    means, covs = of_candidates(regression, new, include_noise)
    expected = mixed(regression, means, np.einsum("cmm->cm", covs), FAR)
    found = regression.predict(new, FAR, include_noise=include_noise)
    assert_allclose(found, expected, rtol=1e-7)


def test_one_candidate_without_residual_process_is_ridge_regression(rng):
    linear = 3.0
    kept = (Setting(Residual(1.0, 0.0), DriftPrior(linear, 0.0)),)
    fitted = FittedRegression(kept, np.ones((2, 1)), np.ones((2, 1)))
    z, y, z_new = rng.normal(size=(12, 3)), rng.normal(size=12), rng.normal(size=(5, 3))
    rows, new = (RegressionRows.build(np.zeros((len(a), 1)), a) for a in (z, z_new))
    mean, _ = Regression("rbf", fitted, rows, y).predict(new, np.zeros(5))
    # Coefficients of z / √3 with the prior variance 3, and a constant with its own.
    A, at = (np.column_stack([np.ones(len(a)), a / np.sqrt(3)]) for a in (z, z_new))
    penalty = np.diag([1 / written_out.CONSTANT_VARIANCE, *3 * [1 / linear]])
    ridge = np.linalg.solve(A.T @ A + (1 + written_out.MIN_NOISE) * penalty, A.T @ y)
    assert_allclose(mean, at @ ridge, rtol=1e-8)


def test_neighbours_that_are_all_readings_give_the_exact_prediction(regression, new, rng):
    everything = np.stack([rng.permutation(24) for _ in range(4)])
    for include_noise in (False, True):
        exact = regression.predict(new, FAR, include_noise=include_noise)
        found = regression._from_neighbours(new, everything, FAR, include_noise=include_noise)
        assert_allclose(found, exact, rtol=1e-8)


def test_a_missing_neighbour_is_the_same_as_none(regression, new):
    some = np.tile(np.arange(10), (4, 1))
    padded = np.column_stack([some[:, :5], np.full((4, 3), -1), some[:, 5:]])
    one, two = (
        regression._from_neighbours(new, near, FAR, include_noise=True) for near in (some, padded)
    )
    assert_allclose(two, one, rtol=1e-10)


def test_with_many_readings_the_nearest_decide(monkeypatch, rng):
    """A sine is predicted from 20 neighbours almost as well as from all 200 readings."""
    x = np.linspace(0, 1, 200)[:, None]
    rows = RegressionRows.build(x, rng.normal(size=(200, 2)))
    y = rows.z[:, 0] + np.sin(12 * x[:, 0]) + 0.05 * rng.normal(size=200)
    fitted = replace(
        FITTED, kept=KEPT[1:3], weights=np.full((2, 2), 0.5), variances=np.ones((2, 2))
    )
    exact = Regression("matern32", fitted, rows, y)
    local = replace(exact)
    new = RegressionRows.build(rng.uniform(size=(9, 1)), rng.normal(size=(9, 2)))
    mean, variance = exact.predict(new, np.zeros(9))
    monkeypatch.setattr(predict, "MAX_EXACT", 100)
    monkeypatch.setattr(predict, "N_NEIGHBOURS", 20)
    found, its_variance = local.predict(new, np.zeros(9))
    assert_allclose(found, mean, atol=0.3 * np.sqrt(variance.max()))
    assert_allclose(its_variance, variance, rtol=0.1)
    assert np.abs(found - mean).max() > 1e-6  # it is not the exact prediction


@pytest.mark.parametrize("imputed", [False, True])
def test_left_out_readings_are_predicted_from_other_sets(imputed, rng):
    rows = simulated_rows(rng, n=24, imputed=imputed)
    regression = Regression("matern32", FITTED, rows, rng.normal(size=24))
    sets, targets = np.arange(24) // 5, np.array([3, 11, 12, 23])
    centres = Drift.around(rows).centres
    means, variances = np.empty((2, len(KEPT), 4))
    for i, target in enumerate(targets):
        kept = np.flatnonzero(sets != sets[target])
        for c, setting in enumerate(KEPT):
            mean, cov = written_out.predict(
                "matern32", setting, centres, rows.at(kept), regression.y[kept],
                rows.at(np.array([target])),
            )  # fmt: skip
            means[c, i], variances[c, i] = mean[0], cov[0, 0]
    expected = mixed(regression, means, variances, FAR)
    assert_allclose(regression.leave_out(sets, targets, FAR), expected, rtol=1e-6)


def test_with_many_readings_left_out_ones_are_predicted_from_neighbours_in_other_sets(
    monkeypatch, rng
):
    """As by a residual process of the same coefficients, from the nearest of the other sets."""
    n = 40
    rows = simulated_rows(rng, n=n, P=1)
    regression = Regression("matern32", FITTED, rows, rng.normal(size=n))
    monkeypatch.setattr(predict, "MAX_EXACT", 30)
    monkeypatch.setattr(predict, "N_NEIGHBOURS", 5)
    sets, targets = np.arange(n) % 7, np.arange(0, n, 9)
    far = np.linspace(0, 1, len(targets))
    nearest = []
    for target in targets:
        others = np.flatnonzero(sets != sets[target])
        distance = np.abs(rows.x[others, 0] - rows.x[target, 0])
        nearest.append(others[np.argsort(distance)[:5]])
    expected = regression._from_neighbours(
        rows.at(targets), np.array(nearest), far, include_noise=True
    )
    assert_allclose(regression.leave_out(sets, targets, far), expected, rtol=1e-8)


@pytest.mark.parametrize("include_noise", [False, True])
@pytest.mark.parametrize("far", [0.0, 1.0])
def test_samples_are_joint_draws_from_the_mixture(regression, new, include_noise, far):
    """4 means and 10 covariances within 5 standard errors: a false alarm in 120,000 runs."""
    means, covs = of_candidates(regression, new, include_noise)
    weights, variances = (
        part[int(far)] for part in (regression.fitted.weights, regression.fitted.variances)
    )
    mean, cov = written_out.mixture(weights, means, variances[:, None, None] * covs)
    drawn = regression.sample(
        new, np.full(4, far), 8000, np.random.default_rng(3), include_noise=include_noise
    )
    assert drawn.shape == (8000, 4)
    assert agrees(drawn, mean, cov)


def test_samples_between_near_and_far_have_the_predicted_moments(regression, new):
    """4 means and 4 variances within 5 standard errors: a false alarm in 200,000 runs."""
    mean, variance = regression.predict(new, FAR)
    drawn = regression.sample(new, FAR, 8000, np.random.default_rng(4))
    for i in range(4):
        assert agrees(drawn[:, [i]], mean[[i]], variance[[i], None])


def test_samples_of_very_different_settings_have_the_predicted_quantiles(rng):
    """24 shares within 5 standard errors: a false alarm in 70,000 runs.

    The predictions of the two settings differ by many standard deviations.
    """
    x = np.linspace(0, 1, 30)[:, None]
    rows = RegressionRows.build(x, np.ones((30, 1)))
    kept = (
        Setting(Residual(0.5, 0.999), DriftPrior(3.0, 0.0)),
        Setting(Residual(0.001, 0.999), DriftPrior(3.0, 0.0)),
    )
    fitted = FittedRegression(kept, np.full((2, 2), 0.5), np.full((2, 2), 1e-4))
    regression = Regression("rbf", fitted, rows, np.sin(6 * x[:, 0]))
    new = RegressionRows.build(x[4:12] + 0.017, np.ones((8, 1)))
    mean, variance = regression.predict(new, np.zeros(8))
    drawn = regression.sample(new, np.zeros(8), 4000, rng)
    for p in (0.1, 0.5, 0.8):
        below = (drawn < norm(mean, np.sqrt(variance)).ppf(p)).mean(axis=0)
        assert (np.abs(below - p) < 5 * np.sqrt(p * (1 - p) / 4000)).all()


def test_samples_with_many_readings_have_the_predicted_moments(monkeypatch, rng):
    """Given the neighbours of all rows; 20 means and variances within 5 standard errors.

    That is a false alarm in 80,000 runs.
    """
    rows, new = simulated_rows(rng, n=60, P=1), simulated_rows(rng, n=10, P=1)
    new = replace(new, x=0.3 * new.x)
    regression = Regression("matern32", FITTED, rows, rng.normal(size=60))
    monkeypatch.setattr(predict, "MAX_EXACT", 40)
    monkeypatch.setattr(predict, "N_NEIGHBOURS", 25)
    far = np.linspace(0, 1, 10)
    near = np.unique(regression._nearest(new.x, 25))
    assert 25 < len(near) < 60
    everything = np.tile(near, (10, 1))
    mean, variance = regression._from_neighbours(new, everything, far, include_noise=True)
    drawn = regression.sample(new, far, 8000, np.random.default_rng(5))
    for i in range(10):
        assert agrees(drawn[:, [i]], mean[[i]], variance[[i], None])


def test_far_from_the_readings_the_residual_process_returns_to_its_prior(regression):
    """Without known outputs, only the constant and the smooth part of the drift remain."""
    new = RegressionRows.build(np.full((1, 2), 1e6), np.zeros((1, 3)))
    means, covs = of_candidates(regression, new, include_noise=False)
    for c, (residual, _) in enumerate(KEPT):
        assert covs[c, 0, 0] >= residual.share
    found = regression.predict(new, np.ones(1), include_noise=False)
    assert_allclose(found, mixed(regression, means, covs[:, :, 0], [1.0]), rtol=1e-7)
