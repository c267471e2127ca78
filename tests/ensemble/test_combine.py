"""Mixture and average, the registry of rules, and how a rule is applied to members."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr import ensemble
from emgpr.ensemble import RULES, average, barycenter, join, keeps_members, mixture, rbcm, rebase
from tests.ensemble.members import D, L, M, a_prior, assert_same, given_readings


@pytest.fixture
def members(rng):
    prior = a_prior(rng)
    return *given_readings(rng, prior)[:2], prior


def test_the_registry_has_every_rule_by_its_name():
    names = ["mean", "average", "poe", "gpoe", "bcm", "rbcm", "grbcm", "barycenter"]
    assert list(RULES) == names
    assert RULES["mean"] is mixture
    for name in names[1:]:
        assert RULES[name] is getattr(ensemble, name)


def test_the_mixture_has_the_moments_of_samples_from_a_member_chosen_at_random(members, rng):
    """15 means and 30 covariances within 5 standard errors: a false alarm in 38,000 runs."""
    means, covs, prior = members
    mean, cov = mixture(means, covs)
    n = 40_000
    chosen = rng.integers(L, size=n)
    for i in range(M):
        deviation = np.einsum(
            "nij,nj->ni", np.linalg.cholesky(covs[:, i])[chosen], rng.normal(size=(n, D))
        )
        drawn = means[chosen, i] + deviation - mean[i]
        assert np.all(np.abs(drawn.mean(0)) < 5 * drawn.std(0) / np.sqrt(n))
        products = drawn[:, :, None] * drawn[:, None, :]
        error = products.std(axis=0) / np.sqrt(n)
        assert np.all(np.abs(products.mean(axis=0) - cov[i]) < 5 * error)
    assert_same(average(means, covs, prior), (mean, cov), rtol=0, atol=0)


def test_members_that_agree_have_the_mixture_of_one(members):
    means, covs, prior = members
    same = (np.stack([part[0]] * L) for part in (means, covs))
    assert_same(mixture(*same, prior), (means[0], covs[0]), rtol=1e-12)


@pytest.mark.parametrize(
    ("rule", "keeps"),
    [("mean", True), (mixture, True), ("average", False), (average, False), (np.mean, False)],
)
def test_only_the_mixture_keeps_the_members(members, rule, keeps):
    assert keeps_members(rule) is keeps
    if keeps:
        means, covs, prior = members
        assert join(rule, means, covs, prior)[0] is means
        assert join(rule, means, covs, prior)[1] is covs


def test_a_rule_is_given_by_name_or_as_a_function(members):
    expected = rbcm(*members)
    for rule in ("rbcm", rbcm):
        mean, cov = join(rule, *members)
        assert mean.shape == (1, M, D)
        assert_same((mean[0], cov[0]), expected, rtol=0, atol=0)


def test_an_unknown_rule_is_refused_with_the_names_of_all(members):
    message = (
        "There is no combination rule 'median'; expected one of 'mean', 'average', 'poe', 'gpoe', "
        "'bcm', 'rbcm', 'grbcm', 'barycenter', or a function of (means, covs, prior)."
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        join("median", *members)


@pytest.mark.parametrize("n", [2, 3])
def test_members_with_different_priors_are_rebased_to_their_mean(rng, n):
    """A function of the user's own too."""
    own = a_prior(rng, n, M)
    means, covs = rng.normal(size=(n, M, D)), 0.3 * own
    mean_prior = own.mean(axis=0)
    rebased = rebase(means, covs, own, mean_prior)
    given = []

    def rule(*args):
        given.extend(args)
        return mixture(*args)

    mean, cov = join(rule, means, covs, own)
    assert_same(given, (*rebased, mean_prior), rtol=1e-12)
    assert_same((mean[0], cov[0]), mixture(*rebased), rtol=1e-12)
    for name in ("poe", "gpoe", "bcm", "rbcm", "grbcm"):
        mean, cov = join(name, means, covs, own)
        assert_same((mean[0], cov[0]), RULES[name](*rebased, mean_prior))
        assert not np.allclose(cov[0], RULES[name](means, covs, mean_prior)[1])


@pytest.mark.parametrize("rule", [average, barycenter])
def test_rules_without_a_prior_take_members_with_different_priors_as_they_are(rng, rule):
    own = a_prior(rng, 3, M)
    means, covs = rng.normal(size=(3, M, D)), 0.3 * own
    mean, cov = join(rule, means, covs, own)
    assert_same((mean[0], cov[0]), rule(means, covs, own.mean(axis=0)), rtol=0, atol=0)


def test_a_single_member_is_returned_unchanged_by_every_rule(rng):
    """Though it has more variance than its prior."""
    own, means = a_prior(rng, 1, M), rng.normal(size=(1, M, D))
    for name in RULES:
        mean, cov = join(name, means, 2 * own, own)
        assert_allclose(mean, means)
        assert_allclose(cov, 2 * own)
