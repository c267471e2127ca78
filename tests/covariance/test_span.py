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


NOISE = np.array([0.1, 0.2, 0.3])


def smooth(table):
    """Four latents of different lengths: far fewer columns than the 180 readings."""
    return np.stack([matrix(RBF(scale), table.x) for scale in (1.5, 2.0, 3.0, 6.0)])


@pytest.mark.parametrize("rank", [1, 2])
def test_value_and_gradient_are_those_of_the_dense_form(rng, table, rank):
    K = smooth(table)
    span = span_of(table, NOISE, K, rank)
    assert len(span.G) < 120
    W = rng.normal(size=(4, 3, rank))
    value, of_weights = log_likelihood_in_span(span, W, NOISE)
    dense = log_likelihood(table, W, NOISE, K)
    assert_allclose(value, dense.value, atol=1e-2)
    assert_allclose(of_weights, dense.of_weights, atol=1e-3 * np.abs(dense.of_weights).max())


def test_the_gradient_is_that_of_the_value(rng, table):
    span = span_of(table, NOISE, smooth(table), 2)
    W = rng.normal(size=(4, 3, 2))
    _, of_weights = log_likelihood_in_span(span, W, NOISE)
    assert_is_the_gradient(of_weights, lambda w: log_likelihood_in_span(span, w, NOISE)[0], W)


def test_rough_latents_and_gaps_are_left_to_the_dense_form(table):
    rough = np.stack([matrix(Matern(0.01, nu=0.5), table.x)] * 3)
    assert span_of(table, NOISE, rough, 1) is None
    gap = Observations(table.x, table.y, table.seen.copy())
    gap.seen[1, 4] = False
    assert span_of(gap, NOISE, smooth(table), 1) is None
