"""The Wasserstein barycenter of the members."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import sqrtm
from scipy.stats import ortho_group

from emgpr.ensemble import barycenter, barycenters
from tests.ensemble.members import D, L, M, a_prior, assert_same, given_readings


@pytest.fixture
def members(rng):
    prior = a_prior(rng)
    return *given_readings(rng, prior)[:2], prior


def test_the_mean_is_that_of_the_means(members):
    assert_array_equal(barycenter(*members)[0], members[0].mean(axis=0))


def test_covariances_that_commute_have_the_mean_of_their_square_roots(rng):
    U = ortho_group(D).rvs(M, random_state=rng)
    deviations = rng.uniform(0.0, 2.0, size=(L, M, D))
    covs = (U * deviations[..., None, :] ** 2) @ np.swapaxes(U, -1, -2)
    expected = (U * deviations.mean(axis=0)[:, None, :] ** 2) @ np.swapaxes(U, -1, -2)
    assert_allclose(barycenter(np.zeros((L, M, D)), covs, covs[0])[1], expected, atol=1e-12)


def test_it_solves_the_fixed_point_equation(members):
    means, covs, prior = members
    for S, C in zip(barycenter(means, covs, prior)[1], covs.swapaxes(0, 1), strict=True):
        root = sqrtm(S)
        assert_allclose(np.mean([sqrtm(root @ c @ root) for c in C], axis=0), S, atol=1e-10)


def test_a_rotation_or_scale_of_the_outputs_rotates_or_scales_it(members, rng):
    means, covs, prior = members
    A = 1e-6 * ortho_group(D).rvs(random_state=rng)
    mean, cov = barycenter(means, covs, prior)
    moved = barycenter(means @ A.T, A @ covs @ A.T, prior)
    assert_same(moved, (mean @ A.T, A @ cov @ A.T), rtol=1e-6, atol=1e-20)


def test_members_that_agree_have_the_barycenter_of_one(members):
    means, covs, prior = members
    same = (np.stack([part[0]] * L) for part in (means, covs))
    assert_same(barycenter(*same, prior), (means[0], covs[0]))


def test_singular_members_on_lines_have_a_barycenter_between_them():
    """Two outputs of one latent process with weights w and v: the line of their mean."""
    w, v = np.array([1.0, 0.5]), np.array([0.8, 0.7])
    covs = np.array([[np.outer(w, w)], [np.outer(v, v)]])
    _, cov = barycenter(np.zeros((2, 1, 2)), covs, covs[0])
    between = (w + v) / 2
    assert_allclose(cov[0], np.outer(between, between), atol=1e-6)


def test_without_variance_there_is_none():
    assert_array_equal(
        barycenter(np.zeros((2, 1, 3)), np.zeros((2, 1, 3, 3)), np.eye(3)[None])[1], 0
    )


def test_the_iteration_is_limited(members, monkeypatch):
    assert (barycenters.MAX_CHANGE, barycenters.MAX_ITER) == (1e-9, 200)
    converged = barycenter(*members)[1]
    monkeypatch.setattr(barycenters, "MAX_ITER", 1)
    once = barycenter(*members)[1]
    assert not np.allclose(once, converged, rtol=1e-7)
    assert_allclose(once, converged, atol=0.02 * np.abs(converged).max())


def test_locations_that_have_converged_are_left_alone(members, monkeypatch):
    means, covs, prior = members
    covs[:, 0] = np.eye(D)
    sizes, real = [], barycenters._iterate

    def noted(root, halves):
        sizes.append(len(root))
        return real(root, halves)

    monkeypatch.setattr(barycenters, "_iterate", noted)
    assert_allclose(barycenter(means, covs, prior)[1][0], np.eye(D), atol=1e-12)
    assert sizes[:2] == [M, M - 1]
    assert np.all(np.diff(sizes) <= 0)
    assert len(sizes) < 60
