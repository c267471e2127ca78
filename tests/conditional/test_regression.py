"""Predictions of a regression against formulas written out, and leaving readings out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.conditional import FittedRegression, Regression, RegressionKernel, RegressionRows
from tests.conditional.test_kernel import THETA

KERNEL = RegressionKernel("matern32", varying=True)
NO_DIRECTIONS = np.empty((0, len(THETA)))


@pytest.fixture
def regression(rng):
    rows = RegressionRows.build(
        rng.uniform(size=(9, 2)), rng.normal(size=(9, 3)), rng.uniform(size=(9, 3))
    )
    return Regression(KERNEL, FittedRegression(THETA, NO_DIRECTIONS), rows, rng.normal(size=9))


@pytest.fixture
def new(rng):
    return RegressionRows.build(rng.uniform(size=(4, 2)), rng.normal(size=(4, 3)))


def with_directions(regression, directions):
    fitted = FittedRegression(regression.fitted.theta, directions)
    return Regression(regression.kernel, fitted, regression.rows, regression.y)


@pytest.mark.parametrize("include_noise", [False, True])
def test_predictions_are_those_of_a_gaussian_process(regression, new, include_noise):
    K = KERNEL.evaluate(THETA, regression.rows)[0]
    cross = KERNEL.covariance(THETA, regression.rows, new)
    cov = KERNEL.covariance(THETA, new, new) - cross.T @ np.linalg.solve(K, cross)
    cov += 0.1 * include_noise * np.eye(4)
    mean, variance = regression.predict(new, include_noise=include_noise)
    assert_allclose(mean, cross.T @ np.linalg.solve(K, regression.y), rtol=1e-9)
    assert_allclose(variance, np.diagonal(cov), rtol=1e-9)
    joint_mean, joint_cov = regression.joint(new, include_noise=include_noise)
    assert_allclose(joint_mean, mean)
    assert_allclose(joint_cov, cov, rtol=1e-9, atol=1e-12)


def test_the_linear_part_alone_is_ridge_regression(rng):
    kernel = RegressionKernel()
    theta = np.array([np.log(2.0), -40, 0, -40, 0, np.log(0.3)])
    z, y, z_new = rng.normal(size=(12, 3)), rng.normal(size=12), rng.normal(size=(5, 3))
    x = np.zeros((12, 1))
    fitted = FittedRegression(theta, np.empty((0, 6)))
    mean, _ = Regression(kernel, fitted, RegressionRows.build(x, z), y).predict(
        RegressionRows.build(x[:5], z_new)
    )
    ridge = np.linalg.solve(z.T @ z + 0.3 * 3 / 2.0 * np.eye(3), z.T @ y)
    assert_allclose(mean, z_new @ ridge, rtol=1e-8)


def test_far_from_the_readings_the_residual_process_returns_to_its_prior(regression):
    z = np.zeros((1, 3))
    far = RegressionRows.build(np.full((1, 2), 1e6), z)
    _, variance = regression.predict(far, include_noise=False)
    assert variance[0] >= 0.4  # s_f², and what remains of the smooth part


def test_the_uncertainty_of_parameters_is_added(regression, new):
    """A small step along one parameter: the squared derivative of the mean is added."""
    step = np.zeros((1, len(THETA)))
    step[0, 2] = 1e-3
    mean, variance = regression.predict(new)
    same_mean, larger = with_directions(regression, step).predict(new)
    moved = [with_parameters(regression, THETA + s * step[0]).predict(new) for s in (1, -1)]
    slope = 0.5 * (moved[0][0] - moved[1][0])
    bend = 0.5 * (moved[0][1] + moved[1][1]) - variance
    assert_allclose(same_mean, mean)
    assert_allclose(larger - variance, slope**2 + np.maximum(bend, 0), rtol=1e-6, atol=1e-13)
    assert (larger > variance).all()


def with_parameters(regression, theta):
    fitted = FittedRegression(theta, NO_DIRECTIONS)
    return Regression(regression.kernel, fitted, regression.rows, regression.y)


def test_joint_covariances_have_the_predicted_variances(regression, new):
    uncertain = with_directions(regression, 0.5 * np.eye(len(THETA)))
    mean, cov = uncertain.joint(new)
    expected = uncertain.predict(new)
    assert_allclose(mean, expected[0])
    assert_allclose(np.diagonal(cov), expected[1])
    assert np.linalg.eigvalsh(cov).min() > 0


def test_leaving_out_is_predicting_without_the_readings(regression):
    sets = np.array([0, 0, 1, 2, 2, 2, 3, 4, 5])
    mean, variance = regression.leave_out(sets, np.arange(9))
    for label in range(6):
        left, kept = np.flatnonzero(sets == label), np.flatnonzero(sets != label)
        without = Regression(
            KERNEL, regression.fitted, regression.rows.at(kept), regression.y[kept]
        )
        expected = without.predict(regression.rows.at(left))
        assert_allclose(mean[left], expected[0], rtol=1e-8)
        assert_allclose(variance[left], expected[1], rtol=1e-8)


def test_some_readings_can_be_left_out(regression):
    sets = np.array([0, 0, 1, 2, 2, 2, 3, 4, 5])
    everything, some = (regression.leave_out(sets, at) for at in (np.arange(9), np.array([7, 4])))
    for whole, part in zip(everything, some, strict=True):
        assert_allclose(part, whole[[7, 4]])
