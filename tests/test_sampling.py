"""Batches that see short distances as well as long ones, and neighbours of some of many sites."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import KDTree

from emgpr import sampling
from emgpr.sampling import in_clusters, with_nearest


def spacing(x):
    return np.median(KDTree(x).query(x, k=2)[0][:, 1])


@pytest.mark.parametrize("units", [(1.0, 1.0), (1e-4, 1e6)])
def test_a_batch_of_few_sees_neighbours_and_the_whole_region(rng, units):
    x = rng.uniform(size=(20_000, 2)) * units
    for part in in_clusters(x, 100, rng, wanted=3):
        own = x[part] / units
        assert spacing(own) < 2 * spacing(x / units)  # at random it is ten times as long
        corners = [own[(own[:, 0] < 0.5) == a][:, 1] < 0.5 for a in (True, False)]
        assert all(0.1 < half.mean() < 0.9 for half in corners)  # some in every quarter


def test_sites_that_repeat_go_to_one_batch_each(rng):
    x = np.repeat(rng.uniform(size=(5, 2)), 20, axis=0)
    parts = in_clusters(x, 7, rng)
    assert_array_equal(np.sort(np.concatenate(parts)), np.arange(100))


def test_of_many_sites_some_tell_how_far_neighbours_are(rng, monkeypatch):
    x = rng.uniform(size=(3000, 2))
    every, nearest = with_nearest(x)
    monkeypatch.setattr(sampling, "MANY", 500)
    some, near = with_nearest(x)
    assert len(some) == 500
    tree = KDTree(x)
    assert_allclose(np.linalg.norm(some - near, axis=1), tree.query(some, k=2)[0][:, 1])
    assert_allclose(spacing(x), np.median(np.linalg.norm(every - nearest, axis=1)))


@pytest.mark.parametrize("times", [2, 30])
def test_the_nearest_other_site_is_no_repetition(rng, monkeypatch, times):
    monkeypatch.setattr(sampling, "MANY", 100)
    sites = rng.uniform(size=(40, 1))
    some, near = with_nearest(np.repeat(sites, times, axis=0)[: 40 * times])
    assert np.all(np.abs(some - near) > 0)


def test_one_site_has_no_other():
    assert len(with_nearest(np.zeros((4, 2)))[0]) == 0
