"""Rules that join the members' beliefs, against formulas written another way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import sqrtm
from scipy.stats import ortho_group

from emgpr.ensemble import (
    RULES,
    barycenter,
    bcm,
    check_rule,
    gpoe,
    grbcm,
    join,
    mixture,
    poe,
    rbcm,
    rebase,
)

L, M, D = 4, 5, 3
each_rule = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)


def posterior(rng, prior, n=L):
    """Beliefs after a noisy reading of the signals by each of n members, from the prior."""
    inverse, D = np.linalg.inv(prior), prior.shape[-1]
    heard = rng.normal(size=(n, *prior.shape))
    J = heard @ np.swapaxes(heard, -1, -2)
    covs = np.linalg.inv(inverse + J)
    y = rng.normal(size=(n, len(prior), D))
    return np.einsum("lmij,lmjk,lmk->lmi", covs, J, y), covs, J, y


def a_prior(rng, M=M, D=D):
    root = rng.normal(size=(M, D, D))
    return root @ np.swapaxes(root, -1, -2) + 0.1 * np.eye(D)


@pytest.fixture
def members(rng):
    prior = a_prior(rng)
    return *posterior(rng, prior)[:2], prior


def same(ours, theirs, **tolerance):
    for a, b in zip(ours, theirs, strict=True):
        assert_allclose(a, b, **{"rtol": 1e-7, "atol": 1e-9, **tolerance})


@each_rule
def test_every_rule_keeps_the_contract(rule):
    for seed in range(5):
        check_rule(rule, any_order=rule is not grbcm, rng=seed)


def test_with_one_output_rules_are_the_textbooks(rng):
    prior = a_prior(rng, D=1)
    means, covs, *_ = posterior(rng, prior)
    covs[1:] = 1 / (1 / covs[1:] + 1 / covs[0])  # member 0 knows the least, as grbcm has it
    m, v, v0 = means[..., 0], covs[..., 0, 0], prior[:, 0, 0]
    beta = 0.5 * np.log(v0 / v)
    beta_c = 0.5 * np.log(v[0] / v[1:])
    beta_c[0] = 1.0
    weights = {  # of each member, and the prior's part of the precision
        "poe": (np.ones_like(v), 0.0),
        "gpoe": (np.full_like(v, 1 / L), 0.0),
        "bcm": (np.ones_like(v), (1 - L) / v0),
        "rbcm": (beta, (1 - beta.sum(0)) / v0),
        "grbcm": (np.vstack([1 - beta_c.sum(0), beta_c]), 0.0),
    }
    for name, (b, rest) in weights.items():
        precision = (b / v).sum(0) + rest
        expected = (b * m / v).sum(0) / precision, 1 / precision
        mean, cov = RULES[name](means, covs, prior)
        same((mean[:, 0], cov[:, 0, 0]), expected)
    assert_allclose(barycenter(means, covs, prior)[1].ravel(), np.sqrt(v).mean(0) ** 2)


def test_a_product_of_experts_is_the_product_of_their_densities(members):
    """Kalman updates with one member after another, which invert sums, not members."""
    means, covs, prior = members
    mean, cov = means[0], covs[0]
    for m, C in zip(means[1:], covs[1:], strict=True):
        gain = cov @ np.linalg.inv(cov + C)
        mean = mean + np.einsum("mij,mj->mi", gain, m - mean)
        cov = cov - gain @ cov
    same(poe(means, covs, prior), (mean, cov))
    same(gpoe(means, covs, prior), (mean, L * cov))


def test_a_committee_of_members_with_data_of_their_own_is_exact(rng):
    prior = a_prior(rng)
    means, covs, J, y = posterior(rng, prior)
    cov = np.linalg.inv(np.linalg.inv(prior) + J.sum(0))
    mean = np.einsum("mij,lmjk,lmk->mi", cov, J, y)
    same(bcm(means, covs, prior), (mean, cov))


def test_the_robust_committee_weighs_by_log_determinants(members):
    means, covs, prior = members
    beta = 0.5 * (np.linalg.slogdet(prior)[1] - np.linalg.slogdet(covs)[1])[..., None, None]
    precision = (beta * np.linalg.inv(covs)).sum(0) + (1 - beta.sum(0)) * np.linalg.inv(prior)
    cov = np.linalg.inv(precision)
    same(
        rbcm(means, covs, prior),
        (np.einsum("mij,lmjk,lmk->mi", cov, beta * np.linalg.inv(covs), means), cov),
    )


def test_the_communication_expert_is_a_prior_to_the_others(members, rng):
    means, covs, prior = members
    same(grbcm(means[:2], covs[:2], prior), (means[1], covs[1]))
    order = [0, 1, 3, 2]
    same(grbcm(means[order], covs[order], prior), grbcm(means, covs, prior))
    same(grbcm(means[[0, 0, 0]], covs[[0, 0, 0]], prior), (means[0], covs[0]))


def test_the_barycenter_of_covariances_that_commute_has_the_mean_of_their_roots(rng):
    U = ortho_group(D).rvs(M, random_state=rng)
    deviations = rng.uniform(0.0, 2.0, size=(L, M, D))
    covs = (U * deviations[..., None, :] ** 2) @ np.swapaxes(U, -1, -2)
    expected = (U * deviations.mean(axis=0)[:, None, :] ** 2) @ np.swapaxes(U, -1, -2)
    assert_allclose(barycenter(np.zeros((L, M, D)), covs, covs[0])[1], expected, atol=1e-12)


def test_the_barycenter_is_where_the_transport_to_the_members_cancels(members):
    means, covs, prior = members
    for S, C in zip(barycenter(means, covs, prior)[1], covs.swapaxes(0, 1), strict=True):
        root = sqrtm(S)
        assert_allclose(np.mean([sqrtm(root @ c @ root) for c in C], axis=0), S, rtol=1e-7)


@pytest.mark.parametrize("rule", [mixture, gpoe, barycenter])
def test_members_that_agree_are_as_sure_as_one(rule, members):
    means, covs, prior = members
    same(rule(*(np.stack([part[0]] * L) for part in (means, covs)), prior), (means[0], covs[0]))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("rule", [mixture, gpoe, bcm, rbcm, barycenter])
def test_far_from_the_data_the_prior_remains(rule, rank, rng):
    root = rng.normal(size=(M, D, rank))
    prior = root @ np.swapaxes(root, -1, -2)
    same(rule(np.zeros((L, M, D)), np.stack([prior] * L), prior), (np.zeros((M, D)), prior))


@pytest.mark.parametrize("rule", [mixture, poe, gpoe, bcm, rbcm, grbcm, barycenter])
def test_mixing_the_outputs_mixes_the_answer(rule, members, rng):
    """Any invertible mixture, or any rotation for the barycenter, whose distance has units."""
    means, covs, prior = members
    A = (
        ortho_group(D).rvs(random_state=rng)
        if rule is barycenter
        else rng.normal(size=(D, D)) + 3 * np.eye(D)
    )
    mean, cov = rule(means, covs, prior)
    mixed = rule(means @ A.T, A @ covs @ A.T, A @ prior @ A.T)
    same(mixed, (mean @ A.T, A @ cov @ A.T), rtol=1e-6)


@each_rule
def test_outputs_of_one_latent_are_joined_as_that_latent(rule, rng):
    """Three outputs that hear one latent, f = w z: joined as z is, though prior has rank one."""
    prior = a_prior(rng, D=1)
    means, covs, *_ = posterior(rng, prior)
    w = np.array([[1.0], [-1e-3], [50.0]])
    mean, cov = rule(means, covs, prior)
    same(
        rule(means @ w.T, w @ covs @ w.T, w @ prior @ w.T),
        (mean @ w.T, w @ cov @ w.T),
        rtol=1e-6,
        atol=1e-6 if rule is barycenter else 1e-12,
    )


@pytest.mark.parametrize("rule", [bcm, rbcm])
def test_a_committee_is_never_less_sure_than_its_prior(rule, members):
    means, covs, prior = members
    cov = rule(means, covs + 2 * prior, prior)[1]
    assert np.linalg.eigvalsh(prior - cov).min() > -1e-9
    assert np.linalg.eigvalsh(cov).min() > 0


def test_rebasing_is_learning_from_the_other_prior(rng):
    own = np.stack([a_prior(rng) for _ in range(L)])
    prior = own.mean(axis=0)
    heard = rng.normal(size=(L, M, D, D))
    J, y = heard @ np.swapaxes(heard, -1, -2), rng.normal(size=(L, M, D))

    def learned(start):
        covs = np.linalg.inv(np.linalg.inv(start) + J)
        return np.einsum("lmij,lmjk,lmk->lmi", covs, J, y), covs

    same(rebase(*learned(own), own, prior), learned(prior))


@pytest.mark.parametrize("name", ["poe", "gpoe", "bcm", "rbcm", "grbcm"])
def test_members_with_lines_of_their_own_do_not_meet_at_zero(name, rng):
    """One latent, weights a per cent apart: the answer is that of weights that are the same."""
    z, w = rng.normal(1.0, 0.1, size=(L, M)), np.array([1.0, 0.8, 0.5])
    W = w + 0.01 * rng.normal(size=(L, 1, D))
    lines = np.broadcast_to(W[..., :, None] * W[..., None, :], (L, M, D, D))
    mean, cov = join(name, z[..., None] * W, 0.1 * lines, lines)
    one = np.ones((L, M, 1, 1))
    z_mean, z_cov = RULES[name](z[..., None], 0.1 * one, one[0])
    assert_allclose(mean[0], z_mean * w, rtol=0.1)
    assert_allclose(cov[0], z_cov * np.outer(w, w), rtol=0.1)
    if name != "poe":  # far from the data, the mean of the members' priors
        far = join(name, np.zeros((L, M, D)), lines.copy(), lines)
        same((part[0] for part in far), (np.zeros((M, D)), lines.mean(axis=0)))


def test_join_keeps_the_members_of_a_mixture_and_makes_one_of_the_others(members):
    means, covs, prior = members
    for rule in ("mean", mixture):
        same(join(rule, means, covs, prior), (means, covs))
    for rule in ("rbcm", rbcm):
        same((part[0] for part in join(rule, means, covs, prior)), rbcm(means, covs, prior))
    own = np.stack([prior] * L)
    same(join("rbcm", means, covs, own), join("rbcm", means, covs, prior), rtol=1e-5)
    with pytest.raises(ValueError, match=r"no rule 'median'; expected one of 'mean', 'average'"):
        join("median", means, covs, prior)


def forgets_the_mean(means, covs, prior):
    return np.zeros_like(means[0]), covs[0]


def changes_what_it_is_given(means, covs, prior):
    covs += 1e-9 * prior
    return mixture(means, covs)


def takes_sites_together(means, covs, prior):
    mean, cov = mixture(means, covs)
    return mean, cov + (len(means) > 1) * cov.mean(axis=0)


def follows_the_first(means, covs, prior):
    return means[0], covs[0]


def divides_by_the_prior(means, covs, prior):
    with np.errstate(all="ignore"):
        share = np.mean(covs / prior, axis=0)
    return means.mean(axis=0), share * prior


def gives_variances_alone(means, covs, prior):
    mean, cov = mixture(means, covs)
    return mean, np.einsum("mdd->md", cov)


def loses_symmetry(means, covs, prior):
    mean, cov = mixture(means, covs)
    return mean, np.triu(cov) if len(means) > 1 else cov


def subtracts_the_prior(means, covs, prior):
    return means.mean(axis=0), covs.sum(axis=0) - (len(covs) - 1) * prior


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (forgets_the_mean, "one member: expected that member's belief, mean"),
        (changes_what_it_is_given, "expected covs left as they were"),
        (takes_sites_together, "some of the sites: expected what all gave there"),
        (follows_the_first, "members in another order: expected the same, mean"),
        (divides_by_the_prior, "expected finite covariances"),
        (gives_variances_alone, r"covariance \(4, 3, 3\); came mean \(4, 3\)"),
        (loses_symmetry, "expected symmetric covariances"),
        (subtracts_the_prior, "expected no negative variance"),
    ],
)
def test_the_contract_finds_what_is_wrong(broken, complaint):
    with pytest.raises(AssertionError, match=complaint):
        check_rule(broken)


def test_a_rule_may_say_that_order_counts():
    check_rule(follows_the_first, any_order=False)
