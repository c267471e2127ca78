"""What rules make of members that are less sure than their prior, or have priors of their own."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.ensemble import RULES, average, barycenter, bcm, gpoe, join, poe, rbcm, rebase

M, D = 3, 2


def a_covariance(rng, *shape):
    root = rng.normal(size=(*shape, D, D))
    return root @ np.swapaxes(root, -1, -2) + 0.1 * np.eye(D)


def test_experts_may_be_less_sure_than_the_prior_and_a_committee_may_not(rng):
    prior, means = a_covariance(rng, M), rng.normal(size=(2, M, D))
    doubtful = np.stack([4 * prior] * 2)
    assert_allclose(gpoe(means, doubtful, prior)[1], 4 * prior)
    assert_allclose(poe(means, doubtful, prior)[1], 2 * prior)
    for rule in (bcm, rbcm):
        assert_allclose(rule(means, doubtful, prior)[1], prior)


@pytest.mark.parametrize("name", ["poe", "gpoe", "bcm", "rbcm", "grbcm"])
@pytest.mark.parametrize("L", [2, 3])
def test_products_of_members_with_priors_of_their_own_start_from_one(rng, name, L):
    own = a_covariance(rng, L, M)
    covs, means = 0.3 * own, rng.normal(size=(L, M, D))
    mean, cov = join(name, means, covs, own)
    together = own.mean(axis=0)
    expected = RULES[name](*rebase(means, covs, own, together), together)
    assert_allclose(mean[0], expected[0])
    assert_allclose(cov[0], expected[1])
    assert not np.allclose(cov[0], RULES[name](means, covs, together)[1])


@pytest.mark.parametrize("rule", [average, barycenter])
def test_rules_that_do_not_ask_for_the_prior_take_the_members_as_they_are(rng, rule):
    own = a_covariance(rng, 3, M)
    covs, means = 0.3 * own, rng.normal(size=(3, M, D))
    mean, cov = join(rule, means, covs, own)
    expected = rule(means, covs, own.mean(axis=0))
    assert_allclose(mean[0], expected[0])
    assert_allclose(cov[0], expected[1])


def test_a_member_that_is_alone_is_left_as_it_is(rng):
    own = a_covariance(rng, 1, M)
    means = rng.normal(size=(1, M, D))
    for name in RULES:
        mean, cov = join(name, means, 2 * own, own)
        assert_allclose(mean, means)
        assert_allclose(cov, 2 * own)


def test_a_rule_that_there_is_not_is_told_with_those_there_are(rng):
    says = (
        "There is no rule 'median'; expected one of 'mean', 'average', 'poe', 'gpoe', 'bcm', "
        "'rbcm', 'grbcm', 'barycenter', or a function of (means, covs, prior)."
    )
    own = a_covariance(rng, 2, M)
    with pytest.raises(ValueError, match=f"^{re.escape(says)}$"):
        join("median", np.zeros((2, M, D)), own, own)
