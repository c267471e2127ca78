"""Likelihoods for many noise variances agree with SciPy's density of the readings."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import Matern

from emgpr.latents.noise_profile import log_likelihoods

NOISES = np.array([1e-6, 0.03, 2.0])


@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_every_noise_and_output_has_the_likelihood_of_its_covariance(rng, n):
    K, y = Matern(0.3, nu=1.5)(rng.uniform(size=(n, 2))), rng.normal(size=(4, n))
    expected = [
        [multivariate_normal(np.zeros(n), K + s * np.eye(n)).logpdf(row) for row in y]
        for s in NOISES
    ]
    assert_allclose(log_likelihoods(K, y, NOISES), expected, rtol=1e-9)


def test_a_covariance_that_is_not_positive_definite_has_no_likelihood(rng):
    K, y = np.array([[1.0, 2.0], [2.0, 1.0]]), np.ones((1, 2))
    assert np.isneginf(log_likelihoods(K, y, np.array([0.5]))).all()
    assert np.isfinite(log_likelihoods(K, y, np.array([1.5]))).all()
    assert np.isneginf(log_likelihoods(np.full((2, 2), np.nan), y, np.array([1.5]))).all()
