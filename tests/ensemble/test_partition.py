"""The partition of the sites into batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from emgpr.ensemble import PARTITIONS, split_sites


def sites(n, P=2):
    return np.random.default_rng(n).uniform(size=(n, P))


@settings(deadline=None, max_examples=60)
@given(
    n_sites=st.integers(1, 300),
    batch_size=st.integers(1, 320),
    partition=st.sampled_from(PARTITIONS),
)
def test_batches_hold_every_site_once_and_differ_in_size_by_at_most_one(
    n_sites, batch_size, partition
):
    batches = split_sites(sites(n_sites), batch_size, partition, np.random.default_rng(0))
    assert_array_equal(np.sort(np.concatenate(batches)), np.arange(n_sites))
    sizes = [len(batch) for batch in batches]
    assert max(sizes) - min(sizes) <= 1
    assert len(batches) == max(1, n_sites // batch_size)
    assert min(sizes) >= min(batch_size, n_sites)


@pytest.mark.parametrize("batch_size", [None, 10, 17, 100])
def test_one_batch_holds_all_sites_in_order(batch_size):
    (everything,) = split_sites(sites(17), batch_size, "random")
    assert_array_equal(everything, np.arange(17))


def test_strided_batches_are_those_of_the_paper(rng):
    """L = 39 batches of 9 from 359 sites: batch k has k, L+k, 2L+k, …, and the rest go round."""
    batches = split_sites(sites(359), 9, "strided", rng)
    assert len(batches) == 39
    for k, batch in enumerate(batches):
        assert_array_equal(batch[:9], k + 39 * np.arange(9))
    assert [len(batch) for batch in batches] == [10] * 8 + [9] * 31


@pytest.mark.parametrize("partition", ["random", "stratified"])
def test_random_batches_depend_on_the_seed_alone(partition):
    def batches(seed):
        rng = np.random.default_rng(seed)
        return np.concatenate(split_sites(sites(100), 10, partition, rng))

    assert_array_equal(batches(1), batches(1))
    assert not np.array_equal(batches(1), batches(2))
    strided = np.concatenate(split_sites(sites(100), 10, "strided"))
    assert not np.array_equal(batches(1), strided)


def test_by_default_batches_are_clusters_of_neighbours_and_differ_every_time():
    """Of sites on a line, most have their neighbour in the same batch."""
    x = np.arange(240.0)[:, None]
    first = split_sites(x, 60)
    neighbours = [np.mean(np.diff(batch) == 1) for batch in first]
    assert min(neighbours) > 0.7
    assert np.mean(np.diff(split_sites(x, 60, "random")[0]) == 1) < 0.5
    for batch in first:  # sites are in order
        assert np.all(np.diff(batch) > 0)
    others = [np.concatenate(split_sites(x, 60)) for _ in range(3)]
    assert not all(np.array_equal(np.concatenate(first), other) for other in others)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_first_batches_are_the_same_among_fewer(partition):
    def batches(n):
        return split_sites(sites(90), 15, partition, np.random.default_rng(4), n)

    assert len(batches(2)) == 2
    for some, whole in zip(batches(2), batches(None)[:2], strict=True):
        assert_array_equal(some, whole)
