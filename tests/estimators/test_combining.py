"""The members' beliefs joined, by every rule, through the estimator."""

from copy import copy
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import smooth_table
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR
from emgpr.covariance import prior
from emgpr.covariance.dense import coregionalization
from emgpr.ensemble import RULES, join, mixture
from emgpr.prediction import condition

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
QUICK = {
    "kernel": RBF(0.4, "fixed") + WhiteKernel(0.1, "fixed"),
    "max_iter": 8,
    "n_restarts": 1,
    "random_state": 0,
}
RNG = np.random.default_rng(12)
X, Y = smooth_table(RNG, N=27)
Y[3:9, 0] = np.nan
X_NEW = np.vstack([RNG.uniform(size=(4, 2)), X[:1], [[50.0, 50.0]]])  # one read, one far away


def surest(means, covs, prior):
    """The belief of the member with the least doubt."""
    best = np.trace(covs, axis1=2, axis2=3).argmin(axis=0)
    site = np.arange(len(best))
    return means[best, site], covs[best, site]


ALL_RULES = {name: name for name in RULES} | {"a function": surest}
each_rule = pytest.mark.parametrize("rule", ALL_RULES.values(), ids=ALL_RULES)
each_way = pytest.mark.parametrize("conditioning", ["all", "batch"])


@cache
def learned(conditioning, batch_size):
    return EMGPR.paper(**QUICK, conditioning=conditioning, batch_size=batch_size).fit(X, Y)


def fitted(rule, conditioning="all", batch_size=9):
    """The rule has no part in learning, so models are learned once."""
    return copy(learned(conditioning, batch_size)).set_params(combine=rule)


def members(model, x):
    """What each believes of the signals at x, from all readings or from those of its batch."""
    first, *_ = batches = model.batches_
    for W, batch in zip(model.weights_, batches, strict=True):
        sites = np.union1d(first, batch) if model.combine == "grbcm" else batch
        known = model._seen if model.conditioning == "all" else model._seen.at(sites)
        belief = condition(known, x, model.kernels_, W[None], model._noise)
        yield belief.mean[0], belief.cov[0]


@each_way
@each_rule
def test_a_belief_is_finite_and_no_direction_has_negative_variance(rule, conditioning):
    model = fitted(rule, conditioning)
    assert len(model.weights_) == 3
    some = np.tile([1.0, np.nan, 0.0], (6, 1))
    for asked in ({}, {"include_noise": False, "observed": some}):
        mean, cov = model.predict(X_NEW, return_cov=True, **asked)
        assert np.isfinite(mean).all()
        unit = cov / np.outer(*[np.nanstd(Y, axis=0)] * 2)
        assert np.linalg.eigvalsh(unit).min() > -1e-9
    same, std = model.predict(X_NEW, return_std=True, **asked)
    assert_allclose(mean, same)
    assert np.all(std >= 0)
    assert_allclose(std**2, np.einsum("mdd->md", cov), rtol=1e-6)


@each_way
@each_rule
def test_it_is_the_rule_of_the_members_beliefs_with_noise_added_after(rule, conditioning):
    model = fitted(rule, conditioning)
    means, covs = map(np.array, zip(*members(model, X_NEW), strict=True))
    diagonals = np.stack([kernel.diag(X_NEW) for kernel in model.kernels_])
    joined = join(rule, means, covs, prior(coregionalization(model.weights_), diagonals))
    mean, cov = mixture(*joined)
    scale, shift = model._scale.scale, model._scale.shift
    told = model.predict(X_NEW, return_cov=True, statistic="mean")
    assert_allclose(told[0], mean * scale + shift, rtol=1e-6)
    expected = (cov + np.diag(model.noise_)) * np.outer(scale, scale)
    assert_allclose(told[1], expected, rtol=1e-6, atol=1e-9 * scale.min() ** 2)


