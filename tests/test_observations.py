"""Tables of readings: their order, missing readings and batches."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from emgpr.neighbours import pseudo_random_order, spread_order
from emgpr.observations import Observations, first_true

X = np.array([[0.0], [1.0], [2.0]])
Y = np.array([[1.0, np.nan], [2.0, 20.0], [np.nan, 30.0]])


@pytest.fixture
def table() -> Observations:
    return Observations.from_table(X, Y)


def test_readings_are_stacked_output_by_output_with_zero_where_missing(table):
    assert_array_equal(table.stacked, [1.0, 2.0, 0.0, 0.0, 20.0, 30.0])
    assert_array_equal(table.observed, [[True, True, False], [False, True, True]])
    assert (table.n_sites, table.n_outputs, table.n_readings) == (3, 2, 4)
    assert not table.complete
    assert Observations.from_table(X, np.ones((3, 2))).complete


def test_one_output_has_the_sites_where_it_was_measured(table):
    second = table.output(1)
    assert_array_equal(second.x, [[1.0], [2.0]])
    assert_array_equal(second.y, [[20.0, 30.0]])
    assert second.complete


def test_some_sites_have_their_rows_in_the_given_order(table):
    picked = table.at([2, 0])
    assert_array_equal(picked.x, [[2.0], [0.0]])
    assert_array_equal(picked.y, [[0.0, 1.0], [30.0, 0.0]])
    assert_array_equal(picked.observed, [[False, True], [True, False]])


def test_a_batch_holds_one_table_for_each_set_of_sites(table):
    sites = np.array([[2, 0], [1, 1], [0, 2]])
    batch = table.at(sites)
    for b, row in enumerate(sites):
        alone = table.at(row)
        assert_array_equal(batch.x[b], alone.x)
        assert_array_equal(batch.y[b], alone.y)
        assert_array_equal(batch.observed[b], alone.observed)


def test_shorter_batches_are_padded_with_empty_rows(table):
    batch = table.batches([np.array([0, 1, 2]), np.array([1])])
    assert_array_equal(batch.observed[0], table.observed)
    assert_array_equal(batch.observed[1], [[True, False, False], [True, False, False]])
    assert_array_equal(batch.y[1], [[2.0, 0.0, 0.0], [20.0, 0.0, 0.0]])


def test_extending_appends_only_sites_with_readings(table):
    new = Observations.from_table(
        np.array([[7.0], [8.0], [9.0]]), np.array([[np.nan, np.nan], [5.0, np.nan], [np.nan, 6.0]])
    )
    both = table.extended_by(new)
    assert_array_equal(both.x.ravel(), [0.0, 1.0, 2.0, 8.0, 9.0])
    assert_array_equal(both.y[:, 3:], [[5.0, 0.0], [0.0, 6.0]])
    assert both.n_readings == 6


def test_readings_are_found_at_the_sites_of_the_table_and_nowhere_else(table):
    asked = np.array([[2.0], [0.5], [0.0], [2.0], [1.0]])
    assert_array_equal(table.readings_at(asked), [Y[2], [np.nan] * 2, Y[0], Y[2], Y[1]])


def test_the_readings_at_all_sites_are_the_table(rng):
    x = rng.normal(size=(40, 3))
    y = np.where(rng.uniform(size=(40, 2)) < 0.3, np.nan, rng.normal(size=(40, 2)))
    order = rng.permutation(40)
    table = Observations.from_table(x, y)
    assert_array_equal(table.readings_at(x), y)
    assert_array_equal(table.readings_at(x[order]), y[order])


def test_a_location_is_a_site_only_if_every_digit_is_equal():
    x = np.array([[0.1, 5.0], [0.2, 6.0]])
    table = Observations.from_table(x, np.array([[1.0], [2.0]]))
    near = np.array([[0.1, 6.0], [0.2, 5.0], [np.nextafter(0.1, 1), 5.0], [0.1 + 1e-9, 5.0]])
    assert_array_equal(table.readings_at(near), np.full((4, 1), np.nan))
    assert_array_equal(table.readings_at(x[::-1]), [[2.0], [1.0]])


def test_zero_is_the_same_location_with_either_sign():
    table = Observations.from_table(np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]]))
    assert_array_equal(table.readings_at(np.array([[-0.0]])), [[1.0]])


@pytest.mark.parametrize("columns", [1, 2])
def test_a_location_of_several_sites_belongs_to_none(columns):
    x = np.array([[3.0], [1.0], [3.0], [2.0]]).repeat(columns, axis=1)
    table = Observations.from_table(x, np.array([[1.0], [2.0], [3.0], [4.0]]))
    assert_array_equal(table.readings_at(x), [[np.nan], [2.0], [np.nan], [4.0]])
    all_twice = Observations.from_table(np.ones((4, columns)), np.ones((4, 2)))
    assert_array_equal(all_twice.readings_at(np.ones((3, columns))), np.full((3, 2), np.nan))


def test_missing_readings_are_decoupled_with_a_unit_diagonal(table, rng):
    cov = rng.normal(size=(2, 3, 2, 3))
    full = cov.reshape(6, 6).copy()
    read = table.observed.ravel()
    masked = table.decouple_missing(cov)
    assert_array_equal(masked[np.ix_(read, read)], full[np.ix_(read, read)])
    assert_array_equal(masked[~read], np.eye(6)[~read])
    assert_array_equal(masked[:, ~read], np.eye(6)[:, ~read])


def test_the_first_true_is_found_column_by_column():
    found = np.array([[False, False, True], [False, False, False], [False, True, False]])
    assert first_true(found) == (2, 1)


@pytest.mark.parametrize("n_places", [1, 40])
def test_a_subsample_has_the_size_asked_for_even_if_sites_repeat(rng, n_places):
    x = np.repeat(rng.uniform(size=(n_places, 2)), 20, axis=0)
    table = Observations.from_table(x, rng.normal(size=(len(x), 1)))
    some = table.subsample(15)
    assert len(np.unique(some)) == len(some) == 15


def test_sites_of_a_subsample_come_with_their_nearest(rng):
    x = rng.uniform(size=(50, 2))
    some = Observations.from_table(x, rng.normal(size=(50, 1))).subsample(20)
    apart = np.linalg.norm(x[some][:, None] - x[some], axis=-1) + np.diag(np.full(20, np.inf))
    everywhere = np.linalg.norm(x[:, None] - x, axis=-1) + np.diag(np.full(50, np.inf))
    own = everywhere[some].min(axis=1)
    assert np.mean(np.isclose(apart.min(axis=1), own)) >= 0.5
    assert len(Observations.from_table(x, x[:, :1]).subsample(99)) == 50


def test_single_outputs_and_tables_are_built_from_arrays():
    one = Observations.of_one_output(X, Y[:, 0])
    assert_array_equal(one.y, [Y[:, 0]])
    assert one.observed.tolist() == [[True] * 3]
    table = Observations.from_table(X, Y)
    assert_array_equal(table.table, Y)


def test_several_outputs_have_the_sites_of_the_first(table):
    pair = table.outputs([1, 0])
    assert_array_equal(pair.x, [[1.0], [2.0]])
    assert_array_equal(pair.y, [[20.0, 30.0], [2.0, 0.0]])
    assert_array_equal(pair.observed, [[True, True], [True, False]])


def test_selected_outputs_keep_all_sites_unless_empty_ones_are_left_out(table):
    second = table.select_outputs(np.array([1]))
    assert_array_equal(second.x, X)
    assert_array_equal(second.observed, [[False, True, True]])
    assert_array_equal(second.without_empty_sites().x, [[1.0], [2.0]])


def test_an_output_with_a_single_value_is_constant():
    flat = Observations.from_table(X, np.array([[0.0, np.nan], [0.0, 1.0], [0.0, np.nan]]))
    assert flat.constant.tolist() == [True, False]


def test_one_of_a_batch_of_tables_or_some_of_them_can_be_taken(table):
    batch = table.at(np.array([[0, 1], [1, 2], [2, -1]]))
    assert_array_equal(batch.batch_item(1).y, table.at([1, 2]).y)
    assert_array_equal(batch.batch_item(slice(1, 3)).x, batch.x[1:])
    assert batch.n_readings == 3 + 3 + 1


def test_cached_values_are_computed_once_and_not_pickled(table):
    asked = []

    def compute():
        asked.append(1)
        return object()

    first = table.cached("a", compute)
    assert table.cached("a", compute) is first
    assert table.cached("b", compute) is not first
    assert len(asked) == 2
    copy = pickle.loads(pickle.dumps(table))
    assert vars(copy).keys() == {"x", "y", "observed"}
    assert_array_equal(copy.y, table.y)


def test_other_readings_at_the_same_sites_share_what_depends_on_the_sites(table):
    value = table.cached_for_sites("a", object)
    other = table.select_outputs(np.array([1])).with_readings(table.y, table.observed)
    assert other.cached_for_sites("a", object) is value
    assert other.cached("a", object) is not value
    assert table.at([0, 1, 2]).cached_for_sites("a", object) is not value
    assert vars(pickle.loads(pickle.dumps(other))).keys() == {"x", "y", "observed"}


def test_temporary_trees_are_not_kept(table):
    kept = table.tree()
    temporary = table.with_temporary_trees()
    assert temporary.tree() is kept
    built = temporary.select_outputs(np.array([0])).tree(2.0)
    assert temporary.tree(2.0) is built
    assert table.tree(2.0) is not built
    assert temporary.cached("a", object) is table.cached("a", object)


@pytest.mark.parametrize("N", [1, 40, 200])
def test_orders_and_trees_of_a_table_are_those_of_its_locations(rng, monkeypatch, N):
    for module in ("neighbours", "observations"):
        monkeypatch.setattr(f"emgpr.{module}.MAX_MAXIMIN_SITES", 100)
    x, scale = rng.uniform(size=(N, 2)), np.array([0.1, 3.0])
    table = Observations.from_table(x, np.where(rng.uniform(size=(N, 2)) < 0.5, np.nan, 1.0))
    assert_array_equal(table.pseudo_random_order, pseudo_random_order(x))
    assert_array_equal(table.spread_order(scale), spread_order(x / scale))
    assert_array_equal(table.spread_order(1.0), spread_order(x))
    assert_array_equal(table.tree().data, x)
    measured = table.observed[0]
    assert_array_equal(table.tree(scale, measured).data, (x / scale)[measured])
    assert table.tree(scale, measured) is table.tree(scale.copy(), measured.copy())
    assert table.tree(scale) is not table.tree()


def test_threads_that_ask_together_compute_once(table):
    inside, asked = Barrier(4), []

    def ask(_):
        inside.wait()
        return table.cached("slow", lambda: asked.append(1) or sleep(0.05) or object())

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(ask, range(4)))
    assert len(asked) == 1
    assert len(set(map(id, results))) == 1


def test_on_the_cpu_a_table_is_itself_and_on_a_device_a_copy(table, device):
    assert table.to("cpu") is table
    there = table.to(device)
    assert not isinstance(there.y, np.ndarray)
    assert_array_equal(there.y.cpu().numpy(), table.y)
    assert_array_equal(
        there.at(np.array([2, -1])).observed.cpu().numpy(), [[False] * 2, [True, False]]
    )
