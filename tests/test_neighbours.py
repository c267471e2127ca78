"""Orders of sites and earlier neighbours against direct computation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from emgpr import neighbours
from emgpr.neighbours import (
    SurroundingSites,
    compass,
    earlier_neighbours,
    kd_tree,
    spread_order,
)


@pytest.mark.parametrize("N", [1, 2, 3, 40, 700, 3000])
@pytest.mark.parametrize("n", [1, 7])
@pytest.mark.parametrize("n_sorted", [0, 10**6])
def test_earlier_neighbours_are_the_nearest_of_the_sites_before(rng, monkeypatch, N, n, n_sorted):
    monkeypatch.setattr(neighbours, "MIN_SORTED_QUERIES", n_sorted)
    x = rng.uniform(size=(N, 2))
    found = earlier_neighbours(x, n)
    assert found.shape == (N, min(n, N - 1))
    distances = cdist(x, x)
    for i in range(0, N, max(1, N // 50)):
        expected = np.argsort(distances[i, :i])[:n]
        assert_array_equal(np.sort(found[i][found[i] >= 0]), np.sort(expected))


def test_neighbours_of_few_sites_are_those_of_all(rng, monkeypatch):
    """With few rows, the subsets of sites that are searched grow faster."""
    x = rng.uniform(size=(5000, 2))
    every = earlier_neighbours(x, 6)
    few = np.sort(rng.choice(5000, 100, replace=False))
    assert_array_equal(earlier_neighbours(x, 6, few), every[few])
    monkeypatch.setattr(neighbours, "ROWS_PER_PART", 64)
    assert_array_equal(earlier_neighbours(x, 6, workers=3), every)


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


# --- sites around a location


def surrounding(x, at, n):
    return SurroundingSites(kd_tree(x), spread_order(x)).search(at, n)


@pytest.mark.parametrize("P", [1, 2, 3, 4])
def test_the_sites_around_a_location_are_distinct_and_include_the_nearest(rng, P):
    x, at = rng.uniform(size=(2000, P)), rng.uniform(size=(40, P))
    found = surrounding(x, at, 16)
    assert found.shape == (40, 16)
    assert all(len(set(row)) == 16 for row in found.tolist())
    # At least half of the sites are the nearest ones, apart from those chosen by direction.
    nearest = np.argsort(cdist(at, x), axis=1)[:, :8]
    assert all(set(near) <= set(row) for near, row in zip(nearest, found, strict=True))


@pytest.mark.parametrize(("P", "n"), [(1, 4), (2, 16), (2, 8), (3, 16)])
def test_inside_a_gap_there_are_sites_in_every_sector(rng, P, n):
    """Near the edge of a ball without sites, the nearest sites lie on one side."""
    x = rng.uniform(-1, 1, size=(20000, P))
    x = x[(x**2).sum(axis=1) > 0.4**2]
    at = np.zeros((1, P))
    at[0, 0] = 0.35
    directions = compass(P)

    def sectors(sites):
        return set(np.argmax((x[sites] - at) @ directions.T, axis=1).tolist())

    nearest = np.argsort(cdist(at, x)[0])[:n]
    assert len(sectors(nearest)) < len(directions)
    assert len(sectors(surrounding(x, at, n)[0])) == len(directions)


def test_sites_in_a_sector_are_the_nearest_ones_if_the_gap_is_small(rng):
    x, at, directions = rng.uniform(size=(500, 2)), np.array([[0.5, 0.5]]), compass(2)
    found = surrounding(x, at, 16)[0]
    sector = np.argmax((x - at) @ directions.T, axis=1)
    for s in range(8):
        members = np.flatnonzero(sector == s)
        assert members[np.argmin(cdist(at, x[members])[0])] in found


def test_the_sites_found_do_not_depend_on_the_order_of_the_rows(rng):
    x, at = rng.uniform(size=(3000, 2)), rng.uniform(-0.2, 1.2, size=(20, 2))
    shuffled = rng.permutation(3000)
    assert_array_equal(shuffled[surrounding(x[shuffled], at, 16)], surrounding(x, at, 16))


def test_if_there_are_few_sites_all_are_found(rng):
    x = rng.uniform(size=(5, 2))
    assert_array_equal(np.sort(surrounding(x, x[:2], 16)), np.tile(np.arange(5), (2, 1)))
    assert_array_equal(surrounding(x[:1], x, 16), np.zeros((5, 1)))
    assert surrounding(x, np.empty((0, 2)), 3).shape == (0, 3)


def test_many_sites_at_a_location_do_not_hide_those_around_it(rng):
    """Half of the sites found are the nearest ones; the others are elsewhere."""
    x = np.concatenate([np.full((1000, 2), 0.5), rng.uniform(size=(1000, 2))])
    found = surrounding(x, np.array([[0.5, 0.5]]), 16)[0]
    assert len(set(found.tolist())) == 16
    assert (found >= 1000).sum() == 8
