"""The map, the chunks and the seeds."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import MappingProxyType, SimpleNamespace

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info

from emgpr import execution
from emgpr.arrays import NumericalError
from emgpr.checkpoint import Ledger
from emgpr.execution import (
    SMALL,
    Failed,
    chunks,
    counter,
    each,
    each_if_possible,
    generator,
    threads_for,
    track,
)


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


def test_the_limit_of_threads_holds_until_the_last_of_several_leaves():
    def threads():
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    before, inside, apart = threads(), Barrier(2), Barrier(2)

    def work(last):
        with threads_for(0):
            inside.wait()
            if last:
                apart.wait()  # the other has left
                return threads()
        apart.wait()
        return {1}

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, [True, False])) == [{1}, {1}]
    assert threads() == before


def test_an_engine_that_gives_all_answers_at_the_end_will_do():
    """As Ray's does, which is made of this one."""
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        assert each(abs, [-1, 2, -3]) == [1, 2, 3]


class KilledWorker(Exception):
    """As Dask has it."""


class Cluster:
    """A cluster on which a task of the number 1 kills its workers, and others end well."""

    submit_kwargs = MappingProxyType({"resources": {"GPU": 1}})

    def __init__(self):
        self.client, self.given, self.released = self, [], 0

    def submit(self, job, *, pure, resources):
        assert (pure, resources) == (False, {"GPU": 1})
        (_, number), outer = job.args, self
        self.given.append(number)

        def result():
            if number == 1:
                raise KilledWorker("its workers died")
            return job()

        def release():
            outer.released += 1

        return SimpleNamespace(result=result, done=lambda: True, release=release)

    def cancel(self, jobs):
        assert jobs == []


def test_what_a_cluster_gives_up_is_tried_once_more_alone_and_told(monkeypatch):
    cluster = Cluster()
    monkeypatch.setattr(execution, "get_active_backend", lambda: (cluster, -1))
    monkeypatch.setattr(execution, "_is_cluster", lambda backend: True)
    answers = each_if_possible(abs, [0, 1, 2])
    assert (answers[0], type(answers[1].why), answers[2]) == (0, KilledWorker, 2)
    assert cluster.given == [0, 1, 2, 1]
    assert cluster.released == 4


def killed_once(job):
    """The answer, but for the first time this item is asked for: then its process dies."""
    number, mark = job
    if number == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def killed(job):
    number, parent = job
    if number == 1 and os.getpid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_worker_that_was_killed_is_replaced_and_its_items_are_tried_again(tmp_path):
    jobs = [(i, tmp_path / "mark") for i in range(4)]
    assert each(killed_once, jobs, n_jobs=2) == [0, 1, 2, 3]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_item_that_kills_every_worker_fails_alone():
    answers = each_if_possible(killed, [(i, os.getpid()) for i in range(4)], n_jobs=2)
    assert [a for a in answers if not isinstance(a, Failed)] == [0, 2, 3]
    assert isinstance(answers[1], Failed)


@pytest.mark.parametrize("error", [MemoryError, NumericalError, np.linalg.LinAlgError])
def test_what_fails_once_is_tried_again_and_what_fails_twice_is_told(error):
    asked = []

    def work(item):
        asked.append(item)
        if item == "never" or (item == "once" and asked.count(item) == 1):
            raise error("no room")
        return item

    assert each(work, ["fine", "once"]) == ["fine", "once"]
    fine, never = each_if_possible(work, ["fine", "never"])
    assert (fine, type(never.why)) == ("fine", error)
    with pytest.raises(error, match="no room"):
        each(work, ["never", "fine"])


def test_other_errors_are_not_tried_again():
    asked = []

    def work(item):
        asked.append(item)
        raise KeyError(item)

    with pytest.raises(KeyError):
        each(work, ["a", "b"])
    assert asked == ["a"]


def test_what_is_in_the_ledger_is_not_worked_out_again(tmp_path):
    asked = []

    def work(item):
        asked.append(item)
        if item == 2 and len(asked) == 3:
            raise KeyboardInterrupt
        return np.array([item])

    fit = {"X": ("", "")}
    ledger = Ledger.opened(tmp_path / "fit", fit)
    with pytest.raises(KeyboardInterrupt):
        each(work, [0, 1, 2, 3], ledger=ledger)
    ledger.write()
    answers = each(work, [0, 1, 2, 3], ledger=Ledger.opened(tmp_path / "fit", fit))
    assert [int(a[0]) for a in answers] == [0, 1, 2, 3]
    assert asked == [0, 1, 2, 2, 3]
