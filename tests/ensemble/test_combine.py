"""Members' beliefs joined."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.ensemble import mixture

L, M, D = 3, 4, 2


@pytest.fixture
def members(rng):
    roots = rng.normal(size=(L, M, D, D))
    return rng.normal(size=(L, M, D)), roots @ np.swapaxes(roots, -1, -2)


def test_mean_and_covariance_are_those_of_draws_from_a_member_chosen_at_random(members, rng):
    """200,000 draws: within 4 standard errors, a false alarm in about a thousand runs."""
    mean, cov = mixture(*members)
    n = 200_000
    who = rng.integers(L, size=n)
    for site in range(M):
        means, covs = members[0][:, site], members[1][:, site]
        noise = np.einsum("nij,nj->ni", np.linalg.cholesky(covs)[who], rng.normal(size=(n, D)))
        draws = means[who] + noise
        assert np.all(np.abs(draws.mean(0) - mean[site]) < 4 * draws.std(0) / np.sqrt(n))
        products = (draws - mean[site])[:, :, None] * (draws - mean[site])[:, None, :]
        error = products.std(axis=0) / np.sqrt(n)
        assert np.all(np.abs(products.mean(axis=0) - cov[site]) < 4 * error)


def test_the_order_of_the_members_does_not_matter(members, rng):
    shuffled = rng.permutation(L)
    for ours, theirs in zip(
        mixture(*members), mixture(*(part[shuffled] for part in members)), strict=True
    ):
        assert_allclose(ours, theirs, rtol=1e-12)


def test_members_that_agree_are_as_uncertain_as_one(members):
    mean, cov = (np.stack([part[0]] * L) for part in members)
    combined_mean, combined_cov = mixture(mean, cov)
    assert_allclose(combined_mean, mean[0], rtol=1e-12)
    assert_allclose(combined_cov, cov[0], rtol=1e-12)
