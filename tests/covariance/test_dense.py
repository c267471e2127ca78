"""The covariance of all readings, against np.kron and against each pair written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import gram, world

from emgpr.covariance import between_tasks, prior
from emgpr.covariance.dense import coregionalization
from emgpr.covariance.dense import readings as covariance_of_readings


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("D", [2, 3, 4])
@pytest.mark.parametrize(("Q", "k"), [(3, 2), (4, 3), (1, 1)])
def test_a_full_table_has_the_sum_of_kronecker_products(rng, Q, D, k, correlated):
    made = world(rng, Q=Q, D=D, k=k, N=6, correlated=correlated)
    B = coregionalization(made.W)
    twin = sum(np.kron(w @ w.T, K) for w, K in zip(made.W, made.K, strict=True))
    twin = twin + np.kron(made.noise, np.eye(6))
    assert_allclose(covariance_of_readings(made.seen, B, made.noise, made.K), twin, rtol=1e-10)


@pytest.mark.parametrize("correlated", [False, True])
def test_readings_that_were_made_covary_as_pair_by_pair(rng, correlated):
    made = world(rng, missing=0.3, correlated=correlated)
    cov = covariance_of_readings(made.seen, coregionalization(made.W), made.noise, made.K)
    seen = made.seen.seen.ravel()
    assert_allclose(cov[np.ix_(seen, seen)], gram(made), rtol=1e-10)
    assert_allclose(cov[~seen], np.eye(len(cov))[~seen])


def test_tasks_and_sites_keep_their_axes(rng):
    B, K = rng.normal(size=(3, 2, 2)), rng.normal(size=(3, 4, 5))
    full = between_tasks(B, K)
    assert full.shape == (2, 4, 2, 5)
    assert_allclose(full, np.einsum("qlm,qij->limj", B, K), rtol=1e-12)


def test_weights_and_sites_may_each_have_a_batch(rng):
    B, K = rng.normal(size=(6, 3, 2, 2)), rng.normal(size=(6, 3, 4, 5))
    each = [between_tasks(b, kk) for b, kk in zip(B, K, strict=True)]
    assert_allclose(between_tasks(B, K), each, rtol=1e-12)
    assert_allclose(between_tasks(B[0], K)[4], between_tasks(B[0], K[4]), rtol=1e-12)
    assert_allclose(between_tasks(B, K[0])[4], between_tasks(B[4], K[0]), rtol=1e-12)


def test_the_prior_of_a_site_is_the_diagonal_block(rng):
    made = world(rng)
    B = coregionalization(made.W)
    blocks = prior(B, np.stack([kernel.diag(made.X) for kernel in made.kernels]))
    full = between_tasks(B, made.K)
    assert_allclose(blocks, np.einsum("limi->ilm", full), rtol=1e-12)
