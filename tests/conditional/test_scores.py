"""The two criteria against densities written out reading by reading."""

from functools import partial

import numpy as np
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm

from emgpr.arrays import cholesky
from emgpr.conditional.scores import (
    BLOCK_WEIGHT,
    left_out_density,
    log_likelihood,
    split_into_blocks,
)
from tests.finite_differences import derivative


def covariance(rng, n=7):
    root = rng.normal(size=(n, n))
    return root @ root.T + np.eye(n)


def check_derivative(score, K, y):
    """The derivative along symmetric changes of K."""
    value, G = score(cholesky(K), y)
    expected = derivative(lambda K: score(cholesky(0.5 * (K + K.T)), y)[0], K)
    assert_allclose(G, expected, atol=1e-7 * np.abs(expected).max())
    return value


def test_the_likelihood_is_that_of_a_gaussian(rng):
    K, y = covariance(rng), rng.normal(size=7)
    value = check_derivative(log_likelihood, K, y)
    assert_allclose(value, multivariate_normal(np.zeros(7), K).logpdf(y))


def test_left_out_readings_are_predicted_from_other_blocks(rng):
    K, y = covariance(rng), rng.normal(size=7)
    blocks = [np.array([0, 4]), np.array([1, 2, 6]), np.array([3, 5])]
    value = check_derivative(partial(left_out_density, blocks), K, y)
    total = 0.0
    for b in blocks:
        kept = np.setdiff1d(np.arange(7), b)
        weights = np.linalg.solve(K[np.ix_(kept, kept)], K[np.ix_(kept, b)])
        variance = np.diagonal(K[np.ix_(b, b)] - K[np.ix_(b, kept)] @ weights)
        total += norm(y[kept] @ weights, np.sqrt(variance)).logpdf(y[b]).sum()
    assert_allclose(value, BLOCK_WEIGHT * total)


def test_blocks_are_neighbours_and_contain_each_reading_once(rng):
    x = rng.uniform(size=(50, 2)) * [10.0, 1.0]
    blocks = split_into_blocks(x, 5)
    assert len(blocks) == 5
    assert_allclose(np.sort(np.concatenate(blocks)), np.arange(50))
    spread = np.mean([x[block, 0].std() for block in blocks])
    assert spread < 0.4 * x[:, 0].std()


def test_there_are_no_more_blocks_than_readings():
    assert [block.tolist() for block in split_into_blocks(np.zeros((2, 1)))] == [[0], [1]]
