"""Weights of the settings, and left-out readings compared with refits without them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.mixture_weights import gaussian_log_density, mixture_moments, stacking_weights
from emgpr.regression import DriftPrior, RegressionRows, Residual, Setting, fit_regression
from emgpr.regression.drift import Drift
from emgpr.regression.fit import (
    MAX_SETTINGS,
    MIN_WEIGHT,
    coefficients,
    left_out_of_residual,
)
from emgpr.regression.settings import all_settings
from tests.regression import written_out
from tests.regression.written_out import simulated_rows

PRIORS = [DriftPrior(3.0, 0.0), DriftPrior(50.0, 0.4)]
RESIDUALS = {
    "noise only": Residual(1.0, 0.0),
    "residual process": Residual(0.3, 0.8),
    "hardly any noise": Residual(0.1, 0.999),
    "varying coefficients": Residual(0.3, 0.8, 0.5),
}
FOLDS = np.array([0, 0, 1, 1, 1, 0, 2, 2, 0, 1, 2, 2, 2, 1])


def without(rows, y, left_out):
    kept = np.setdiff1d(np.arange(len(y)), left_out)
    return rows.at(kept), y[kept]


@pytest.mark.parametrize("residual", RESIDUALS.values(), ids=RESIDUALS)
@pytest.mark.parametrize(
    "k", [3, 20], ids=["few known outputs", "more known outputs than readings"]
)
@pytest.mark.parametrize("imputed", [False, True], ids=["measured", "imputed"])
def test_left_out_readings_are_those_of_refits_to_the_others(residual, k, imputed, rng):
    """Single readings (near) and folds (far), for each prior."""
    rows, y = simulated_rows(rng, k=k, imputed=imputed), rng.normal(size=14)
    drift = Drift.around(rows)
    members = [np.flatnonzero(fold == FOLDS) for fold in range(3)]
    deviations = np.stack([prior.deviations(drift) for prior in PRIORS])
    found = left_out_of_residual(
        "matern32", residual, rows, y, drift.features(rows), deviations, members
    )
    for i, prior in enumerate(PRIORS):
        setting = Setting(residual, prior)
        for pattern, sets in enumerate((np.arange(14)[:, None], members)):
            for b in sets:
                mean, cov = written_out.predict(
                    "matern32", setting, drift.centres, *without(rows, y, b), rows.at(b)
                )
                assert_allclose(found[0][pattern, i, b], mean, rtol=1e-6, atol=1e-8)
                assert_allclose(found[1][pattern, i, b], np.diagonal(cov), rtol=1e-6)


def test_coefficients_are_those_of_ridge_regression(rng):
    """For each prior, without the coefficients that are not used."""
    A, gradient = rng.normal(size=(5, 3)), rng.normal(size=3)
    deviations = np.array([[2.0, 0.0, 0.5], [1.0, 3.0, 0.1]])
    beta, root = coefficients(A.T @ A, gradient, deviations)
    for found, half, deviation in zip(beta, root, deviations, strict=True):
        used = deviation > 0
        cov = np.zeros((3, 3))
        cov[np.ix_(used, used)] = np.linalg.inv(
            (A.T @ A)[np.ix_(used, used)] + np.diag(deviation[used] ** -2)
        )
        assert_allclose(half @ half.T, cov, atol=1e-12)
        assert_allclose(found, cov @ gradient, atol=1e-12)


def linear(rng, n=60, k=2, noise=0.2):
    """Readings along a line that are a linear function of the known outputs."""
    rows = RegressionRows.build(np.sort(rng.uniform(size=(n, 1)), axis=0), rng.normal(size=(n, k)))
    return rows, rows.z @ np.linspace(2, 1, k) + noise * rng.normal(size=n)


def fit(rows, y, folds=None, scored=None, **settings):
    n = len(y)
    folds = np.arange(n) * 3 // n if folds is None else folds
    scored = np.ones(n, bool) if scored is None else scored
    return fit_regression("matern12", rows, y, folds, scored, **settings)


@pytest.mark.parametrize("varying", [False, True])
def test_weights_sum_to_one_and_few_candidates_are_kept(varying, rng):
    fitted = fit(*linear(rng), varying=varying).fitted
    assert_allclose(fitted.weights.sum(axis=1), 1.0)
    assert (fitted.weights >= 0).all()
    assert 1 <= len(fitted.kept) <= 2 * MAX_SETTINGS
    assert set(fitted.kept) <= set(all_settings(varying))
    assert fitted.weights.shape == fitted.variances.shape == (2, len(fitted.kept))
    # Every setting has a large weight, near or far.
    assert (fitted.weights.max(axis=0) >= MIN_WEIGHT).all()


@pytest.mark.parametrize("varying", [False, True])
def test_weights_are_those_of_the_log_densities_and_of_the_priors(varying, rng):
    """In gaps, the four settings without a residual process have 30% of the prior."""
    rows, y = linear(rng, n=24)
    folds, settings = np.arange(24) % 3, all_settings(varying)
    drift, sets = Drift.around(rows), [np.flatnonzero(np.arange(24) % 3 == f) for f in range(3)]
    density = np.empty((2, len(settings), 24))
    for c, setting in enumerate(settings):
        mean, variance = left_out_of_residual(
            "matern12", setting.residual, rows, y, drift.features(rows),
            setting.prior.deviations(drift)[None], sets,
        )  # fmt: skip
        scale = np.mean((y - mean[:, 0]) ** 2 / variance[:, 0], axis=1, keepdims=True)
        density[:, c] = gaussian_log_density(y, mean[:, 0], scale * variance[:, 0])
    simple = [c for c, s in enumerate(settings) if s.residual == Residual(1.0, 0.0)]
    assert len(simple) == 4
    far = np.full(len(settings), 4 * 0.7 / (len(settings) - 4))
    far[simple] = 4 * 0.3 / 4
    near = np.full(len(settings), 1 / len(settings))
    fitted = fit(rows, y, folds, varying=varying).fitted
    kept = [settings.index(setting) for setting in fitted.kept]
    for found, log_density, prior, n in zip(
        fitted.weights, density, (near, far), (100.0, 30.0), strict=True
    ):
        weights = stacking_weights(log_density.T, prior, n)[kept]
        assert_allclose(found, weights / weights.sum(), rtol=1e-6)


@pytest.mark.parametrize("pattern", [0, 1], ids=["near", "far"])
def test_left_out_predictions_are_the_mixture_of_the_kept_candidates(pattern, rng):
    """Their variances are scaled such that squared errors agree with predicted variances."""
    rows, y = linear(rng, n=24)
    folds = np.arange(24) % 3
    result = fit(rows, y, folds)
    drift = Drift.around(rows)
    sets = (
        [[i] for i in range(24)]
        if pattern == 0
        else [np.flatnonzero(folds == f) for f in (0, 1, 2)]
    )
    mean, variance = np.empty((2, len(result.fitted.kept), 24))
    for c, setting in enumerate(result.fitted.kept):
        for b in sets:
            m, cov = written_out.predict(
                "matern12", setting, drift.centres, *without(rows, y, b), rows.at(np.array(b))
            )
            mean[c, b], variance[c, b] = m, np.diagonal(cov)
    scale = np.mean((y - mean) ** 2 / variance, axis=1)
    assert_allclose(result.fitted.variances[pattern], scale, rtol=1e-6)
    expected = mixture_moments(result.fitted.weights[pattern], mean, scale[:, None] * variance)
    for ours, theirs in zip((result.near, result.far)[pattern], expected, strict=True):
        assert_allclose(ours, theirs, rtol=1e-6)


def test_readings_that_are_not_scored_do_not_change_the_weights_near_others(rng):
    """A reading far off, whose neighbours are missing, has no influence on variances or weights."""
    rows, y = linear(rng, n=30)
    scored = np.arange(30) % 3 != 0
    result = fit(rows, y, scored=scored)
    error = (y - result.near[0]) ** 2 / result.near[1]
    drift = Drift.around(rows)
    for c, setting in enumerate(result.fitted.kept):
        left_out = [
            written_out.predict(
                "matern12", setting, drift.centres, *without(rows, y, [i]), rows.at(np.array([i]))
            )
            for i in np.flatnonzero(scored)
        ]
        mean, variance = np.array([(m[0], cov[0, 0]) for m, cov in left_out]).T
        expected = np.mean((y[scored] - mean) ** 2 / variance)
        assert_allclose(result.fitted.variances[0, c], expected, rtol=1e-6)
    assert np.isfinite(error).all()


def test_a_residual_process_is_found_if_there_is_one(rng):
    """Near others, readings with a smooth residual are predicted with it, and others without."""
    rows, y = linear(rng, n=80, noise=0.05)
    smooth = y + np.sin(9 * rows.x[:, 0])
    rough = y + rng.normal(size=80)
    for readings, share in ((smooth, 0.9), (rough, 0.5)):
        fitted = fit(rows, readings).fitted
        shares = np.array([setting.residual.share for setting in fitted.kept])
        mean_share = fitted.weights[0] @ shares
        assert mean_share > share if share == 0.9 else mean_share < share


def test_more_known_outputs_than_readings(rng):
    """The prior of the coefficients makes the mean error smaller than that of the mean."""
    n, k = 25, 60
    rows = RegressionRows.build(
        rng.uniform(size=(n, 2)), rng.normal(size=(n, 1)) + rng.normal(size=(n, k))
    )
    y = rows.z.mean(axis=1) * np.sqrt(k) + 0.1 * rng.normal(size=n)
    result = fit(rows, y)
    for mean, variance in (result.near, result.far):
        assert np.isfinite(mean).all()
        assert (variance > 0).all()
        assert np.mean((y - mean) ** 2) < 0.5 * y.var()


def test_mixtures_predict_left_out_readings_as_well_as_the_best_candidate(rng):
    """Up to what the prior of the weights costs: less than 0.1 in the mean log density."""
    rows, y = linear(rng, n=50)
    result = fit(rows, y)
    drift = Drift.around(rows)
    best = -np.inf
    for setting in all_settings(varying=False):
        mean, variance = left_out_of_residual(
            "matern12", setting.residual, rows, y, drift.features(rows),
            setting.prior.deviations(drift)[None], [np.arange(50)[:1]],
        )  # fmt: skip
        scale = np.mean((y - mean[0, 0]) ** 2 / variance[0, 0])
        density = gaussian_log_density(y, mean[0, 0], scale * variance[0, 0])
        best = max(best, density.mean())
    weights = result.fitted.weights[0]
    assert weights.max() > 1 / len(all_settings(varying=False))
    assert gaussian_log_density(y, *result.near).mean() > best - 0.1


def test_the_order_of_readings_does_not_matter(rng):
    rows, y = linear(rng, n=30)
    folds, order = np.arange(30) // 10, rng.permutation(30)
    one, two = fit(rows, y, folds), fit(rows.at(order), y[order], folds[order])
    assert one.fitted.kept == two.fitted.kept
    assert_allclose(two.fitted.weights, one.fitted.weights, rtol=1e-6)
    for ours, theirs in zip((*one.near, *one.far), (*two.near, *two.far), strict=True):
        assert_allclose(theirs, ours[order], rtol=1e-6)


def test_readings_that_a_regression_explains_exactly_do_not_stop_it(rng):
    rows, _ = linear(rng, n=20)
    result = fit(rows, rows.z[:, 0])
    for mean, variance in (result.near, result.far):
        assert_allclose(mean, rows.z[:, 0], atol=0.05)
        assert (variance > 0).all()
    assert_array_equal(np.isfinite(result.fitted.variances), True)
