"""The span of the latents says what the dense form says, to its tolerance."""

import numpy as np
import pytest
from finite_differences import assert_is_the_gradient
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.covariance import log_likelihood, log_likelihood_in_span, span_of
from emgpr.kernels import matrix
from emgpr.observations import Observations


@pytest.fixture
def table(rng):
    return Observations.from_table(rng.uniform(size=(60, 2)), rng.normal(size=(60, 3)))


NOISES = {
    "independent": np.diag([0.1, 0.2, 0.3]),
    "correlated": np.array([[0.1, 0.1, -0.05], [0.1, 0.2, 0.0], [-0.05, 0.0, 0.3]]),
}


@pytest.fixture(params=NOISES.values(), ids=NOISES.keys())
def noise(request):
    return request.param


def smooth(table):
    """Four latents of different lengths: far fewer columns than the 180 readings."""
    return np.stack([matrix(RBF(scale), table.x) for scale in (1.5, 2.0, 3.0, 6.0)])


@pytest.mark.parametrize("rank", [1, 2])
def test_value_and_gradient_are_those_of_the_dense_form(rng, table, rank, noise):
    K = smooth(table)
    span = span_of(table, noise, K, rank)
    assert len(span.G) < 120
    W = rng.normal(size=(4, 3, rank))
    value, of_weights = log_likelihood_in_span(span, W, noise)
    dense = log_likelihood(table, W, noise, K)
    assert_allclose(value, dense.value, atol=1e-2)
    assert_allclose(of_weights, dense.of_weights, atol=1e-3 * np.abs(dense.of_weights).max())


def test_the_gradient_is_that_of_the_value(rng, table, noise):
    span = span_of(table, noise, smooth(table), 2)
    W = rng.normal(size=(4, 3, 2))
    _, of_weights = log_likelihood_in_span(span, W, noise)
    assert_is_the_gradient(of_weights, lambda w: log_likelihood_in_span(span, w, noise)[0], W)


def test_what_may_be_left_out_is_measured_by_the_least_noise_of_any_mixture_of_outputs(rng, table):
    """Two outputs whose difference is read a million times better than either."""
    noise = np.array([[0.3, 0.3 - 1e-6, 0.0], [0.3 - 1e-6, 0.3, 0.0], [0.0, 0.0, 0.3]])
    K = smooth(table)
    W = rng.normal(size=(4, 3, 1))
    span = span_of(table, noise, K, 1)
    assert span is not None
    value, _ = log_likelihood_in_span(span, W, noise)
    exact = float(log_likelihood(table, W, noise, K).value)
    assert abs(value - exact) < 1e-6 * abs(exact)


def test_rough_latents_and_gaps_are_left_to_the_dense_form(table, noise):
    rough = np.stack([matrix(Matern(0.01, nu=0.5), table.x)] * 3)
    assert span_of(table, noise, rough, 1) is None
    gap = Observations(table.x, table.y, table.seen.copy())
    gap.seen[1, 4] = False
    assert span_of(gap, noise, smooth(table), 1) is None
