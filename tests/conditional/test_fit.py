"""Fitting a regression: gradients, known parameters, and many known outputs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from emgpr.conditional import (
    CRITERIA,
    FittedRegression,
    Regression,
    RegressionKernel,
    RegressionRows,
    fit_regression,
)
from emgpr.conditional.fit import negative_log_posterior, search_space
from emgpr.conditional.scores import split_into_blocks
from tests.finite_differences import assert_is_the_gradient


def simulated(rng, n=80, k=2, noise=0.1):
    x, z = np.sort(rng.uniform(size=(n, 1)), axis=0), rng.normal(size=(n, k))
    y = z @ np.linspace(1, 0.5, k) / np.sqrt(k) + noise * rng.normal(size=n)
    return RegressionRows.build(x, z), y


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("varying", [False, True])
def test_the_gradient_of_the_log_posterior(varying, criterion, rng):
    kernel = RegressionKernel(varying=varying)
    rows, y = simulated(rng, n=20)
    space = search_space(kernel, rows)
    objective = negative_log_posterior(kernel, rows, y, space, criterion)
    theta = space.starts[1] + 0.1 * rng.normal(size=len(kernel.names))

    def value(theta):
        return objective(theta[None], np.zeros(1, int))[0][0]

    assert_is_the_gradient(objective(theta[None], np.zeros(1, int))[1][0], value, theta)


def test_the_value_is_minus_the_log_density_of_the_readings_and_parameters(rng):
    kernel = RegressionKernel()
    rows, y = simulated(rng, n=9)
    space = search_space(kernel, rows)
    objective = negative_log_posterior(kernel, rows, y, space)
    thetas = space.starts[:2] + 0.3
    K = [kernel.evaluate(theta, rows)[0] for theta in thetas]
    likelihood = [
        -0.5 * (y @ np.linalg.solve(k, y) + np.linalg.slogdet(2 * np.pi * k)[1]) for k in K
    ]
    noise, v = np.exp(thetas[:, 5]), np.mean(y**2)
    prior = 3 * (np.log(noise / v + 1e-3) - noise / v)
    for theta_median, deviation, i in ((0.5, 2, 0), (0.05, 2, 1), (1.5, 0.7, 2), (0.3, 2, 3)):
        prior = prior - 0.5 * ((thetas[:, i] - np.log(theta_median)) / deviation) ** 2
    values, _ = objective(thetas, np.zeros(2, int))
    assert_allclose(values, -(likelihood + prior), rtol=1e-10)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_noise_and_the_linear_part_are_found(criterion, rng):
    rows, y = simulated(rng, n=100, noise=0.2)
    fitted = fit_regression(RegressionKernel(), rows, y, 120, criterion)
    value = dict(zip(RegressionKernel().names, np.exp(fitted.theta), strict=True))
    # f and noise can share the variance of 0.04, since f can be as rough as noise.
    assert value["noise"] < 0.08
    assert value["noise"] + value["residual"] > 0.02
    assert value["linear"] > 0.2
    assert fitted.converged


@pytest.mark.parametrize("criterion", CRITERIA)
def test_more_known_outputs_than_readings(criterion, rng):
    """Forty known outputs with one common factor, fifteen readings: shrinkage, no overfitting."""
    factor = rng.normal(size=115)
    z = factor[:, None] * rng.uniform(0.5, 1.0, size=40) + 0.5 * rng.normal(size=(115, 40))
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    rows = RegressionRows.build(rng.uniform(size=(115, 2)), z)
    y = factor + 0.1 * rng.normal(size=115)
    train, test = rows.at(np.arange(15)), rows.at(np.arange(15, 115))
    kernel = RegressionKernel()
    fitted = fit_regression(kernel, train, y[:15], 120, criterion)
    mean, variance = Regression(kernel, fitted, train, y[:15]).predict(test)
    assert np.mean((mean - y[15:]) ** 2) < 0.25 * np.var(y[15:])
    assert np.mean(np.abs(mean - y[15:]) < 2 * np.sqrt(variance)) > 0.85


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_linear_regression_has_no_smooth_part(criterion, rng):
    rows, y = simulated(rng, n=40)
    fitted = fit_regression(RegressionKernel(), rows, y, 30, criterion, True)
    assert np.exp(fitted.theta[1]) < 1e-5
    assert not fitted.directions[:, 1:3].any()  # fixed parameters are certain
    assert fit_regression(RegressionKernel(), rows, y, 30, criterion).directions[:, 2].any()


def test_the_density_of_left_out_blocks_is_the_mean_over_readings(rng):
    kernel, (rows, y) = RegressionKernel(), simulated(rng, n=40)
    fitted = fit_regression(kernel, rows, y, 20)
    sets = np.empty(40, int)
    for label, block in enumerate(split_into_blocks(rows.x)):
        sets[block] = label
    plug_in = FittedRegression(fitted.theta, fitted.directions[:0])
    mean, variance = Regression(kernel, plug_in, rows, y).leave_out(sets, np.arange(40))
    assert_allclose(fitted.left_out, norm(mean, np.sqrt(variance)).logpdf(y).mean())


def test_large_tables_are_fitted_to_a_subsample(rng, monkeypatch):
    rows, y = simulated(rng, n=300)
    whole = fit_regression(RegressionKernel(), rows, y, 60)
    monkeypatch.setattr("emgpr.conditional.fit.FIT_READINGS", 150)
    part = fit_regression(RegressionKernel(), rows, y, 60)
    names = RegressionKernel().names
    signal = [np.exp(f.theta[names.index("linear")]) for f in (whole, part)]
    assert 0.5 < signal[1] / signal[0] < 2
    assert not np.array_equal(whole.theta, part.theta)


def test_the_order_of_readings_and_of_known_outputs_does_not_matter(rng):
    rows, y = simulated(rng, n=40, k=3)
    kernel = RegressionKernel()
    fitted = fit_regression(kernel, rows, y, 60)
    order = rng.permutation(40)
    shuffled = RegressionRows(rows.x[order], rows.z[order][:, [2, 0, 1]], rows.imputed[order])
    again = fit_regression(kernel, shuffled, y[order], 60)
    assert_allclose(again.theta, fitted.theta, atol=1e-3)
