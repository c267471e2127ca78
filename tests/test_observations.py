"""What was measured: order, missing readings, batches."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from emgpr.observations import Observations, first_bad

X = np.array([[0.0], [1.0], [2.0]])
Y = np.array([[1.0, np.nan], [2.0, 20.0], [np.nan, 30.0]])


@pytest.fixture
def table() -> Observations:
    return Observations.from_table(X, Y)


def test_readings_are_stacked_task_after_task_with_zero_where_none_was_made(table):
    assert_array_equal(table.stacked, [1.0, 2.0, 0.0, 0.0, 20.0, 30.0])
    assert_array_equal(table.seen, [[True, True, False], [False, True, True]])
    assert (table.n_sites, table.n_tasks, table.n_readings) == (3, 2, 4)
    assert not table.complete
    assert Observations.from_table(X, np.ones((3, 2))).complete


def test_a_task_alone_has_only_the_sites_where_it_was_measured(table):
    second = table.task(1)
    assert_array_equal(second.x, [[1.0], [2.0]])
    assert_array_equal(second.y, [[20.0, 30.0]])
    assert second.complete


def test_the_table_of_some_sites_has_their_rows_in_that_order(table):
    picked = table.at([2, 0])
    assert_array_equal(picked.x, [[2.0], [0.0]])
    assert_array_equal(picked.y, [[0.0, 1.0], [30.0, 0.0]])
    assert_array_equal(picked.seen, [[False, True], [True, False]])


def test_a_batch_of_tables_is_each_table_stacked(table):
    sites = np.array([[2, 0], [1, 1], [0, 2]])
    batch = table.at(sites)
    for b, row in enumerate(sites):
        alone = table.at(row)
        assert_array_equal(batch.x[b], alone.x)
        assert_array_equal(batch.y[b], alone.y)
        assert_array_equal(batch.seen[b], alone.seen)


def test_shorter_parts_are_padded_with_places_where_nothing_was_measured(table):
    batch = table.batches([np.array([0, 1, 2]), np.array([1])])
    assert_array_equal(batch.seen[0], table.seen)
    assert_array_equal(batch.seen[1], [[True, False, False], [True, False, False]])
    assert_array_equal(batch.y[1], [[2.0, 0.0, 0.0], [20.0, 0.0, 0.0]])


def test_extending_adds_only_sites_where_something_was_measured(table):
    new = Observations.from_table(
        np.array([[7.0], [8.0], [9.0]]), np.array([[np.nan, np.nan], [5.0, np.nan], [np.nan, 6.0]])
    )
    both = table.extended(new)
    assert_array_equal(both.x.ravel(), [0.0, 1.0, 2.0, 8.0, 9.0])
    assert_array_equal(both.y[:, 3:], [[5.0, 0.0], [0.0, 6.0]])
    assert both.n_readings == 6


def test_what_was_read_at_sites_of_the_table_is_found_and_nothing_elsewhere(table):
    asked = np.array([[2.0], [0.5], [0.0], [2.0], [1.0]])
    assert_array_equal(table.readings_at(asked), [Y[2], [np.nan] * 2, Y[0], Y[2], Y[1]])


def test_what_was_read_at_the_sites_of_a_table_is_the_table(rng):
    x = rng.normal(size=(40, 3))
    y = np.where(rng.uniform(size=(40, 2)) < 0.3, np.nan, rng.normal(size=(40, 2)))
    order = rng.permutation(40)
    table = Observations.from_table(x, y)
    assert_array_equal(table.readings_at(x), y)
    assert_array_equal(table.readings_at(x[order]), y[order])


def test_a_site_is_the_same_only_in_every_column_and_every_digit():
    x = np.array([[0.1, 5.0], [0.2, 6.0]])
    table = Observations.from_table(x, np.array([[1.0], [2.0]]))
    near = np.array([[0.1, 6.0], [0.2, 5.0], [np.nextafter(0.1, 1), 5.0], [0.1 + 1e-9, 5.0]])
    assert_array_equal(table.readings_at(near), np.full((4, 1), np.nan))
    assert_array_equal(table.readings_at(x[::-1]), [[2.0], [1.0]])


def test_zero_is_the_same_site_with_either_sign():
    table = Observations.from_table(np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]]))
    assert_array_equal(table.readings_at(np.array([[-0.0]])), [[1.0]])


@pytest.mark.parametrize("columns", [1, 2])
def test_of_sites_that_were_visited_twice_none_is_meant(columns):
    x = np.array([[3.0], [1.0], [3.0], [2.0]]).repeat(columns, axis=1)
    table = Observations.from_table(x, np.array([[1.0], [2.0], [3.0], [4.0]]))
    assert_array_equal(table.readings_at(x), [[np.nan], [2.0], [np.nan], [4.0]])
    all_twice = Observations.from_table(np.ones((4, columns)), np.ones((4, 2)))
    assert_array_equal(all_twice.readings_at(np.ones((3, columns))), np.full((3, 2), np.nan))


def test_unseen_readings_are_decoupled_with_a_unit_diagonal(table, rng):
    cov = rng.normal(size=(2, 3, 2, 3))
    full = cov.reshape(6, 6).copy()
    seen = table.seen.ravel()
    masked = table.only_seen(cov)
    assert_array_equal(masked[np.ix_(seen, seen)], full[np.ix_(seen, seen)])
    assert_array_equal(masked[~seen], np.eye(6)[~seen])
    assert_array_equal(masked[:, ~seen], np.eye(6)[:, ~seen])


def test_first_bad_goes_down_the_first_bad_column():
    bad = np.array([[False, False, True], [False, False, False], [False, True, False]])
    assert first_bad(bad) == (2, 1)


@pytest.mark.parametrize("n_places", [1, 5, 40])
def test_some_of_the_sites_are_as_many_as_asked_for_where_sites_repeat(rng, n_places):
    x = np.repeat(rng.uniform(size=(n_places, 2)), 20, axis=0)
    table = Observations.from_table(x, rng.normal(size=(len(x), 1)))
    some = table.some(15)
    assert len(np.unique(some)) == len(some) == 15


def test_some_of_the_sites_have_their_nearest_beside_them(rng):
    x = rng.uniform(size=(50, 2))
    some = Observations.from_table(x, rng.normal(size=(50, 1))).some(20)
    apart = np.linalg.norm(x[some][:, None] - x[some], axis=-1) + np.diag(np.full(20, np.inf))
    everywhere = np.linalg.norm(x[:, None] - x, axis=-1) + np.diag(np.full(50, np.inf))
    own = everywhere[some].min(axis=1)
    assert np.mean(np.isclose(apart.min(axis=1), own)) >= 0.5
    assert len(Observations.from_table(x, x[:, :1]).some(99)) == 50
