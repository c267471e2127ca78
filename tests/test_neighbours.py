"""Orders of sites and earlier neighbours against direct computation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from emgpr import neighbours
from emgpr.neighbours import earlier_neighbours, spread_order


@pytest.mark.parametrize("N", [1, 2, 3, 40, 700, 3000])
@pytest.mark.parametrize("n", [1, 7])
def test_earlier_neighbours_are_the_nearest_of_the_sites_before(rng, N, n):
    x = rng.uniform(size=(N, 2))
    found = earlier_neighbours(x, n)
    assert found.shape == (N, min(n, N - 1))
    distances = cdist(x, x)
    for i in range(0, N, max(1, N // 50)):
        expected = np.argsort(distances[i, :i])[:n]
        assert_array_equal(np.sort(found[i][found[i] >= 0]), np.sort(expected))


def test_sites_at_the_same_location_are_neighbours_of_each_other():
    x = np.repeat(np.arange(4.0)[:, None], 300, axis=0)
    found = earlier_neighbours(x[np.random.default_rng(0).permutation(1200)], 3)
    assert (found[100:] >= 0).all()
    assert (found < np.arange(1200)[:, None]).all()


@pytest.mark.parametrize("limit", [5000, 10])
def test_an_order_is_a_permutation_that_depends_on_locations_only(rng, monkeypatch, limit):
    monkeypatch.setattr(neighbours, "MAX_MAXIMIN_SITES", limit)
    x = rng.uniform(size=(60, 2))
    order = spread_order(x)
    assert_array_equal(np.sort(order), np.arange(60))
    shuffled = rng.permutation(60)
    assert_allclose(x[shuffled][spread_order(x[shuffled])], x[order])


def test_the_pseudo_random_order_does_not_depend_on_units(rng, monkeypatch):
    monkeypatch.setattr(neighbours, "MAX_MAXIMIN_SITES", 10)
    x = rng.uniform(size=(60, 2))
    assert_array_equal(spread_order(x), spread_order(x * [1e6, 1.0] - 3.0))


def test_each_site_of_a_maximin_order_is_the_farthest_from_those_before(rng):
    x = rng.uniform(size=(50, 2))
    ordered = x[spread_order(x)]
    for i in range(1, 49):
        distances = cdist(ordered[i:], ordered[:i]).min(axis=1)
        assert_allclose(distances[0], distances.max())
