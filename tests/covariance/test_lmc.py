"""The covariance of all readings against np.kron, and large ones formed in panels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.arrays import to_device, to_numpy
from emgpr.covariance import (
    coregionalization,
    cross_covariance,
    lmc,
    log_likelihood,
    prior_covariance,
    variance_shares,
)
from emgpr.covariance.lmc import observation_covariance
from emgpr.observations import Observations
from tests.simulated import gram, symmetric_part, world

N, D = 6, 5


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize(("Q", "D", "k"), [(3, 2, 2), (4, 3, 3), (1, 4, 1)])
def test_a_complete_table_has_the_sum_of_kronecker_products(rng, Q, D, k, correlated):
    made = world(rng, Q=Q, D=D, k=k, N=6, correlated=correlated)
    twin = sum(np.kron(w @ w.T, K) for w, K in zip(made.W, made.K, strict=True))
    twin = twin + np.kron(made.noise, np.eye(6))
    cov = observation_covariance(made.observed, coregionalization(made.W), made.noise, made.K)
    assert_allclose(cov, twin, rtol=1e-10)


def test_readings_covary_as_pair_by_pair_and_missing_ones_are_decoupled(rng):
    made = world(rng, missing=0.3, correlated=True)
    cov = observation_covariance(made.observed, coregionalization(made.W), made.noise, made.K)
    seen = made.observed.observed.ravel()
    assert_allclose(cov[np.ix_(seen, seen)], gram(made), rtol=1e-10)
    assert_allclose(cov[~seen], np.eye(len(cov))[~seen])


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_covariance_on_a_device_is_the_same(rng, device, missing):
    made = world(rng, missing=missing, correlated=True)
    given = coregionalization(made.W), made.noise, made.K
    moved = [to_device(a, device) for a in given]
    cov = to_numpy(observation_covariance(made.observed.to(device), *moved))
    assert_allclose(cov, observation_covariance(made.observed, *given), rtol=1e-12)


def test_weights_and_sites_may_each_have_a_batch(rng):
    B, K = rng.normal(size=(6, 3, 2, 2)), rng.normal(size=(6, 3, 4, 5))
    members = [cross_covariance(b, k) for b, k in zip(B, K, strict=True)]
    assert_allclose(members[0], np.einsum("qlm,qij->limj", B[0], K[0]), rtol=1e-12)
    assert_allclose(cross_covariance(B, K), members, rtol=1e-12)
    assert_allclose(cross_covariance(B[0], K)[4], cross_covariance(B[0], K[4]), rtol=1e-12)
    assert_allclose(cross_covariance(B, K[0])[4], cross_covariance(B[4], K[0]), rtol=1e-12)


def test_the_prior_of_a_site_is_the_diagonal_block(rng):
    made = world(rng)
    B = coregionalization(made.W)
    blocks = prior_covariance(B, np.stack([kernel.diag(made.X) for kernel in made.kernels]))
    assert_allclose(blocks, np.einsum("limi->ilm", cross_covariance(B, made.K)), rtol=1e-12)


def test_shares_of_the_variance_are_those_of_latents_and_noise(rng):
    made = world(rng, Q=2, k=1)
    W = np.stack([made.W, 2 * made.W])
    shares = variance_shares(made.kernels, W, made.noise, made.X)  # the kernels have variance 1
    parts = np.column_stack([2.5 * made.W[..., 0].T ** 2, np.diag(made.noise)])
    assert_allclose(shares, parts / parts.sum(axis=1, keepdims=True))


@pytest.fixture(params=[1, 2, 5], ids="{} outputs per panel".format)
def limit_panels(request, monkeypatch):
    """Let a panel hold so many outputs of a table of N sites."""

    def limit(batch=1, sites=N):
        most = int((request.param + 0.5) * batch * N * D * sites)
        monkeypatch.setattr(lmc, "panel_size", lambda other: most)

    return limit


@pytest.mark.parametrize("batch", [(), (3,)])
def test_panels_do_not_change_the_covariance(rng, limit_panels, batch):
    B = coregionalization(rng.normal(size=(*batch, 2, D, 1)))
    K = rng.normal(size=(*batch, 2, N, 4))
    limit_panels(int(np.prod(batch)), sites=4)
    expected = np.einsum("...qlm,...qij->...limj", B, K)
    assert_allclose(cross_covariance(B, K), expected, atol=1e-12)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_panels_do_not_change_the_likelihood_and_its_gradients(rng, limit_panels, missing, batch):
    made = world(rng, N=2 * N, D=D, Q=2, k=2, missing=missing, correlated=True)
    halves = [np.arange(N), np.arange(N, 2 * N)]
    K = np.stack([made.K[:, sites[:, None], sites] for sites in halves])
    if batch:
        given = made.observed.batches(halves), np.stack([made.W, 2 * made.W]), made.noise, K
    else:
        given = made.observed.at(halves[0]), made.W, made.noise, K[0]
    in_one = log_likelihood(*given, of_kernels=True)
    limit_panels(batch=1 + batch)
    in_panels = log_likelihood(*given, of_kernels=True)
    for name in ("value", "of_weights", "of_noise", "of_kernels"):
        expected = symmetric_part(getattr(in_one, name))
        found = symmetric_part(getattr(in_panels, name))
        assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_a_table_with_an_output_measured_nowhere_has_the_likelihood_of_the_others(rng, monkeypatch):
    made = world(rng, N=N, D=D, Q=2, k=1)
    Y = made.Y.copy()
    Y[:, 2] = np.nan
    kept = [0, 1, 3, 4]
    monkeypatch.setattr(lmc, "panel_size", lambda other: 1)
    one = log_likelihood(Observations.from_table(made.X, Y), made.W, made.noise, made.K)
    others = Observations.from_table(made.X, Y[:, kept])
    noise = made.noise[np.ix_(kept, kept)]
    assert_allclose(one.value, log_likelihood(others, made.W[:, kept], noise, made.K).value)
