"""What an instrument would read: against the joint distribution of all readings, inverted."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import posterior, reading_posterior, world

from emgpr.covariance import prior
from emgpr.prediction import Belief, condition, condition_on_neighbours, turned_to_readings

WORLDS = {
    "missing readings": {"missing": 0.4},
    "two outputs": {"D": 2, "Q": 2, "missing": 0.4},
    "one latent": {"Q": 1, "missing": 0.4},
    "strongly joined": {"missing": 0.4, "noise": 5.0},
    "hardly any noise": {"missing": 0.4, "noise": 1e-6},
    "full table": {},
    "independent noise": {"missing": 0.4, "correlated": False},
    "one output": {"D": 1, "Q": 1, "missing": 0.4},
}


@pytest.fixture(params=WORLDS.values(), ids=WORLDS.keys())
def made(request, rng):
    return world(rng, **({"correlated": True} | request.param))


def believed(made, x, W=None):
    W = made.W[None] if W is None else W
    before = prior(
        (W @ np.swapaxes(W, -1, -2)).mean(axis=0), np.stack([k.diag(x) for k in made.kernels])
    )
    return condition(made.seen, x, made.kernels, W, made.noise), before


def read(made, x, sample=None, W=None):
    """Mean and covariance of the readings at x."""
    belief, _, left = turned_to_readings(*believed(made, x, W), made.noise, sample)
    return belief.mean, belief.cov + left


def test_the_unread_outputs_of_a_sample_are_as_the_joint_distribution_says(made):
    """Every site of the table: what was read of it tells of the noise of what was not."""
    mean, cov = read(made, made.X, made.Y)
    expected = reading_posterior(made, made.X, np.arange(len(made.X)))
    assert_allclose(mean[0], expected[0], rtol=1e-8, atol=1e-8)
    assert_allclose(cov[0], expected[1], rtol=1e-8, atol=1e-8)


def test_another_sample_has_noise_of_its_own(made):
    """At the very sites of the table too: the signal and fresh noise, joined as noise is."""
    x = np.vstack([made.X[:4], made.X[:4] + 0.1])
    mean, cov = read(made, x)
    expected = reading_posterior(made, x, np.full(8, -1))
    assert_allclose(mean[0], expected[0], rtol=1e-8, atol=1e-8)
    assert_allclose(cov[0], expected[1], rtol=1e-8, atol=1e-8)
    signal_mean, signal_cov = posterior(made, x)
    assert_allclose(mean[0], signal_mean, rtol=1e-8, atol=1e-8)
    assert_allclose(cov[0], signal_cov + made.noise, rtol=1e-8, atol=1e-8)


def test_samples_of_the_table_and_others_may_be_asked_for_at_once(rng, made):
    x = np.vstack([made.X[:5], rng.uniform(size=(3, 2))])
    sample = np.vstack([made.Y[:5], np.full((3, made.Y.shape[1]), np.nan)])
    mean, cov = read(made, x, sample)
    expected = reading_posterior(made, x, [0, 1, 2, 3, 4, -1, -1, -1])
    assert_allclose(mean[0], expected[0], rtol=1e-8, atol=1e-8)
    assert_allclose(cov[0], expected[1], rtol=1e-8, atol=1e-8)


def test_every_member_is_turned_as_it_would_be_alone(rng):
    made = world(rng, missing=0.4, correlated=True)
    W = np.stack([made.W, rng.normal(size=made.W.shape)])
    mean, cov = read(made, made.X, made.Y, W)
    for member, own in enumerate(W):
        alone = read(replace(made, W=own), made.X, made.Y)
        assert_allclose(mean[member], alone[0][0], rtol=1e-9)
        assert_allclose(cov[member], alone[1][0], rtol=1e-9)


def test_the_prior_is_turned_like_the_belief(rng):
    """A table that says nothing of the signal leaves belief and prior the same."""
    made = world(rng, missing=0.4, correlated=True)
    _, before = believed(made, made.X)
    blank = Belief(np.zeros((1, 12, 3)), before[None])
    belief, turned, _ = turned_to_readings(blank, before, made.noise, made.Y)
    assert_allclose(belief.cov[0], turned, rtol=1e-12)
    partly = np.isnan(made.Y).any(axis=1) & ~np.isnan(made.Y).all(axis=1)
    assert partly.any()
    changed = np.abs(turned - before).max(axis=(1, 2)) > 1e-6
    assert_array_equal(changed, partly)


def test_what_was_read_is_not_what_would_be_read_again(rng):
    """Of an output that was read, another reading is predicted: its mean is the signal's."""
    made = world(rng, missing=0.4, correlated=True)
    mean, cov = read(made, made.X, made.Y)
    signal_mean, signal_cov = posterior(made, made.X)
    was_read = ~np.isnan(made.Y)
    assert_allclose(mean[0][was_read], signal_mean[was_read], rtol=1e-9, atol=1e-9)
    variances = np.einsum("mdd->md", cov[0] - signal_cov)
    expected = np.broadcast_to(np.diag(made.noise), made.Y.shape)
    assert_allclose(variances[was_read], expected[was_read], rtol=1e-9)
    assert np.all(np.abs(mean[0] - signal_mean)[~was_read & was_read.any(axis=1)[:, None]] > 1e-6)


def test_nothing_that_was_given_is_changed(rng):
    made = world(rng, missing=0.4, correlated=True)
    belief, before = believed(made, made.X)
    given = belief.mean, belief.cov, before, made.noise, made.Y
    kept = [part.copy() for part in given]
    turned_to_readings(belief, before, made.noise, made.Y)
    for part, was in zip(given, kept, strict=True):
        assert_array_equal(part, was)


def test_neighbours_serve_as_well_when_all_are_neighbours(rng):
    made = world(rng, missing=0.4, correlated=True)
    _, before = believed(made, made.X)
    near = condition_on_neighbours(made.seen, made.X, made.kernels, made.W[None], made.noise, 12)
    belief, _, left = turned_to_readings(near, before, made.noise, made.Y)
    expected = reading_posterior(made, made.X, np.arange(12))
    assert_allclose(belief.mean[0], expected[0], atol=1e-8)
    assert_allclose(belief.cov[0] + left, expected[1], atol=1e-8)
