"""The check that every combination rule must pass."""

import numpy as np
import pytest

from emgpr.ensemble import RULES, check_rule, checks, grbcm, mixture


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_rule_of_the_package_passes(rule):
    for seed in range(2):
        check_rule(rule, any_order=rule is not grbcm, rng=seed)


def forgets_the_mean(means, covs, prior):
    return np.zeros_like(means[0]), covs[0]


def doubles_a_single_member(means, covs, prior):
    return means[0], 2 * covs[0]


def changes_means(means, covs, prior):
    means += 1e-9
    return mixture(means, covs)


def changes_covariances(means, covs, prior):
    covs += 1e-9 * prior
    return mixture(means, covs)


def changes_the_prior(means, covs, prior):
    prior *= 2
    return mixture(means, covs)


def mixes_locations(means, covs, prior):
    mean, cov = mixture(means, covs)
    return mean, cov + (len(means) > 1) * cov.mean(axis=0)


def returns_the_first(means, covs, prior):
    return means[0], covs[0]


def divides_by_the_prior(means, covs, prior):
    with np.errstate(all="ignore"):
        share = np.mean(covs / prior, axis=0)
    return means.mean(axis=0), share * prior


def divides_the_mean(means, covs, prior):
    with np.errstate(all="ignore"):
        return means.mean(axis=0) * (prior[:, 0, :1] / prior[:, 0, :1]), covs.mean(axis=0)


def returns_variances(means, covs, prior):
    mean, cov = mixture(means, covs)
    return mean, np.einsum("mdd->md", cov)


def loses_symmetry(means, covs, prior):
    mean, cov = mixture(means, covs)
    return mean, np.triu(cov) if len(means) > 1 else cov


def subtracts_the_prior(means, covs, prior):
    return means.mean(axis=0), covs.sum(axis=0) - (len(covs) - 1) * prior


SINGLE = "^three outputs, one member: expected the prediction of that member, "
BROKEN = {
    forgets_the_mean: SINGLE + r"mean \[\[.*; got \[\[0",
    doubles_a_single_member: SINGLE + "covariance",
    changes_means: "expected means to remain unchanged; the rule modified it.$",
    changes_covariances: "expected covs to remain unchanged",
    changes_the_prior: "expected prior to remain unchanged",
    mixes_locations: (
        "^three outputs, a subset of the locations: expected the same as for all locations, cov"
    ),
    returns_the_first: "^three outputs, members in another order: expected the same result, mean",
    divides_by_the_prior: r"^an output without a signal.*: expected finite covariances; got \[\[",
    divides_the_mean: r"^no signal.*: expected finite means; got \[\[nan",
    returns_variances: (
        r"^three outputs, one member: expected mean \(4, 3\) and covariance \(4, 3, 3\); got mean "
        r"\(4, 3\) and covariance \(4, 3\).$"
    ),
    loses_symmetry: "^three outputs: expected symmetric covariances; got differences of [0-9.]+.$",
    subtracts_the_prior: "^three outputs: expected no negative variance in any direction; got -",
}


@pytest.mark.parametrize(
    ("rule", "message"), BROKEN.items(), ids=lambda given: getattr(given, "__name__", "")
)
def test_it_finds_what_is_wrong_and_says_so(rule, message):
    with pytest.raises(AssertionError, match=f"(?s){message}"):
        check_rule(rule)


def test_a_rule_may_depend_on_the_order_if_that_is_said():
    check_rule(returns_the_first, any_order=False)


def test_small_deviations_count_as_rounding():
    """A relative 1e-7 does, 1e-5 does not; and 1e-10 of asymmetry does, 1e-7 does not."""

    def perturbed(by, skew):
        def rule(means, covs, prior):
            mean, cov = mixture(means, covs)
            return mean * (1 + by), cov + skew * np.abs(cov).max() * np.triu(np.ones(cov.shape))

        return rule

    check_rule(perturbed(1e-7, 1e-10))
    with pytest.raises(AssertionError, match="that member"):
        check_rule(perturbed(1e-5, 0.0))
    with pytest.raises(AssertionError, match="symmetric"):
        check_rule(perturbed(0.0, 1e-7))


def test_rules_are_checked_in_all_kinds_of_situations():
    """With any number of outputs, and where prior or predictions are singular."""
    cases = checks._cases(np.random.default_rng(0))
    ranks = {
        "three outputs": (3, 3),
        "one output": (1, 1),
        "three outputs of one latent process": (1, 1),
        "an output without a signal": (2, 2),
        "members with different weights": (1, 3),
        "hardly any variance left": (3, 3),
        "no readings": (3, 3),
        "a member without variance": (3, 3),
        "no signal": (0, 0),
    }
    assert list(cases) == list(ranks)
    for case, (means, covs, prior) in cases.items():
        D = 1 if case == "one output" else 3
        assert (means.shape, covs.shape, prior.shape) == ((3, 4, D), (3, 4, D, D), (4, D, D))
        found = (np.linalg.matrix_rank(part, hermitian=True).max() for part in (covs, prior))
        assert tuple(found) == ranks[case]
    three, tiny = cases["three outputs"], cases["hardly any variance left"]
    assert np.all(np.linalg.eigvalsh(three[2] - three[1]) > -1e-9)  # less than the prior
    assert 0 < np.abs(tiny[1]).max() < 1e-11 * np.abs(tiny[2]).max()
    assert np.array_equal(cases["no readings"][1][1], cases["no readings"][2])
    certain = cases["a member without variance"][1]
    assert not certain[0].any()
    assert certain[1:].any(axis=(1, 2, 3)).all()
    covs, prior = cases["members with different weights"][1:]
    leading = np.linalg.eigh(covs)[1][..., -1]
    similar = np.abs(np.einsum("lmd,kmd->lkm", leading, leading))
    assert 0.7 < np.median(similar) < 1 - 1e-6  # nearly the same line
