"""From signals to readings, against the joint distribution of all readings, inverted."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.prediction import GaussianMixture, condition, condition_on_sample, noise_given_sample
from tests.simulated import posterior, reading_posterior, world

WORLDS = {
    "missing readings": {"missing": 0.4},
    "much noise": {"missing": 0.4, "noise": 5.0, "D": 2, "Q": 1},
    "hardly any noise": {"missing": 0.4, "noise": 1e-6},
    "independent noise": {"missing": 0.4, "correlated": False},
    "one output": {"D": 1, "Q": 1, "missing": 0.4},
    "a complete table": {},
}


@pytest.fixture(params=WORLDS.values(), ids=WORLDS.keys())
def made(request, rng):
    return world(rng, **({"correlated": True} | request.param))


@pytest.fixture
def one(rng):
    return world(rng, missing=0.4, correlated=True)


def read(made, x, sample=None, W=None):
    """Mean and covariance of new readings at x."""
    model = made.model if W is None else made.ensemble(W)
    signals = condition(made.observations, x, model)
    given, _, noise = noise_given_sample(signals, model.prior_covariance(x), made.noise, sample)
    return given.mean, given.cov + noise


def check(result, expected):
    for ours, theirs in zip(result, expected, strict=True):
        assert_allclose(ours[0], theirs, rtol=1e-8, atol=1e-8)


def test_unread_outputs_of_a_sample_follow_the_joint_distribution(made):
    """At every site of the table: what was read there informs about the noise of the rest."""
    expected = reading_posterior(made, made.X, np.arange(len(made.X)))
    check(read(made, made.X, made.Y), expected)


def test_a_new_sample_has_its_own_noise(made):
    """At the sites of the table too: the signal and fresh noise, correlated as noise is."""
    x = np.vstack([made.X[:4], made.X[:4] + 0.1])
    result = read(made, x)
    check(result, reading_posterior(made, x, np.full(8, -1)))
    mean, cov = posterior(made, x)
    check(result, (mean, cov + made.noise))


def test_samples_of_the_table_and_new_ones_can_be_predicted_together(rng, one):
    x = np.vstack([one.X[:5], rng.uniform(size=(3, 2))])
    sample = np.vstack([one.Y[:5], np.full((3, 3), np.nan)])
    check(read(one, x, sample), reading_posterior(one, x, [0, 1, 2, 3, 4, -1, -1, -1]))


def test_every_member_is_given_the_sample_as_if_alone(rng, one):
    W = np.stack([one.W, rng.normal(size=one.W.shape)])
    mean, cov = read(one, one.X, one.Y, W)
    for member, own in enumerate(W):
        alone = read(replace(one, W=own), one.X, one.Y)
        assert_allclose(mean[member], alone[0][0], rtol=1e-9)
        assert_allclose(cov[member], alone[1][0], rtol=1e-9)


def test_the_prior_is_transformed_like_the_posterior(one):
    """Readings that say nothing about the signal leave both the same."""
    prior = one.model.prior_covariance(one.X)
    blank = GaussianMixture(np.zeros((1, 12, 3)), prior)
    given, transformed, _ = noise_given_sample(blank, prior, one.noise, one.Y)
    assert_allclose(given.cov, transformed, rtol=1e-12)
    partly = np.isnan(one.Y).any(axis=1) & ~np.isnan(one.Y).all(axis=1)
    assert partly.any()
    changed = np.abs(transformed - prior)[0].max(axis=(1, 2)) > 1e-6
    assert_array_equal(changed, partly)


def test_a_repeated_reading_has_the_mean_of_the_signal_and_its_own_noise(one):
    mean, cov = read(one, one.X, one.Y)
    signal_mean, signal_cov = posterior(one, one.X)
    was_read = ~np.isnan(one.Y)
    assert_allclose(mean[0][was_read], signal_mean[was_read], rtol=1e-9, atol=1e-9)
    variances = np.einsum("mdd->md", cov[0] - signal_cov)
    expected = np.broadcast_to(np.diag(one.noise), one.Y.shape)
    assert_allclose(variances[was_read], expected[was_read], rtol=1e-9)
    informed = ~was_read & was_read.any(axis=1)[:, None]
    assert np.all(np.abs(mean[0] - signal_mean)[informed] > 1e-6)


@pytest.mark.parametrize("sample", ["none", "nothing read", "independent noise"])
def test_without_correlation_or_sample_signals_stay_as_they_are(one, sample):
    noise = np.diag(np.diag(one.noise)) if sample == "independent noise" else one.noise
    values = {"none": None, "nothing read": np.full_like(one.Y, np.nan)}.get(sample, one.Y)
    signals, prior = condition(one.observations, one.X, one.model), np.ones((12, 3, 3))
    given, same, remaining = noise_given_sample(signals, prior, noise, values)
    assert given is signals
    assert same is prior
    assert_array_equal(remaining, np.tile(noise, (12, 1, 1)))


def test_arguments_are_not_changed(one):
    signals = condition(one.observations, one.X, one.model)
    prior = one.model.prior_covariance(one.X)
    given = signals.mean, signals.cov, prior, one.noise, one.Y
    before = [part.copy() for part in given]
    noise_given_sample(signals, prior, one.noise, one.Y)
    condition_on_sample(signals, one.noise, one.Y)
    for part, was in zip(given, before, strict=True):
        assert_array_equal(part, was)


def test_conditioning_signals_on_a_sample_is_conditioning_on_its_readings(rng, made):
    """New readings at new locations, each of which informs its own location only."""
    x = rng.uniform(size=(5, 2))
    sample = np.where(rng.uniform(size=(5, made.Y.shape[1])) < 0.5, 0.7, np.nan)
    signals = condition(made.observations, x, made.model)
    given = condition_on_sample(signals, made.noise, sample)
    for i in range(5):
        later = replace(made, X=np.vstack([made.X, x[[i]]]), Y=np.vstack([made.Y, sample[[i]]]))
        mean, cov = posterior(later, x[[i]])
        assert_allclose(given.mean[0, i], mean[0], rtol=1e-5, atol=1e-6)
        assert_allclose(given.cov[0, i], cov[0], rtol=1e-5, atol=1e-6)
