"""How the sites of a table are counted together where outputs are missing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from emgpr.covariance import log_likelihood, log_likelihood_in_span, span_of
from emgpr.kernels import matrices
from emgpr.observations import Observations

N = 90
JOINED = np.array([[0.2, 0.15], [0.15, 0.3]])
APART = np.diag(np.diag(JOINED))


def a_table(rng, *patterns):
    """Smooth outputs, each site with one of these patterns of what was measured there."""
    x = rng.uniform(size=(N, 1))
    seen = np.array([patterns[i % len(patterns)] for i in range(N)]).T
    return Observations(x, np.where(seen, np.sin([5 * x[:, 0], 3 * x[:, 0]]), 0.0), seen)


THREE = (True, True), (True, False), (False, True)


@pytest.mark.parametrize("noise", [JOINED, APART], ids=["joined", "apart"])
@pytest.mark.parametrize("patterns", [THREE[:1], THREE[:2], THREE], ids=["one", "two", "three"])
def test_however_they_are_counted_the_likelihood_is_the_dense_one(rng, noise, patterns):
    table = a_table(rng, *patterns)
    K, W = matrices((RBF(0.5), RBF(1.0)), table.x), rng.normal(size=(2, 2, 1))
    span = span_of(table, noise, K, 1)
    dense = log_likelihood(table, W, noise, K)
    value, of_weights = log_likelihood_in_span(span, W, noise)
    assert_allclose(value, dense.value, atol=1e-2)
    assert_allclose(of_weights, dense.of_weights, atol=1e-3 * np.abs(dense.of_weights).max())


def test_noises_that_are_joined_are_counted_together_whatever_the_patterns(rng):
    table = a_table(rng, *THREE)
    K = matrices((RBF(0.5),), table.x)
    joined, apart = (span_of(table, noise, K, 1) for noise in (JOINED, APART))
    assert sorted(term.outputs for term in joined.terms) == [(0,), (0, 1), (1,)]
    assert [term.outputs for term in apart.terms] == [(0,), (1,)]


def test_sites_where_nothing_was_measured_are_in_no_term(rng):
    table = a_table(rng, (True, True), (False, False))
    for noise in (JOINED, APART):
        (term,) = span_of(table, noise, matrices((RBF(0.5),), table.x), 1).terms
        assert (term.outputs, term.n_sites) == ((0, 1), N // 2)
    never = a_table(rng, (True, False), (False, False))
    assert [t.outputs for t in span_of(never, APART, matrices((RBF(0.5),), never.x), 1).terms] == [
        (0,)
    ]
