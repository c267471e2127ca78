"""The low-rank form of the likelihood agrees with the dense form to its tolerance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.arrays import to_device
from emgpr.covariance import log_likelihood, low_rank_log_likelihood, low_rank_table
from emgpr.kernels import kernel_matrices
from emgpr.observations import Observations
from tests.finite_differences import assert_is_the_gradient

INDEPENDENT = np.diag([0.1, 0.2, 0.3])
CORRELATED = np.array([[0.1, 0.1, -0.05], [0.1, 0.2, 0.0], [-0.05, 0.0, 0.3]])


@pytest.fixture
def table(rng):
    return Observations.from_table(rng.uniform(size=(60, 2)), rng.normal(size=(60, 3)))


@pytest.fixture(params=[INDEPENDENT, CORRELATED], ids=["independent", "correlated"])
def noise(request):
    return request.param


def smooth_kernels(table):
    """Four latents of different lengths: far fewer columns than the 180 readings."""
    return kernel_matrices([RBF(scale) for scale in (2.0, 3.0, 4.0, 8.0)], table.x)


def with_missing(table, observed):
    return Observations(table.x, np.where(observed, table.y, 0.0), observed)


def assert_agrees_with_dense(rng, table, rank, noise):
    K = smooth_kernels(table)
    low_rank = low_rank_table(table, noise, K, rank)
    W = rng.normal(size=(4, 3, rank))
    value, of_weights = low_rank_log_likelihood(low_rank, W, noise)
    dense = log_likelihood(table, W, noise, K)
    assert_allclose(value, dense.value, atol=1e-2)
    assert_allclose(of_weights, dense.of_weights, atol=1e-3 * np.abs(dense.of_weights).max())
    assert_is_the_gradient(of_weights, lambda w: low_rank_log_likelihood(low_rank, w, noise)[0], W)
    return low_rank


@pytest.mark.parametrize("rank", [1, 2])
def test_a_complete_table_has_one_term(rng, table, rank, noise):
    low_rank = assert_agrees_with_dense(rng, table, rank, noise)
    assert low_rank.n_columns < 120
    assert [term.outputs for term in low_rank.terms] == [(0, 1, 2)]


MISSING = {
    "one output missing at half of the sites": (slice(0, 30), [1]),
    "two at a fifth": (slice(10, 22), [0, 2]),
    "all at some": (slice(5, 9), [0, 1, 2]),
}


@pytest.mark.parametrize("missing", MISSING.values(), ids=MISSING.keys())
def test_sites_with_the_same_outputs_form_a_term(rng, table, noise, missing):
    observed = table.observed.copy()
    sites, outputs = missing
    observed[outputs, sites] = False
    low_rank = assert_agrees_with_dense(rng, with_missing(table, observed), 2, noise)
    n = sites.stop - sites.start
    expected = {(0, 1, 2): 60 - n}
    if len(outputs) < 3:
        expected[tuple(sorted({0, 1, 2} - set(outputs)))] = n
    assert {term.outputs: term.n_sites for term in low_rank.terms} == expected


def test_many_patterns_with_independent_noise_give_one_term_per_output(rng, table):
    """With correlated noise, each pattern remains a term."""
    observed = rng.uniform(size=table.observed.shape) > 0.2
    table = with_missing(table, observed)
    n_patterns = len(np.unique(observed, axis=1).T)
    assert n_patterns > 3
    low_rank = assert_agrees_with_dense(rng, table, 1, INDEPENDENT)
    assert [term.outputs for term in low_rank.terms] == [(0,), (1,), (2,)]
    assert sum(term.n_sites for term in low_rank.terms) == table.n_readings
    correlated = assert_agrees_with_dense(rng, table, 1, CORRELATED)
    assert len(correlated.terms) == n_patterns - (~observed.any(axis=0)).any()


def test_an_output_without_readings_is_in_no_term(rng, table):
    observed = rng.uniform(size=table.observed.shape) > 0.1
    observed[1] = False
    low_rank = assert_agrees_with_dense(rng, with_missing(table, observed), 1, INDEPENDENT)
    assert {d for term in low_rank.terms for d in term.outputs} == {0, 2}


def test_weights_that_are_not_finite_have_a_likelihood_of_zero(table, noise):
    """So that a search shortens its step."""
    low_rank = low_rank_table(table, noise, smooth_kernels(table), 1)
    value, of_weights = low_rank_log_likelihood(low_rank, np.full((4, 3, 1), np.nan), noise)
    assert value == -np.inf
    assert_allclose(of_weights, 0.0)


def test_eigenvalues_are_compared_with_the_least_noise_of_any_combination_of_outputs(rng, table):
    """The difference of two outputs has a millionth of the noise variance of either."""
    noise = np.array([[0.3, 0.3 - 1e-6, 0.0], [0.3 - 1e-6, 0.3, 0.0], [0.0, 0.0, 0.3]])
    K, W = smooth_kernels(table), rng.normal(size=(4, 3, 1))
    value, _ = low_rank_log_likelihood(low_rank_table(table, noise, K, 1), W, noise)
    exact = float(log_likelihood(table, W, noise, K).value)
    assert abs(value - exact) < 1e-6 * abs(exact)


def test_rough_latents_are_left_to_the_dense_form_and_that_is_logged(table, noise, caplog):
    rough = kernel_matrices([Matern(0.01, nu=0.5)] * 3, table.x)
    with caplog.at_level("DEBUG", logger="emgpr"):
        assert low_rank_table(table, noise, rough, 1) is None
    assert "dense form: 180 columns, 1 terms, 180 readings" in caplog.text


@pytest.mark.parametrize("rank", [1, 2])
def test_a_device_gives_the_same_value_and_gradient(rng, table, device, rank, noise):
    K, W = smooth_kernels(table), rng.normal(size=(4, 3, rank))
    on_cpu = low_rank_table(table, noise, K, rank)
    on_device = low_rank_table(table.to(device), noise, to_device(K, device), rank)
    value, gradient = low_rank_log_likelihood(on_cpu, W, noise)
    value_there, gradient_there = low_rank_log_likelihood(on_device, W, noise)
    assert isinstance(gradient_there, np.ndarray)
    assert_allclose(value_there, value, rtol=1e-7)
    assert_allclose(gradient_there, gradient, atol=1e-6 * np.abs(gradient).max())
