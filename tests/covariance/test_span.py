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
    return np.stack([matrix(RBF(scale), table.x) for scale in (2.0, 3.0, 4.0, 8.0)])


@pytest.mark.parametrize("rank", [1, 2])
def test_value_and_gradient_are_those_of_the_dense_form(rng, table, rank, noise):
    K = smooth(table)
    span = span_of(table, noise, K, rank)
    assert span.n_columns < 120
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


def test_weights_that_are_no_numbers_are_the_least_likely(table, noise):
    """So that a search steps back."""
    span = span_of(table, noise, smooth(table), 1)
    value, of_weights = log_likelihood_in_span(span, np.full((4, 3, 1), np.nan), noise)
    assert value == -np.inf
    assert_allclose(of_weights, 0.0)


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


def test_rough_latents_are_left_to_the_dense_form_which_is_told(table, noise, caplog):
    rough = np.stack([matrix(Matern(0.01, nu=0.5), table.x)] * 3)
    with caplog.at_level("DEBUG", logger="emgpr"):
        assert span_of(table, noise, rough, 1) is None
    assert "Step 2 in full: 180 columns, 1 terms, 180 readings" in caplog.text


def with_gaps(table, seen):
    return Observations(table.x, np.where(seen, table.y, 0.0), seen)


GAPS = {
    "one output missing at half of the sites": (slice(0, 30), [1]),
    "two at a fifth": (slice(10, 22), [0, 2]),
    "nothing at some": (slice(5, 9), [0, 1, 2]),
}


@pytest.mark.parametrize("gaps", GAPS.values(), ids=GAPS.keys())
@pytest.mark.parametrize("rank", [1, 2])
def test_gaps_that_follow_a_pattern_are_terms_of_their_own(rng, table, rank, noise, gaps):
    seen = table.seen.copy()
    sites, outputs = gaps
    seen[outputs, sites] = False
    check_against_dense(rng, with_gaps(table, seen), rank, noise)


@pytest.mark.parametrize("rank", [1, 2])
def test_independent_noises_let_every_output_be_a_term(rng, table, rank):
    """At random, with more patterns than outputs."""
    seen = rng.uniform(size=table.seen.shape) > 0.2
    gappy = with_gaps(table, seen)
    assert len(np.unique(seen, axis=1).T) > 3
    span = check_against_dense(rng, gappy, rank, NOISES["independent"])
    assert [term.outputs for term in span.terms] == [(0,), (1,), (2,)]
    assert sum(term.n_sites for term in span.terms) == gappy.n_readings


def check_against_dense(rng, table, rank, noise):
    K = smooth(table)
    span = span_of(table, noise, K, rank)
    W = rng.normal(size=(4, 3, rank))
    value, of_weights = log_likelihood_in_span(span, W, noise)
    dense = log_likelihood(table, W, noise, K)
    assert_allclose(value, dense.value, atol=1e-2)
    assert_allclose(of_weights, dense.of_weights, atol=1e-3 * np.abs(dense.of_weights).max())
    assert_is_the_gradient(of_weights, lambda w: log_likelihood_in_span(span, w, noise)[0], W)
    return span
