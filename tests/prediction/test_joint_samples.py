"""Joint distributions of the signals at many locations, and samples from Gaussians."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.prediction import (
    condition,
    condition_jointly,
    location_blocks,
    sample_each_location,
    sample_gaussian,
    transport_map,
)
from tests.simulated import agrees, covariance, gram, readings, world


def by_inversion(made, x):
    """Mean and covariance of output 0 at every location, then of output 1, …"""
    D, M = made.Y.shape[1], len(x)
    (z, other, y), output, there = readings(made), np.repeat(np.arange(D), M), np.tile(x, (D, 1))
    cross = covariance(made, there, output, z, other)
    prior = covariance(made, there, output, there, output)
    solved = np.linalg.solve(gram(made), np.column_stack([cross.T, y]))
    return cross @ solved[:, -1], prior - cross @ solved[:, :-1]


@pytest.mark.parametrize(("missing", "correlated"), [(0.0, False), (0.4, True)])
def test_the_joint_distribution_is_that_of_plain_inversion(rng, missing, correlated):
    made = world(rng, missing=missing, correlated=correlated)
    x = rng.uniform(size=(5, 2))
    mean, cov = condition_jointly(made.observations, x, made.model)
    expected_mean, expected_cov = by_inversion(made, x)
    assert mean.shape == (3, 5)
    assert cov.shape == (3, 5, 3, 5)
    assert_allclose(mean.ravel(), expected_mean, atol=1e-9)
    assert_allclose(cov.reshape(15, 15), expected_cov, atol=1e-9)
    alone = condition(made.observations, x, made.model)
    assert_allclose(mean.T, alone.mean[0], atol=1e-10)
    assert_allclose(location_blocks(cov.reshape(15, 15), 5), alone.cov[0], atol=1e-10)


def test_without_readings_it_is_the_prior(rng):
    made = world(rng)
    x = rng.uniform(size=(4, 2))
    empty = made.table(np.full_like(made.Y, np.nan)).observations
    mean, cov = condition_jointly(empty, x, made.model)
    output, there = np.repeat(np.arange(3), 4), np.tile(x, (3, 1))
    prior = covariance(made, there, output, there, output)
    assert_array_equal(mean, 0)
    assert_allclose(cov.reshape(12, 12), prior, atol=1e-12)


def test_outputs_without_a_common_latent_are_independent(rng):
    made = world(rng, k=1)
    made = replace(made, W=made.W * np.eye(3)[:, :, None])
    x = rng.uniform(size=(4, 2))
    mean, cov = condition_jointly(made.observations, x, made.model)
    assert_array_equal(cov[0, :, 1], 0)
    alone = made.table(np.where([False, True, False], made.Y, np.nan)).observations
    other_mean, other_cov = condition_jointly(alone, x, made.model)
    assert_allclose(mean[1], other_mean[1], atol=1e-12)
    assert_allclose(cov[1, :, 1], other_cov[1, :, 1], atol=1e-12)


def test_an_output_without_weights_is_zero(rng):
    made = world(rng)
    made = replace(made, W=made.W * np.array([1.0, 0.0, 1.0])[:, None])
    mean, cov = condition_jointly(made.observations, made.X, made.model)
    assert_array_equal(mean[1], 0)
    assert_array_equal(cov[1], 0)
    assert np.all(np.einsum("imim->im", cov)[[0, 2]] > 0)


@pytest.mark.parametrize("correlated", [False, True])
def test_on_a_device_it_is_the_same(rng, device, correlated):
    made = world(rng, missing=0.3, correlated=correlated)
    given = made.observations, rng.uniform(size=(5, 2)), made.model
    for here, there in zip(
        condition_jointly(*given), condition_jointly(*given, device=device), strict=True
    ):
        assert isinstance(there, np.ndarray)
        assert_allclose(there, here, rtol=1e-8, atol=1e-9)


def test_samples_have_the_covariance(rng):
    """5 means and 15 covariances within 5 standard errors: a false alarm in 90,000 runs."""
    root = rng.normal(size=(5, 5))
    cov = root @ root.T
    drawn = sample_gaussian(cov, 20_000, rng)
    assert drawn.shape == (20_000, 5)
    assert agrees(drawn, np.zeros(5), cov)


def test_samples_at_each_location_are_independent_between_locations(rng):
    """4 means and 10 covariances within 5 standard errors: a false alarm in 120,000 runs."""
    root = rng.normal(size=(2, 2, 2))
    covs = root @ np.swapaxes(root, 1, 2)
    drawn = sample_each_location(covs, 20_000, rng)
    assert drawn.shape == (20_000, 2, 2)
    joint = np.zeros((4, 4))
    joint[:2, :2], joint[2:, 2:] = covs
    assert agrees(drawn.reshape(-1, 4), np.zeros(4), joint)


def test_a_singular_covariance_has_samples_on_its_line(rng):
    line = np.array([1.0, -2.0, 0.5])
    drawn = sample_gaussian(np.outer(line, line), 50, rng)
    assert_allclose(drawn, np.outer(drawn @ line / (line @ line), line), atol=1e-6)
    assert drawn.std(axis=0).min() > 0.1
    assert_array_equal(sample_gaussian(np.zeros((3, 3)), 4, rng), np.zeros((4, 3)))


def test_samples_depend_on_the_seed_alone():
    first, again, other = (
        sample_gaussian(np.eye(3), 4, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_transport_map_turns_one_covariance_into_another(rng):
    roots = rng.normal(size=(2, 4, 3, 3))
    S, C = roots @ np.swapaxes(roots, -1, -2)
    A = transport_map(S, C)
    assert_allclose(A @ S @ A, C, atol=1e-9)
    assert_allclose(A, np.swapaxes(A, 1, 2), atol=1e-12)
    assert np.linalg.eigvalsh(A).min() > 0  # the optimal one
    assert_allclose(transport_map(S, S), np.tile(np.eye(3), (4, 1, 1)), atol=1e-7)


def test_the_transport_map_of_a_singular_covariance_stays_on_its_line():
    line = np.array([1.0, 2.0])
    S = np.outer(line, line)[None]
    A = transport_map(S, 9 * S)
    assert_allclose(A[0] @ line, 3 * line)
    assert_allclose(A[0] @ [2.0, -1.0], 0.0, atol=1e-9)
    assert_array_equal(transport_map(0 * S, S), 0 * S)


def test_location_blocks_are_the_covariances_of_the_outputs_at_each_location():
    cov = np.arange(36.0).reshape(6, 6)  # two outputs at three locations
    assert_array_equal(location_blocks(cov, 3)[1], [[cov[1, 1], cov[1, 4]], [cov[4, 1], cov[4, 4]]])
