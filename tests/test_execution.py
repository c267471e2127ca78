"""The map, the chunks and the seeds."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from emgpr.execution import SMALL, chunks, counter, each, generator, threads_for, track


def test_answers_come_in_the_order_of_the_items():
    assert each(lambda x: x**2, list(range(7)), n_jobs=2) == [0, 1, 4, 9, 16, 25, 36]


def test_progress_goes_to_stderr_and_only_if_asked(capsys):
    each(abs, [1, 2], label="Counting")
    assert capsys.readouterr().err == ""
    each(abs, [1, 2], label="Counting", verbose=1)
    shown = capsys.readouterr()
    assert "Counting" in shown.err
    assert shown.out == ""


def test_a_counter_shows_how_far_it_has_come_if_asked(capsys):
    with counter(7, "Refining", verbose=0) as count:
        count()
    assert capsys.readouterr().err == ""
    with counter(7, "Refining", verbose=1) as count:
        for _ in range(3):
            count()
    shown = capsys.readouterr()
    assert "Refining" in shown.err
    assert "3/7" in shown.err
    assert shown.out == ""


def test_an_error_passes_through_a_counter(capsys):
    for verbose in (0, 1):
        with pytest.raises(KeyError), counter(7, "Refining", verbose=verbose):
            raise KeyError


@pytest.mark.parametrize("verbose", [0, 1])
def test_what_is_tracked_comes_through_as_it_is(verbose, capsys):
    assert list(track(iter("abc"), 3, "Letters", verbose)) == ["a", "b", "c"]
    assert ("3/3" in capsys.readouterr().err) == bool(verbose)


@pytest.mark.parametrize(
    ("n", "bytes_each", "n_jobs"), [(1, 1.0, 1), (10, 3.0, 1), (7, 1.0, 4), (5, 99.0, 2)]
)
def test_chunks_cover_all_within_the_budget_and_give_every_worker_some(n, bytes_each, n_jobs):
    runs = chunks(n, bytes_each, n_jobs, budget=10.0)
    assert [i for run in runs for i in run] == list(range(n))
    assert all(len(run) == 1 or len(run) * bytes_each <= 10 for run in runs)
    assert max(map(len, runs)) <= -(-n // n_jobs)


@pytest.mark.parametrize("seed", [0, np.int64(0)])
def test_an_integer_seed_gives_the_same_numbers_every_time(seed):
    assert generator(seed).uniform() == generator(0).uniform()


def test_a_random_state_seeds_and_a_generator_passes_through():
    assert (
        generator(np.random.RandomState(3)).uniform()
        == generator(np.random.RandomState(3)).uniform()
    )
    own = np.random.default_rng(1)
    assert generator(own) is own
    assert generator(None).uniform() != generator(None).uniform()


def test_small_matrices_get_one_thread_and_large_ones_all():
    def threads():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    with threads_for(SMALL - 1):
        assert set(threads()) <= {1}
    with threads_for(SMALL):
        assert threads() == before
    assert threads() == before
