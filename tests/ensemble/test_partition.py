"""Every site goes to exactly one member."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from emgpr.ensemble import PARTITIONS, split_sites


def sites(n, P=2):
    return np.random.default_rng(n).uniform(size=(n, P))


@settings(deadline=None)
@given(
    n_sites=st.integers(1, 300),
    batch_size=st.integers(1, 320),
    partition=st.sampled_from(PARTITIONS),
)
def test_parts_cover_every_site_once_and_differ_by_at_most_one(n_sites, batch_size, partition):
    parts = split_sites(sites(n_sites), batch_size, partition, np.random.default_rng(0))
    assert_array_equal(np.sort(np.concatenate(parts)), np.arange(n_sites))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    assert len(parts) == max(1, n_sites // batch_size)
    assert min(sizes) >= min(batch_size, n_sites)  # no part is smaller than was asked for


def test_no_batch_size_is_no_ensemble():
    (everything,) = split_sites(sites(17), None)
    assert_array_equal(everything, np.arange(17))


def test_strided_parts_are_the_papers(rng):
    """L = 39 batches of 9 from 359 sites: batch k takes k, L+k, 2L+k, …; leftovers go round."""
    parts = split_sites(sites(359), 9, "strided", rng)
    assert len(parts) == 39
    for k, part in enumerate(parts):
        assert_array_equal(part[:9], k + 39 * np.arange(9))
    assert [len(part) for part in parts] == [10] * 8 + [9] * 31


@pytest.mark.parametrize("partition", ["random", "stratified"])
def test_parts_that_are_drawn_depend_on_the_seed_alone(partition):
    def parts(seed):
        rng = np.random.default_rng(seed)
        return np.concatenate(split_sites(sites(100), 10, partition, rng))

    assert_array_equal(parts(1), parts(1))
    assert not np.array_equal(parts(1), parts(2))
    strided = np.concatenate(split_sites(sites(100), 10, "strided"))
    assert not np.array_equal(parts(1), strided)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_first_parts_are_what_they_are_among_all(partition):
    def parts(wanted):
        return split_sites(sites(90), 15, partition, np.random.default_rng(4), wanted)

    for some, whole in zip(parts(2), parts(None)[:2], strict=True):
        assert_array_equal(some, whole)
