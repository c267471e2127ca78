"""Joint samples of the posterior of an ensemble."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from emgpr.ensemble import RULES, mixture
from emgpr.prediction import condition_jointly
from tests.simulated import (
    agrees,
    covariance,
    gram,
    lmc_posterior,
    noise_between,
    readings,
    which_were_read,
    world,
)

pytestmark = pytest.mark.slow
module = sys.modules[condition_jointly.__module__]
each_conditioning = pytest.mark.parametrize("conditioning", ["all", "batch", 5])


def stacked(drawn):
    """Samples (n, M, D) as (n, D·M): output 0 at every location, then output 1, …"""
    return np.swapaxes(drawn, 1, 2).reshape(len(drawn), -1)


def joint_readings(made, x, observed, *, include_noise):
    """New readings at x over all locations and outputs, by plain inversion.

    What is observed at x belongs to the samples that are predicted: outputs that were not read
    share their noise, and of those that were a repeated reading is predicted.
    """
    N, D, M = len(made.X), made.Y.shape[1], len(x)
    known = replace(made, X=np.vstack([made.X, x]), Y=np.vstack([made.Y, observed]))
    (z, other, y), (_, row) = readings(known), which_were_read(known)
    output, there = np.repeat(np.arange(D), M), np.tile(x, (D, 1))
    own = np.where(np.isnan(observed), N, N + M)[np.tile(np.arange(M), D), output]
    own = own + np.tile(np.arange(M), D)
    cross = covariance(known, there, output, z, other)
    prior = covariance(known, there, output, there, output)
    if include_noise:
        cross = cross + noise_between(known, output, own, other, row)
        prior = prior + noise_between(known, output, own, output, own)
    solved = np.linalg.solve(gram(known), np.column_stack([cross.T, y]))
    return cross @ solved[:, -1], prior - cross @ solved[:, :-1]


@pytest.mark.parametrize("include_noise", [True, False], ids=["readings", "signals"])
@pytest.mark.parametrize("known", [False, True], ids=["nothing observed", "some observed"])
@pytest.mark.parametrize("correlated", [False, True], ids=["independent", "correlated"])
def test_samples_are_joint_over_locations_and_outputs(rng, correlated, known, include_noise):
    """9 means and 45 covariances, by plain inversion: a false alarm in 30,000 runs."""
    made = world(rng, correlated=correlated, missing=0.2)
    x, observed = rng.uniform(0.3, 0.6, size=(3, 2)), np.full((3, 3), np.nan)
    if known:
        observed[0, 1], observed[2, :2] = 0.7, [-0.5, 0.9]
    drawn = lmc_posterior(made).sample(x, 10_000, rng, observed, include_noise=include_noise)
    mean, cov = joint_readings(made, x, observed, include_noise=include_noise)
    assert agrees(stacked(drawn), mean, cov)
    assert not agrees(stacked(drawn), mean, np.diag(np.diag(cov)))


def test_a_sample_at_a_training_site_is_given_what_was_read_there(rng):
    """With correlated noise: 9 means and 45 covariances, a false alarm in 30,000 runs."""
    made = world(rng, correlated=True, missing=0.3)
    made.Y[:3] = [[np.nan, 0.5, 1.0], [0.3, np.nan, np.nan], [0.1, 0.2, np.nan]]
    drawn = lmc_posterior(made).sample(made.X[:3], 10_000, rng)
    without = made.table(np.where(np.arange(12)[:, None] < 3, np.nan, made.Y))
    expected = joint_readings(without, made.X[:3], made.Y[:3], include_noise=True)
    assert agrees(stacked(drawn), *expected)


def test_an_ensemble_is_sampled_member_by_member(rng, made, W):
    """The joint mixture over 12 values: 12 means and 78 covariances, once in 19,000 runs."""
    x = rng.uniform(size=(4, 2))
    ensemble = lmc_posterior(made, W)
    parts = [condition_jointly(made.observations, x, made.ensemble(w[None])) for w in W]
    means = np.array([mean.ravel() for mean, _ in parts])
    covs = np.array([cov.reshape(12, 12) for _, cov in parts])
    mean, cov = mixture(means[:, None], covs[:, None])
    drawn = ensemble.sample(x, 10_000, rng, include_noise=False)
    assert agrees(stacked(drawn), mean[0], cov[0])


SAMPLED = {name: name for name in RULES if name != "mean"} | {"mixture itself": mixture}


@pytest.mark.parametrize("rule", SAMPLED.values(), ids=SAMPLED)
@each_conditioning
def test_samples_at_each_location_are_as_predicted(rng, made, W, rule, conditioning):
    """15 means and 30 covariances within 5 standard errors: once in 38,000 runs."""
    x_new = rng.uniform(size=(5, 2))
    ensemble = lmc_posterior(made, W, conditioning=conditioning, combine=rule)
    predicted = ensemble.predict(x_new)
    mean, cov = mixture(predicted.mean, predicted.cov)
    drawn = ensemble.sample(x_new, 3000, rng)
    for i in range(5):
        assert agrees(drawn[:, i], mean[i], cov[i])


@each_conditioning
def test_samples_at_neighbouring_locations_are_similar(rng, made, W, conditioning):
    """Signals along a path in steps of a fiftieth of the length-scale."""
    path = np.column_stack([np.linspace(0, 1, 121), np.full(121, 0.4)])
    for rule in ("mean", "rbcm"):
        ensemble = lmc_posterior(made, W, conditioning=conditioning, combine=rule)
        drawn = ensemble.sample(path, 200, rng, include_noise=False)
        drawn = drawn - drawn.mean(axis=0)
        steps = np.diff(drawn, axis=1).std(axis=0) / drawn.std(axis=0)[1:]
        assert np.median(steps) < 0.3


def doubled(means, covs, prior):
    return means.mean(axis=0), 2 * covs.mean(axis=0)


def test_where_members_agree_a_rule_changes_no_correlation(rng, made):
    """Twice the covariance of three equal members: 12 means and 78 covariances, once in 19,000."""
    x, W = rng.uniform(size=(4, 2)), np.stack([rng.normal(size=(3, 3, 3))] * 3)
    mean, cov = condition_jointly(made.observations, x, made.ensemble(W[:1]))
    drawn = lmc_posterior(made, W, combine=doubled).sample(x, 10_000, rng, include_noise=False)
    assert agrees(stacked(drawn), mean.ravel(), 2 * cov.reshape(12, 12))


def test_samples_depend_on_the_seed_alone(made, W, x_new):
    first, again, other = (
        lmc_posterior(made, W).sample(x_new, 4, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert first.shape == (4, 5, 3)
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_too_many_values_for_a_joint_sample_are_refused(rng, made, monkeypatch):
    message = (
        "A joint sample of 2001 locations × 3 outputs has 6003 values; at most 6000 are allowed. "
        "Sample fewer locations at a time."
    )
    known = lmc_posterior(made)
    with pytest.raises(ValueError, match=f"^{message}$"):
        known.sample(np.zeros((2001, 2)), 1, rng)
    monkeypatch.setattr(module, "MAX_JOINT_VALUES", 6)
    assert known.sample(made.X[:2], 1, rng).shape == (1, 2, 3)
    with pytest.raises(ValueError, match="at most 6 are"):
        known.sample(made.X[:3], 1, rng)
