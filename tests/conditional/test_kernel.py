"""The covariance of a regression: its parts, its gradient, and the noise of imputed values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.conditional import RegressionKernel, RegressionRows
from tests.finite_differences import assert_is_the_gradient

THETA = np.log([0.5, 0.3, 1.3, 0.4, 0.2, 0.1, 0.6, 0.5])
KERNELS = [RegressionKernel("matern12"), RegressionKernel("matern52", varying=True)]


def rows(rng, n=7, k=3, imputed=True):
    variances = rng.uniform(0.1, 1.0, size=(n, k)) * (np.arange(n) % 2)[:, None] * imputed
    return RegressionRows.build(rng.uniform(size=(n, 2)), rng.normal(size=(n, k)), variances)


@pytest.mark.parametrize("kernel", KERNELS, ids=["constant", "varying"])
def test_the_covariance_is_the_sum_of_its_parts(kernel, rng):
    at, theta = rows(rng, imputed=False), THETA[: len(kernel.names)]
    known = at.z * np.sqrt(3)
    linear = known @ known.T / 3  # each coefficient has the variance s_b² / 3
    residual = Matern(0.2, nu={"matern12": 0.5, "matern52": 2.5}[kernel.residual])
    expected = 0.5 * linear + 0.3 * RBF(1.3)(known / np.sqrt(3)) + 0.4 * residual(at.x)
    if kernel.varying:
        expected += 0.6 * linear * Matern(0.5, nu=2.5)(at.x)
    assert_allclose(kernel.covariance(theta, at, at), expected, rtol=1e-12)
    assert_allclose(kernel.variance(theta, at), np.diagonal(expected), rtol=1e-12)
    assert_allclose(kernel.evaluate(theta, at)[0], expected + 0.1 * np.eye(7), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=["constant", "varying"])
def test_the_pullback_is_the_gradient(kernel, rng):
    at, theta = rows(rng), THETA[: len(kernel.names)]
    G = rng.normal(size=(7, 7))
    G += G.T

    def contracted(theta):
        return np.vdot(G, kernel.evaluate(theta, at)[0])

    gradient = kernel.evaluate(theta, at)[1](G)
    assert_is_the_gradient(gradient, contracted, theta)


def test_an_imputed_value_adds_the_expected_change_of_the_linear_part(rng):
    """Over 200,000 draws; four standard errors, one false alarm in 16,000."""
    kernel, theta = RegressionKernel(), THETA[:6].copy()
    theta[1] = -30.0  # no smooth part
    variances = np.array([[0.4, 0.0, 0.9]])
    at = RegressionRows.build(np.zeros((1, 1)), np.zeros((1, 3)), variances)
    added = float(kernel.noise(theta, at)[0]) - 0.1
    coefficients = rng.normal(size=(200_000, 3)) * np.sqrt(0.5 / 3)
    errors = (coefficients * rng.normal(size=(200_000, 3)) * np.sqrt(variances)).sum(axis=1) ** 2
    assert abs(added - errors.mean()) < 4 * errors.std() / np.sqrt(200_000)


def test_the_smooth_part_of_an_imputed_value_is_bounded_by_its_variance():
    kernel, theta = RegressionKernel(), THETA[:6].copy()
    theta[0] = -30.0  # no linear part
    at = RegressionRows.build(np.zeros((1, 1)), np.zeros((1, 1)), np.array([[1e6]]))
    assert_allclose(kernel.noise(theta, at), 0.1 + 0.3, rtol=1e-4)
