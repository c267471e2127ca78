"""Σ written as a row of free numbers: nothing lost, always a covariance, slopes that follow."""

import numpy as np
import pytest
from finite_differences import assert_is_the_gradient
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from simulated import a_correlation

from emgpr.weights.noise import NoiseParameters

every_size = pytest.mark.parametrize("D", [1, 2, 3, 5])
correlated_or_not = pytest.mark.parametrize("correlated", [False, True])
MODERATE = st.floats(-3.0, 3.0)


def a_noise(rng, D, correlated=True):
    scale = rng.uniform(0.01, 2.0, size=D)
    return (a_correlation(rng, D) if correlated else np.eye(D)) * np.outer(scale, scale)


@correlated_or_not
@every_size
def test_there_and_back(rng, D, correlated):
    as_row = NoiseParameters(D, correlated)
    noise = a_noise(rng, D, correlated)
    row = as_row.of(noise)
    assert row.shape == (as_row.size,)
    assert_allclose(as_row.matrix(row), noise, rtol=1e-12, atol=1e-14)
    other = rng.normal(size=as_row.size)
    assert_allclose(as_row.of(as_row.matrix(other)), other, atol=1e-10)


@every_size
def test_there_are_as_many_numbers_as_a_covariance_has(D):
    assert NoiseParameters(D, correlated=True).size == D * (D + 1) // 2
    assert NoiseParameters(D, correlated=False).size == D


@every_size
def test_independent_noise_is_its_log_variances_whether_it_could_be_joined_or_not(rng, D):
    variances = rng.uniform(0.01, 2.0, size=D)
    for correlated in (False, True):
        as_row = NoiseParameters(D, correlated)
        row = as_row.of(np.diag(variances))
        assert_allclose(row[:D], np.log(variances))
        assert_array_equal(row[D:], 0.0)
        assert_array_equal(as_row.matrix(row), np.diag(np.diag(as_row.matrix(row))))


@settings(deadline=None)
@given(st.lists(MODERATE, min_size=10, max_size=10), st.floats(-18.0, 5.0))
def test_it_is_a_covariance_whatever_the_row(numbers, log_variance):
    """Of four tasks, the noise of one far below the others'."""
    row = np.array(numbers)
    row[2] = log_variance
    noise = NoiseParameters(4, correlated=True).matrix(row)
    assert_array_equal(noise, noise.T)
    assert np.all(np.isfinite(np.linalg.cholesky(noise)))
    assert np.all(np.diag(noise) > 0)


@correlated_or_not
@every_size
def test_the_pullback_is_the_chain_rule(rng, D, correlated):
    """Of log |Σ| + tr AΣ, whose derivative is Σ⁻¹ + A."""
    as_row = NoiseParameters(D, correlated)
    A = a_noise(rng, D)
    row = as_row.of(a_noise(rng, D, correlated)) + 0.1

    def value(row):
        noise = as_row.matrix(row)
        return np.linalg.slogdet(noise)[1] + np.trace(A @ noise)

    of_noise = np.linalg.inv(as_row.matrix(row)) + A
    assert_is_the_gradient(as_row.pullback(row, of_noise), value, row)


def test_noise_that_starts_apart_can_be_joined(rng):
    """A start without correlation is no saddle: the slope along every one is there."""
    as_row = NoiseParameters(3, correlated=True)
    row = as_row.of(np.diag([0.1, 0.2, 0.3]))
    slope = as_row.pullback(row, rng.uniform(0.5, 1.0, size=(3, 3)) * (1 - np.eye(3)))
    assert np.all(slope[3:] != 0)