@each_way
def test_the_mean_has_the_moments_and_the_median_of_the_mixture(conditioning):
    model = fitted("mean", conditioning)
    means, covs = map(np.array, zip(*members(model, X_NEW), strict=True))
    scale, shift = model._scale.scale, model._scale.shift
    mean, std = model.predict(X_NEW, return_std=True, statistic="mean")
    assert_allclose(mean, means.mean(axis=0) * scale + shift)
    inside = np.einsum("lmdd->lmd", covs).mean(axis=0) + model.noise_
    assert_allclose(std, np.sqrt(inside + means.var(axis=0)) * scale)
    low, high = means.min(axis=0) * scale + shift, means.max(axis=0) * scale + shift
    median = model.predict(X_NEW)
    slack = 1e-9 * scale
    assert np.all((low - slack <= median) & (median <= high + slack))


def test_the_rules_differ():
    """But for the average, which has the moments of the mean and no more."""
    rules = [rule for rule in RULES if rule != "average"]
    told = [fitted(rule, "batch").predict(X_NEW[:4], return_std=True) for rule in rules]
    stds = np.array([std for _, std in told]) / np.nanstd(Y, axis=0)
    apart = np.abs(stds[:, None] - stds).max(axis=(2, 3))[np.triu_indices(len(stds), 1)]
    assert apart.min() > 1e-3


@each_way
def test_one_member_has_the_last_word_whatever_the_rule(conditioning):
    model = fitted("mean", conditioning, batch_size=None)
    expected = model.predict(X_NEW, return_cov=True)
    for rule in ALL_RULES.values():
        model.set_params(combine=rule)
        mean, cov = model.predict(X_NEW, return_cov=True)
        assert_allclose(mean, expected[0], rtol=1e-6)
        assert_allclose(cov, expected[1], rtol=1e-5, atol=1e-9)
        assert_allclose(model.predict(X_NEW), expected[0], rtol=1e-6)


@pytest.mark.parametrize("rule", ["median", None, True, 3])
def test_an_unknown_rule_is_refused_with_the_choices(rule):
    choices = ", ".join(f"'{name}'" for name in RULES)
    with pytest.raises(ValueError, match=f"combine={rule!r}; expected one of {choices}"):
        EMGPR.paper(**QUICK, combine=rule).fit(X, Y)


@pytest.mark.parametrize("rule", ["rbcm", surest])
def test_the_rule_has_no_part_in_learning(rule):
    model = EMGPR.paper(**QUICK, batch_size=9, combine=rule).fit(X, Y)
    told = model.predict(X_NEW, return_std=True)
    assert_allclose(told, fitted(rule).predict(X_NEW, return_std=True))


def test_a_function_of_the_users_own_is_given_members_and_prior():
    given = []

    def first(means, covs, prior):
        given.append((means.shape, covs.shape, prior.shape))
        return means[0], covs[0]

    model = fitted(first)
    mean, std = model.predict(X_NEW, return_std=True)
    assert given == [((3, 6, 3), (3, 6, 3, 3), (6, 3, 3))]
    assert mean.shape == std.shape == (6, 3)


@pytest.mark.parametrize("rule", ["mean", "gpoe", "bcm", "rbcm", "barycenter"])
def test_far_from_all_readings_what_was_known_before_remains(rule):
    """Of "poe" and "grbcm" that is known not to hold with members who differ."""
    model = fitted(rule)
    mean, cov = model.predict(X_NEW[-1:], return_cov=True, include_noise=False)
    scale = model._scale.scale
    assert_allclose(mean[0], model._scale.shift, atol=1e-9 * scale.max())
    if rule != "barycenter":
        before = model.coregionalization_.sum(axis=0)
        assert_allclose(cov[0] / np.outer(scale, scale), before, rtol=1e-6, atol=1e-9)


def test_the_first_batch_speaks_to_every_member_of_a_generalised_committee():
    committee = fitted("grbcm", "batch")
    assert [len(committee._batch(i)) for i in range(3)] == [9, 18, 18]
    assert set(committee.batches_[0]) < set(committee._batch(2))
    robust = fitted("rbcm", "batch")
    assert_array_equal(robust._batch(2), robust.batches_[2])
    checked = committee.cross_validate()
    assert np.isfinite(checked.summary().to_numpy()).all()


@each_rule
def test_cross_validation_runs_with_every_rule(rule):
    summary = fitted(rule).cross_validate().summary()
    assert summary["n"].tolist() == [21, 27, 27]
    assert np.all(summary["smse"] < 1.5)
