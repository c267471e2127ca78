"""The noise covariance as a vector that an optimiser changes freely, and the weak prior on it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.noise import (
    MIN_VARIANCE,
    STRENGTH,
    NoiseParameters,
    WeakPrior,
    noise_prior,
    output_variances,
)
from emgpr.observations import Observations
from tests.finite_differences import assert_is_the_gradient
from tests.simulated import a_correlation

each_size = pytest.mark.parametrize("D", [1, 3])
correlated_or_not = pytest.mark.parametrize("correlated", [False, True])


def a_noise(rng, D, correlated=True):
    scale = rng.uniform(0.01, 2.0, size=D)
    return (a_correlation(rng, D) if correlated else np.eye(D)) * np.outer(scale, scale)


@correlated_or_not
@each_size
def test_a_noise_covariance_becomes_a_vector_and_back(rng, D, correlated):
    parameters = NoiseParameters(D, correlated)
    noise = a_noise(rng, D, correlated)
    vector = parameters.vector(noise)
    assert vector.shape == (parameters.size,)
    assert_allclose(parameters.matrix(vector), noise, rtol=1e-12, atol=1e-14)
    other = rng.normal(size=parameters.size)
    assert_allclose(parameters.vector(parameters.matrix(other)), other, atol=1e-10)


@pytest.mark.parametrize(("D", "size"), [(1, 1), (2, 3), (5, 15)])
def test_the_vector_has_as_many_numbers_as_the_covariance(D, size):
    assert NoiseParameters(D, correlated=True).size == size
    assert NoiseParameters(D, correlated=False).size == D


@correlated_or_not
def test_independent_noise_is_its_log_variances(rng, correlated):
    variances = rng.uniform(0.01, 2.0, size=3)
    parameters = NoiseParameters(3, correlated)
    vector = parameters.vector(np.diag(variances))
    assert_allclose(vector[:3], np.log(variances))
    assert_array_equal(vector[3:], 0.0)
    assert_allclose(parameters.matrix(vector), np.diag(variances), rtol=1e-12)


@correlated_or_not
def test_a_noise_of_zero_counts_as_a_tiny_one(correlated):
    assert MIN_VARIANCE == 1e-12
    vector = NoiseParameters(2, correlated).vector(np.diag([0.0, 1e-12]))
    assert_allclose(vector[:2], np.log(1e-12))


def test_the_rows_of_the_root_point_along_the_tilts():
    """Row 2 of L is e^(a/2) (c₁, c₂, 1) / |(c₁, c₂, 1)|."""
    vector = np.array([0.0, 0.0, np.log(4.0), 0.0, 2.0, 1.0])
    noise = NoiseParameters(3, correlated=True).matrix(vector)
    row = 2 * np.array([2.0, 1.0, 1.0]) / np.sqrt(6)
    assert_allclose(noise[2], [row[0], row[1], 4.0])


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(-3.0, 3.0), min_size=10, max_size=10), st.floats(-18.0, 5.0))
def test_every_vector_is_a_covariance(numbers, log_variance):
    """Of four outputs, one with a noise far below the others."""
    vector = np.array(numbers)
    vector[2] = log_variance
    noise = NoiseParameters(4, correlated=True).matrix(vector)
    assert_array_equal(noise, noise.T)
    assert np.all(np.isfinite(np.linalg.cholesky(noise)))
    assert_allclose(np.diag(noise), np.exp(vector[:4]))


@correlated_or_not
@each_size
def test_the_pullback_is_the_chain_rule(rng, D, correlated):
    """For log |Σ| + tr AΣ, with the derivative Σ⁻¹ + A."""
    parameters = NoiseParameters(D, correlated)
    A = a_noise(rng, D)
    vector = parameters.vector(a_noise(rng, D, correlated)) + 0.1

    def value(vector):
        noise = parameters.matrix(vector)
        return np.linalg.slogdet(noise)[1] + np.trace(A @ noise)

    of_noise = np.linalg.inv(parameters.matrix(vector)) + A
    assert_is_the_gradient(parameters.pullback(vector, of_noise), value, vector)


def test_uncorrelated_noise_is_no_saddle_point(rng):
    """The derivative with respect to every correlation can differ from zero."""
    parameters = NoiseParameters(3, correlated=True)
    vector = parameters.vector(np.diag([0.1, 0.2, 0.3]))
    of_noise = rng.uniform(0.5, 1.0, size=(3, 3)) * (1 - np.eye(3))
    assert np.all(parameters.pullback(vector, of_noise)[3:] != 0)


def test_bounds_are_those_of_the_log_variances_and_ten_for_tilts():
    variances = np.array([[0.1, 2.0], [0.5, 0.5]])
    assert_array_equal(NoiseParameters(2, correlated=False).bounds(variances), np.log(variances))
    bounds = NoiseParameters(2, correlated=True).bounds(variances)
    assert_array_equal(bounds, [*np.log(variances), [-10.0, 10.0]])


def test_the_gradient_equals_finite_differences(rng):
    prior = WeakPrior(rng.uniform(0.5, 2.0, 3))
    noise = 0.2 * a_correlation(rng, 3)
    assert_is_the_gradient(prior(noise)[1], lambda S: float(prior(S)[0]), noise)


def test_the_prior_is_highest_where_everything_is_noise(rng):
    variances = rng.uniform(0.5, 2.0, 3)
    value, gradient = WeakPrior(variances)(0.999 * np.diag(variances))
    assert_allclose(gradient, 0.0, atol=0.01 * STRENGTH)
    for _ in range(20):
        other = a_correlation(rng, 3) * rng.uniform(0.01, 2.0)
        assert WeakPrior(variances)(other)[0] < value


def test_almost_perfectly_correlated_noises_are_unlikely():
    prior = WeakPrior(np.ones(2))
    independent, correlated = (prior(0.1 * np.array([[1.0, r], [r, 1.0]]))[0] for r in (0.0, 0.999))
    assert correlated < independent - STRENGTH


def test_the_prior_does_not_depend_on_units(rng):
    """The same share of noise is equally likely in grams and in kilograms."""
    X, Y = rng.uniform(size=(9, 2)), rng.normal(size=(9, 2))
    noise, units = 0.1 * a_correlation(rng, 2), np.array([3.0, 0.01])
    variances, rescaled = (
        output_variances(Observations.from_table(X, table)) for table in (Y, Y * units)
    )
    ours = noise_prior(variances, True)(noise)[0]
    theirs = noise_prior(rescaled, True)(noise * np.outer(units, units))[0]
    assert_allclose(ours, theirs)


def test_the_flat_prior_is_zero():
    value, gradient = noise_prior(np.ones(2), False)(np.eye(2))
    assert value == 0
    assert not gradient.any()


@correlated_or_not
@each_size
def test_derivatives_of_the_covariance_agree_with_differences(rng, D, correlated):
    parameters = NoiseParameters(D, correlated)
    vector = rng.normal(size=parameters.size)
    step = 1e-6 * np.eye(parameters.size)
    expected = [
        (parameters.matrix(vector + e) - parameters.matrix(vector - e)) / 2e-6 for e in step
    ]
    assert_allclose(parameters.derivatives(vector), expected, atol=1e-8)


def test_the_curvature_of_the_prior_agrees_with_differences():
    variances, step = np.array([[0.5], [3.0]]), 1e-4
    prior, log_noise = WeakPrior(variances), np.log([[0.001], [0.7]])
    values = [prior(np.exp(log_noise + h)[:, None])[0] for h in (-step, 0.0, step)]
    expected = -(values[0] - 2 * values[1] + values[2]) / step**2
    assert_allclose(prior.log_curvature(np.exp(log_noise)), expected, rtol=1e-4)
