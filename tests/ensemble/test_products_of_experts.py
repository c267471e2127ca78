"""Products of experts and committee machines against formulas written in another way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.ensemble import RULES, bcm, gpoe, grbcm, join, poe, rbcm, rebase
from tests.ensemble.members import D, L, M, a_prior, assert_same, given_readings

PRODUCTS = ("poe", "gpoe", "bcm", "rbcm", "grbcm")


@pytest.fixture
def members(rng):
    prior = a_prior(rng)
    return *given_readings(rng, prior)[:2], prior


def test_with_one_output_the_rules_are_those_of_textbooks(rng):
    prior = a_prior(rng, D=1)
    means, covs, *_ = given_readings(rng, prior)
    covs[1:] = 1 / (1 / covs[1:] + 1 / covs[0])  # member 0 has the fewest data, as grbcm assumes
    m, v, v0 = means[..., 0], covs[..., 0, 0], prior[:, 0, 0]
    beta = 0.5 * np.log(v0 / v)
    beta_c = 0.5 * np.log(v[0] / v[1:])
    beta_c[0] = 1.0
    weights = {  # of each member, and the part of the prior in the precision
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
        assert_same((mean[:, 0], cov[:, 0, 0]), expected)


def test_a_product_of_experts_is_the_product_of_their_densities(members):
    """By Kalman updates with one member after another, which invert sums and not members."""
    means, covs, prior = members
    mean, cov = means[0], covs[0]
    for m, C in zip(means[1:], covs[1:], strict=True):
        gain = cov @ np.linalg.inv(cov + C)
        mean = mean + np.einsum("mij,mj->mi", gain, m - mean)
        cov = cov - gain @ cov
    assert_same(poe(means, covs, prior), (mean, cov))
    assert_same(gpoe(means, covs, prior), (mean, L * cov))


def test_a_committee_of_members_with_independent_data_is_exact(rng):
    prior = a_prior(rng)
    means, covs, J, y = given_readings(rng, prior)
    cov = np.linalg.inv(np.linalg.inv(prior) + J.sum(0))
    assert_same(bcm(means, covs, prior), (np.einsum("mij,lmjk,lmk->mi", cov, J, y), cov))


def test_the_robust_committee_weighs_members_by_log_determinants(members):
    means, covs, prior = members
    beta = 0.5 * (np.linalg.slogdet(prior)[1] - np.linalg.slogdet(covs)[1])[..., None, None]
    precisions = beta * np.linalg.inv(covs)
    cov = np.linalg.inv(precisions.sum(0) + (1 - beta.sum(0)) * np.linalg.inv(prior))
    mean = np.einsum("mij,lmjk,lmk->mi", cov, precisions, means)
    assert_same(rbcm(means, covs, prior), (mean, cov))


def test_the_communication_expert_is_the_prior_of_the_others(members):
    means, covs, prior = members
    assert_same(grbcm(means[:2], covs[:2], prior), (means[1], covs[1]))
    order = [0, 1, 3, 2]
    assert_same(grbcm(means[order], covs[order], prior), grbcm(means, covs, prior))
    assert_same(grbcm(means[[0, 0, 0]], covs[[0, 0, 0]], prior), (means[0], covs[0]))


def test_a_communication_expert_without_variance_decides():
    covs = np.array([0.0, 0.5, 0.5]).reshape(3, 1, 1, 1)
    mean, cov = grbcm(np.array([1.0, 2.0, 2.0]).reshape(3, 1, 1), covs, np.ones((1, 1, 1)))
    assert_allclose(mean, 1.0, atol=1e-9)
    assert_allclose(cov, 1e-10)  # of the prior


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_single_member_is_copied(name):
    means, covs = np.ones((1, 2, 1)), np.full((1, 2, 1, 1), 3.0)
    mean, cov = RULES[name](means, covs, np.ones((2, 1, 1)))
    assert_array_equal(mean, means[0])
    assert_array_equal(cov, covs[0])
    mean[:], cov[:] = 7.0, 7.0
    assert (means[0, 0, 0], covs[0, 0, 0, 0]) == (1.0, 3.0)


@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("rule", [gpoe, bcm, rbcm])
def test_far_from_the_data_the_prior_remains(rule, rank, rng):
    root = rng.normal(size=(M, D, rank))
    prior = root @ np.swapaxes(root, -1, -2)
    result = rule(np.zeros((L, M, D)), np.stack([prior] * L), prior)
    assert_same(result, (np.zeros((M, D)), prior))


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_linear_map_of_the_outputs_maps_the_result(name, members, rng):
    means, covs, prior = members
    A = rng.normal(size=(D, D)) + 3 * np.eye(D)
    mean, cov = RULES[name](means, covs, prior)
    mapped = RULES[name](means @ A.T, A @ covs @ A.T, A @ prior @ A.T)
    assert_same(mapped, (mean @ A.T, A @ cov @ A.T), rtol=1e-6)


@pytest.mark.parametrize("name", PRODUCTS)
def test_outputs_of_one_latent_process_are_combined_like_that_process(name, rng):
    """f = w z, so that the prior has rank one, in units that are far apart."""
    prior = a_prior(rng, D=1)
    means, covs, *_ = given_readings(rng, prior)
    w = np.array([[1.0], [-1e-3], [50.0]])
    mean, cov = RULES[name](means, covs, prior)
    result = RULES[name](means @ w.T, w @ covs @ w.T, w @ prior @ w.T)
    assert_same(result, (mean @ w.T, w @ cov @ w.T), rtol=1e-6, atol=1e-12)


def test_directions_with_hardly_any_prior_variance_are_left_out():
    """Relative to outputs of unit variance: 1e-10 of the sum of both outputs is the limit."""
    for variance, used in [(1e-9, True), (5e-11, False)]:
        rotation = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
        prior = (rotation * [2.0, variance]) @ rotation.T
        scale = np.diag([1.0, 1e4])
        prior, cov = scale @ prior @ scale, 0.5 * scale @ prior @ scale
        _, combined = poe(np.zeros((2, 1, 2)), np.stack([cov[None]] * 2), prior[None])
        across = np.linalg.inv(scale) @ [1.0, -1.0] / np.sqrt(2)
        found = across @ combined[0] @ across
        assert_allclose(found, variance / 4 if used else 0.0, rtol=1e-4, atol=1e-15)


def test_an_output_without_a_signal_stays_at_zero():
    prior = np.diag([4.0, 0.0])[None]
    covs = np.stack([np.diag([1.0, 0.0])[None]] * 2)
    mean, cov = poe(np.array([[[1.0, 0.0]], [[3.0, 0.0]]]), covs, prior)
    assert_allclose(mean, [[2.0, 0.0]])
    assert_allclose(cov, [np.diag([0.5, 0.0])], atol=1e-15)


def test_a_member_without_variance_has_a_ten_billionth_of_the_prior():
    none, prior = np.zeros((2, 1, 1, 1)), np.full((1, 1, 1), 4.0)
    means = np.array([1.0, 3.0]).reshape(2, 1, 1)
    gain = 0.5 * np.log(1e10)
    expected = {
        poe: 4e-10 / 2,
        gpoe: 4e-10,
        bcm: 4 / (2e10 - 1),
        rbcm: 4 / (2 * gain * 1e10 + 1 - 2 * gain),
    }
    for rule, variance in expected.items():
        mean, cov = rule(means, none, prior)
        assert_allclose(mean, 2.0, rtol=1e-8)
        assert_allclose(cov, variance, rtol=1e-8)


def test_experts_may_have_more_variance_than_the_prior_and_a_committee_may_not(rng):
    prior, means = a_prior(rng), rng.normal(size=(2, M, D))
    wide = np.stack([4 * prior] * 2)
    assert_allclose(gpoe(means, wide, prior)[1], 4 * prior)
    assert_allclose(poe(means, wide, prior)[1], 2 * prior)
    for rule in (bcm, rbcm):
        assert_allclose(rule(means, wide, prior)[1], prior)
    assert_allclose(rbcm(means, wide, prior)[0], 0.0, atol=1e-12)  # no gain, no weight


@pytest.mark.parametrize("rule", [bcm, rbcm])
def test_a_committee_has_at_most_the_variance_of_its_prior_in_every_direction(rule, members):
    means, covs, prior = members
    cov = rule(means, covs + 2 * prior, prior)[1]
    assert np.linalg.eigvalsh(prior - cov).min() > -1e-9
    assert np.linalg.eigvalsh(cov).min() > 0


def test_rebasing_is_conditioning_with_the_other_prior(rng):
    own = a_prior(rng, L, M)
    prior = own.mean(axis=0)
    root = rng.normal(size=(L, M, D, D))
    J, y = root @ np.swapaxes(root, -1, -2), rng.normal(size=(L, M, D))

    def conditioned(start):
        covs = np.linalg.inv(np.linalg.inv(start) + J)
        return np.einsum("lmij,lmjk,lmk->lmi", covs, J, y), covs

    assert_same(rebase(*conditioned(own), own, prior), conditioned(prior))


def test_a_member_with_more_variance_than_its_own_prior_is_rebased_to_the_prior(rng):
    own, prior = np.full((1, 1, 1, 1), 2.0), np.full((1, 1, 1), 5.0)
    mean, cov = rebase(np.ones((1, 1, 1)), 3 * own, own, prior)
    assert_allclose(cov, 5.0)
    assert_allclose(mean, 2.5)  # C C_l⁻¹ m with C_l held at the own prior


@pytest.mark.parametrize(("ratio", "informative"), [(1.5e-6, True), (0.8e-6, False)])
def test_what_data_say_in_directions_without_own_prior_variance_does_not_count(ratio, informative):
    own = np.diag([1.0, ratio])[None, None]
    covs = 0.5 * own
    _, cov = rebase(np.zeros((1, 1, 2)), covs, own, np.eye(2)[None])
    # From P = ratio to C = ratio / 2 the data gave the precision 1 / ratio.
    expected = 1 / (1 + 1 / ratio) if informative else 1.0
    assert_allclose(np.diagonal(cov[0, 0]), [0.5, expected], rtol=0.01)


def test_a_certain_member_stays_certain_when_rebased():
    one = np.ones((1, 1, 1, 1))
    mean, cov = rebase(one[0], 0 * one, one, 2 * one[0])
    assert_allclose(mean, 1.0, rtol=1e-9)
    assert_allclose(cov, 1 / (1e10 - 0.5), rtol=1e-7)


@pytest.mark.parametrize("name", PRODUCTS)
def test_members_with_slightly_different_weights_do_not_meet_at_zero(name, rng):
    """One latent process, weights one per cent apart: the result is that of equal weights."""
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
        assert_same((part[0] for part in far), (np.zeros((M, D)), lines.mean(axis=0)))
