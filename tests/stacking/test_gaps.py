"""Gaps made among readings: each reading is in one of them, and they are compact."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from emgpr.stacking import gap_folds, split_into_blocks
from emgpr.stacking.gaps import DEFAULT_BLOCKS, MAX_BLOCKS, MIN_BLOCKS, N_FOLDS


@pytest.mark.parametrize("P", [1, 2, 3])
@pytest.mark.parametrize("n_blocks", [1, 2, 5, 9])
def test_blocks_contain_every_location_once_in_about_equal_numbers(n_blocks, P, rng):
    blocks = split_into_blocks(rng.uniform(size=(50, P)), n_blocks)
    assert len(blocks) == n_blocks
    assert_array_equal(np.sort(np.concatenate(blocks)), np.arange(50))
    sizes = [len(block) for block in blocks]
    assert max(sizes) - min(sizes) <= 2


def test_blocks_are_compact(rng):
    """Locations of a block are close together, in an elongated region too."""
    for shape in ([1.0, 1.0], [10.0, 1.0]):
        x = rng.uniform(size=(90, 2)) * shape
        spread = np.mean([np.ptp(x[block], axis=0).max() for block in split_into_blocks(x, 9)])
        assert spread < 0.5 * np.ptp(x, axis=0).max()


def test_blocks_do_not_depend_on_the_order_of_locations(rng):
    x, order = rng.uniform(size=(40, 2)), rng.permutation(40)
    plain = {frozenset(block) for block in split_into_blocks(x, 6)}
    shuffled = {frozenset(order[block]) for block in split_into_blocks(x[order], 6)}
    assert shuffled == plain


def test_there_are_no_more_blocks_than_locations():
    assert [block.tolist() for block in split_into_blocks(np.zeros((2, 1)), 5)] == [[0], [1]]
    assert split_into_blocks(np.zeros((0, 1)), 5) == []


@pytest.mark.parametrize("n_missing", [0, 1, 10, 25, 1000])
def test_folds_are_gaps_of_the_size_of_those_in_the_table(n_missing):
    """Along a line, gaps can be counted; at most a third of the readings is in a fold."""
    x = np.arange(90.0)[:, None]
    folds = gap_folds(x, n_missing)
    assert_array_equal(np.unique(folds), np.arange(N_FOLDS))
    n_blocks = 1 + np.count_nonzero(np.diff(folds))
    if not n_missing:
        assert n_blocks == DEFAULT_BLOCKS
    else:
        assert n_blocks == np.clip(round(90 / n_missing), MIN_BLOCKS, MAX_BLOCKS)


def test_every_fold_is_surrounded_by_readings_of_other_folds(rng):
    """Most left-out readings are farther from the next reading than readings are, but not much."""
    x = rng.uniform(size=(200, 2))
    folds = gap_folds(x)
    distance = np.linalg.norm(x[:, None] - x, axis=2)
    np.fill_diagonal(distance, np.inf)
    near = np.median(distance.min(axis=1))
    far = np.median(np.where(folds[:, None] != folds, distance, np.inf).min(axis=1))
    assert 2 * near < far < 0.5


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_few_readings_are_divided_as_far_as_possible(n):
    assert len(np.unique(gap_folds(np.arange(n)[:, None].astype(float)))) == min(n, N_FOLDS)


def test_gaps_on_a_grid_do_not_depend_on_the_order_of_the_rows(rng):
    x = np.array([(i, j) for i in range(9) for j in range(7)], float)
    order = rng.permutation(len(x))
    assert_array_equal(gap_folds(x[order]), gap_folds(x)[order])
