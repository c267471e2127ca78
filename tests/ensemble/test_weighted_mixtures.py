"""Mixtures with weights for each location and output, compared with draws and direct sums."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.ensemble import mixture, replace_unused, replace_unused_outputs, weighted_mixture
from tests.simulated import agrees

C, M, D = 3, 2, 4


@pytest.fixture
def parts(rng):
    """Means, covariances, and weights that differ between locations and outputs."""
    roots = rng.normal(size=(C, M, D, D))
    weights = np.moveaxis(rng.dirichlet(np.ones(C), size=(M, D)), -1, 0)
    return rng.normal(size=(C, M, D)), roots @ np.swapaxes(roots, -1, -2), weights


def draws(rng, means, covs, weights, selection, n=20_000):
    """Draw a component for each selection, and values of each component independently."""
    values = np.stack(
        [rng.multivariate_normal(m, c, size=n) for m, c in zip(means, covs, strict=True)]
    )
    drawn = np.empty((n, D))
    for group in np.unique(selection):
        outputs = np.flatnonzero(selection == group)
        chosen = rng.choice(C, size=n, p=weights[:, outputs[0]])
        drawn[:, outputs] = values[chosen, np.arange(n)][:, outputs]
    return drawn


@pytest.mark.parametrize("selection", [[0, 1, 2, 3], [0, 1, 1, 2], [5, 5, 5, 5]])
def test_moments_are_those_of_draws(parts, selection, rng):
    """4 means and 10 covariances at 2 locations, 5 standard errors: false alarm in 60,000 runs."""
    means, covs, weights = parts
    selection = np.array(selection)
    first = [np.flatnonzero(selection == s)[0] for s in selection]
    weights = weights[..., first]
    mean, cov = weighted_mixture(means, covs, weights, selection)
    for i in range(M):
        drawn = draws(rng, means[:, i], covs[:, i], weights[:, i], selection)
        assert agrees(drawn, mean[i], cov[i])


def test_by_default_every_output_has_a_selection_of_its_own(parts):
    one, two = weighted_mixture(*parts), weighted_mixture(*parts, np.arange(D))
    for ours, theirs in zip(one, two, strict=True):
        assert_array_equal(ours, theirs)


def test_equal_weights_with_one_selection_are_an_ordinary_mixture(parts):
    means, covs, _ = parts
    found = weighted_mixture(means, covs, np.full((C, M, D), 1 / C), np.zeros(D, int))
    for ours, theirs in zip(found, mixture(means, covs), strict=True):
        assert_allclose(ours, theirs, rtol=1e-12)


def test_covariances_are_positive_semidefinite(parts, rng):
    means, covs, weights = parts
    for _ in range(20):
        weights = np.moveaxis(rng.dirichlet(np.full(C, 0.1), size=(M, D)), -1, 0)
        assert np.linalg.eigvalsh(weighted_mixture(10 * means, covs, weights)[1]).min() > -1e-9


def test_components_without_weight_change_nothing(parts):
    """Whatever their values are, even if they would overflow."""
    means, covs, weights = parts
    weights = weights.copy()
    weights[0, :, 1] += weights[2, :, 1]
    weights[2, :, 1] = 0.0
    expected = weighted_mixture(means, covs, weights)
    wild_means, wild_covs = means.copy(), covs.copy()
    wild_means[2, :, 1] = 1e200
    wild_covs[2, :, 1] = wild_covs[2, :, :, 1] = 1e300
    replaced = replace_unused_outputs(wild_means, wild_covs, weights)
    found = weighted_mixture(*replaced, weights)
    for ours, theirs in zip(found, expected, strict=True):
        assert_allclose(ours, theirs, rtol=1e-12)
    assert np.linalg.eigvalsh(replaced[1]).min() > -1e-9


def test_all_components_are_kept_if_they_have_weights(parts):
    means, covs, weights = parts
    assert replace_unused(means, weights) is means
    kept = replace_unused_outputs(means, covs, weights)
    assert kept[0] is means
    assert kept[1] is covs


def test_unused_values_are_those_of_the_likeliest_component(rng):
    values, weights = rng.normal(size=(3, 2)), np.array([[0.0, 0.2], [0.4, 0.8], [0.6, 0.0]])
    found = replace_unused(values, weights)
    assert_array_equal(found[0], [values[2, 0], values[0, 1]])
    assert_array_equal(found[2], [values[2, 0], values[1, 1]])
