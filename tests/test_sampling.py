"""Batches in which short distances occur as well as long ones."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.spatial import KDTree

from emgpr.sampling import clustered_batches


def median_spacing(x):
    return np.median(KDTree(x).query(x, k=2)[0][:, 1])


@pytest.mark.parametrize("units", [(1.0, 1.0), (1e-4, 1e6)])
def test_a_small_batch_has_neighbours_and_covers_the_region(rng, units):
    x = rng.uniform(size=(20_000, 2)) * units
    for sites in clustered_batches(x, 100, rng, wanted=3):
        own = x[sites] / units
        # At random the spacing would be ten times that of all sites.
        assert median_spacing(own) < 2 * median_spacing(x / units)
        halves = [own[(own[:, 0] < 0.5) == left][:, 1] < 0.5 for left in (True, False)]
        assert all(0.1 < half.mean() < 0.9 for half in halves)  # some in every quarter


def test_repeated_sites_are_divided_like_others(rng):
    x = np.repeat(rng.uniform(size=(5, 2)), 20, axis=0)
    batches = clustered_batches(x, 7, rng)
    assert_array_equal(np.sort(np.concatenate(batches)), np.arange(100))
    assert np.ptp([len(sites) for sites in batches]) <= 1
