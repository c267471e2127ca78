"""The Kronecker form of the likelihood agrees with the dense form."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.covariance.kronecker import kronecker_log_likelihood
from emgpr.covariance.lmc import dense_log_likelihood
from emgpr.observations import Observations
from tests.simulated import symmetric_part, world


def assert_forms_agree(given, rtol):
    dense = dense_log_likelihood(*given, of_kernels=True)[:4]
    for fast, slow in zip(kronecker_log_likelihood(*given), dense, strict=True):
        assert fast.shape == slow.shape
        fast, slow = symmetric_part(fast), symmetric_part(slow)
        assert_allclose(fast, slow, rtol=rtol, atol=rtol * np.abs(slow).max())


@pytest.mark.parametrize(
    ("D", "k", "N", "correlated"),
    [(3, 2, 12, True), (4, 4, 7, False), (2, 1, 1, True), (1, 1, 9, False)],
)
def test_value_and_derivatives_are_those_of_the_dense_form(rng, D, k, N, correlated):
    made = world(rng, Q=1, D=D, k=k, N=N, correlated=correlated)
    assert_forms_agree((made.observed, made.W, made.noise, made.K), 1e-9)


def test_singular_matrices_are_allowed(rng):
    """Every site occurs twice, and the weights have rank one: both factors are singular."""
    made = world(rng, Q=1, D=3, k=1, correlated=True)
    table = Observations.from_table(np.tile(made.X, (2, 1)), np.tile(made.Y, (2, 1)))
    assert_forms_agree((table, made.W, made.noise, np.tile(made.K, (1, 2, 2))), 1e-8)
