"""Signals of many sites at once, against plain inversion, and draws of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import covariance, gram, readings, world

from emgpr.observations import Observations
from emgpr.prediction import condition, condition_jointly, draw

FIVE = 5  # standard errors


def by_inversion(made, x):
    """Mean and covariance of output 0 at every site of x, then of output 1, …"""
    D, M = made.Y.shape[1], len(x)
    (z, other, y), task, there = readings(made), np.repeat(np.arange(D), M), np.tile(x, (D, 1))
    cross = covariance(made, there, task, z, other)
    prior = covariance(made, there, task, there, task)
    solved = np.linalg.solve(gram(made), np.column_stack([cross.T, y]))
    return cross @ solved[:, -1], prior - cross @ solved[:, :-1]


@pytest.mark.parametrize("correlated", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_it_is_plain_inversion_over_all_sites_and_outputs(rng, missing, correlated):
    made = world(rng, missing=missing, correlated=correlated)
    x = rng.uniform(size=(5, 2))
    mean, cov = condition_jointly(made.seen, x, made.kernels, made.W, made.noise)
    expected_mean, expected_cov = by_inversion(made, x)
    assert mean.shape == (3, 5)
    assert cov.shape == (3, 5, 3, 5)
    assert_allclose(mean.ravel(), expected_mean, atol=1e-9)
    assert_allclose(cov.reshape(15, 15), expected_cov, atol=1e-9)


def test_each_site_is_believed_as_it_is_alone(rng):
    made = world(rng, missing=0.3)
    x = rng.uniform(size=(4, 2))
    mean, cov = condition_jointly(made.seen, x, made.kernels, made.W, made.noise)
    alone = condition(made.seen, x, made.kernels, made.W[None], made.noise)
    assert_allclose(mean.T, alone.mean[0], atol=1e-10)
    assert_allclose(np.einsum("imjm->mij", cov), alone.cov[0], atol=1e-10)


def test_before_any_reading_there_is_the_prior(rng):
    made = world(rng)
    x = rng.uniform(size=(4, 2))
    nothing = Observations.from_table(made.X, np.full_like(made.Y, np.nan))
    mean, cov = condition_jointly(nothing, x, made.kernels, made.W, made.noise)
    task, there = np.repeat(np.arange(3), 4), np.tile(x, (3, 1))
    assert_array_equal(mean, 0)
    assert_allclose(cov.reshape(12, 12), covariance(made, there, task, there, task), atol=1e-12)


def test_outputs_that_no_latent_joins_say_nothing_of_each_other(rng):
    made = world(rng, k=1)
    W = made.W * np.eye(3)[:, :, None]
    x = rng.uniform(size=(4, 2))
    mean, cov = condition_jointly(made.seen, x, made.kernels, W, made.noise)
    assert_array_equal(cov[0, :, 1], 0)
    alone = made.table(np.where([False, True, False], made.Y, np.nan)).seen
    other_mean, other_cov = condition_jointly(alone, x, made.kernels, W, made.noise)
    assert_allclose(mean[1], other_mean[1], atol=1e-12)
    assert_allclose(cov[1, :, 1], other_cov[1, :, 1], atol=1e-12)


def test_an_output_that_hears_nothing_is_zero(rng):
    made = world(rng)
    W = made.W * np.array([1.0, 0.0, 1.0])[:, None]
    mean, cov = condition_jointly(made.seen, made.X, made.kernels, W, made.noise)
    assert_array_equal(mean[1], 0)
    assert_array_equal(cov[1], 0)
    assert np.all(np.einsum("imim->im", cov)[[0, 2]] > 0)


def test_draws_have_the_mean_and_the_covariance(rng):
    """Twenty numbers within 5 standard errors: a false alarm in 90,000 runs."""
    n, root = 20_000, rng.normal(size=(5, 5))
    mean, cov = rng.normal(size=5), root @ root.T
    drawn = draw(mean, cov, n, rng)
    assert drawn.shape == (n, 5)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < FIVE * np.sqrt(np.diag(cov) / n))
    error = np.sqrt((np.outer(np.diag(cov), np.diag(cov)) + cov**2) / n)
    apart = drawn - mean
    assert np.all(np.abs(apart.T @ apart / n - cov) < FIVE * error)


def test_a_singular_covariance_draws_from_its_line(rng):
    line = np.array([1.0, -2.0, 0.5])
    drawn = draw(np.ones(3), np.outer(line, line), 50, rng) - 1
    assert_allclose(drawn, np.outer(drawn @ line / (line @ line), line), atol=1e-6)
    assert drawn.std(axis=0).min() > 0.1
    assert_array_equal(draw(np.ones(3), np.zeros((3, 3)), 4, rng), np.ones((4, 3)))


def test_a_seed_gives_the_same_draws():
    given = np.zeros(3), np.eye(3), 4
    first, again, other = (draw(*given, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)
