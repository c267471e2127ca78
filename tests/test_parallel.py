"""Parallel work: order, failures, retries, checkpoints, progress and seeds."""

import os
import signal
from threading import get_ident
from types import MappingProxyType, SimpleNamespace

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from emgpr import parallel
from emgpr.arrays import NumericalError
from emgpr.checkpoint import NO_CHECKPOINT, Checkpoint
from emgpr.parallel import (
    DEFAULT_EXECUTION,
    Execution,
    Failure,
    as_generator,
    check_verbose,
    parallel_map,
    parallel_map_or_failure,
    stop_workers,
    thread_map,
    uses_workers,
)

pytestmark = pytest.mark.slow

TWO = Execution(n_jobs=2)


def test_results_come_in_the_order_of_the_items():
    assert parallel_map(lambda x: x**2, list(range(7)), TWO) == [0, 1, 4, 9, 16, 25, 36]
    assert parallel_map(abs, []) == []


def thread(item):
    pools = (pool for pool in threadpool_info() if pool["user_api"] == "blas")
    return item, get_ident(), {pool["num_threads"] for pool in pools}


def test_threads_return_results_in_order_with_one_blas_thread_each():
    with threadpool_limits(2, "blas"):
        items, threads, numbers = zip(*thread_map(thread, range(20)), strict=True)
    assert items == tuple(range(20))
    assert get_ident() not in threads
    assert all(number == {1} for number in numbers)


def test_there_are_no_threads_if_there_is_one_nor_within_threads_nor_on_a_cluster():
    def idents(_):
        return {ident for _, ident, _ in thread_map(thread, range(8))}

    with threadpool_limits(1, "blas"):
        assert idents(0) == {get_ident()}
    with threadpool_limits(2, "blas"):
        assert get_ident() not in idents(0)
        assert all(len(inner) == 1 for inner in thread_map(idents, range(4)))
        assert parallel._attempt_with_one_thread(idents, 0) == {get_ident()}
        assert get_ident() not in idents(0)


def test_an_error_in_a_thread_is_raised():
    with threadpool_limits(2, "blas"), pytest.raises(ZeroDivisionError):
        list(thread_map(lambda i: 1 / (i - 7), range(20)))


def test_there_are_workers_if_several_processes_are_requested():
    assert uses_workers(TWO)
    assert not uses_workers(Execution(n_jobs=1))
    assert not uses_workers(DEFAULT_EXECUTION)
    assert not uses_workers(Execution("cuda", n_jobs=2))


def test_an_execution_says_where_and_how_work_is_done():
    assert Execution() == DEFAULT_EXECUTION == Execution("cpu", None, 0, NO_CHECKPOINT)
    cpu, gpu = Execution("cpu", 4, 1), Execution("cuda", 4, 1)
    assert (cpu.processes, gpu.processes) == (4, 1)  # a device is used by one process
    assert gpu.quiet() == Execution("cuda", 4, 0)
    assert gpu.serial() == Execution("cuda", 1, 0)


@pytest.mark.parametrize("verbose", ["yes", None, np.nan, -1])
def test_an_invalid_verbose_is_refused(verbose):
    with pytest.raises(ValueError, match=r"verbose=.*; expected 0, or 1 to show progress"):
        check_verbose(verbose)


def test_progress_is_shown_on_stderr_if_asked_for(capsys):
    parallel_map(abs, [1, 2], label="Counting")
    assert capsys.readouterr().err == ""
    parallel_map(abs, [1, 2], Execution(verbose=1), label="Counting")
    shown = capsys.readouterr()
    assert "Counting" in shown.err
    assert "2/2" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize("seed", [0, np.int64(0)])
def test_an_integer_seed_gives_the_same_numbers_every_time(seed):
    assert as_generator(seed).uniform() == as_generator(0).uniform()


def test_a_random_state_seeds_and_a_generator_passes_through():
    assert (
        as_generator(np.random.RandomState(3)).uniform()
        == as_generator(np.random.RandomState(3)).uniform()
    )
    own = np.random.default_rng(1)
    assert as_generator(own) is own
    assert as_generator(None).uniform() != as_generator(None).uniform()


def test_a_backend_that_returns_all_results_at_the_end_is_supported():
    """Ray's is derived from this one."""
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        assert parallel_map(abs, [-1, 2, -3]) == [1, 2, 3]


class KilledWorker(Exception):
    """Of the same name as Dask's."""


class Cluster:
    """A cluster on which the task of item 1 kills its workers, and others succeed."""

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


def test_what_a_cluster_gave_up_is_tried_once_more_by_itself(monkeypatch):
    cluster = Cluster()
    monkeypatch.setattr(parallel, "get_active_backend", lambda: (cluster, -1))
    monkeypatch.setattr(parallel, "_is_dask_cluster", lambda backend: True)
    results = parallel_map_or_failure(abs, [0, 1, 2])
    assert (results[0], type(results[1].error), results[2]) == (0, KilledWorker, 2)
    assert cluster.given == [0, 1, 2, 1]
    assert cluster.released == 4


def killed_once(job):
    """Return the number; the first time, the process of item 1 is killed."""
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
def test_items_of_a_killed_worker_are_tried_again(tmp_path):
    jobs = [(i, tmp_path / "mark") for i in range(4)]
    assert parallel_map(killed_once, jobs, TWO) == [0, 1, 2, 3]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_item_that_kills_every_worker_fails_alone():
    jobs = [(i, os.getpid()) for i in range(3)]
    results = parallel_map_or_failure(killed, jobs, TWO)
    assert [result for result in results if not isinstance(result, Failure)] == [0, 2]
    assert isinstance(results[1], Failure)


@pytest.mark.parametrize(
    ("error", "attempts"),
    [(MemoryError, 3), (NumericalError, 2), (np.linalg.LinAlgError, 2), (ZeroDivisionError, 2)],
)
def test_an_item_that_fails_is_tried_again_and_a_lasting_failure_reported(error, attempts):
    """If memory is short, a third time by itself."""
    asked = []

    def work(item):
        asked.append(item)
        if item == "never" or (item == "once" and asked.count(item) == 1):
            raise error("no room")
        return item

    assert parallel_map(work, ["fine", "once"]) == ["fine", "once"]
    fine, never = parallel_map_or_failure(work, ["fine", "never"])
    assert (fine, type(never.error), str(never.error)) == ("fine", error, "no room")
    assert asked.count("never") == attempts
    assert asked.count("fine") == 2  # once in each call
    with pytest.raises(error, match="no room"):
        parallel_map(work, ["never", "fine"])


class OutOfMemoryError(RuntimeError):
    """Of the same name as torch's."""


def test_a_device_that_is_out_of_memory_is_a_lack_of_memory():
    def work(item):
        raise OutOfMemoryError("CUDA out of memory")

    (failure,) = parallel_map_or_failure(work, [1])
    assert isinstance(failure.error, MemoryError)
    assert str(failure.error) == "CUDA out of memory"


@pytest.mark.parametrize("error", [KeyError, RuntimeError])
def test_other_errors_are_raised_at_once(error):
    asked = []

    def work(item):
        asked.append(item)
        raise error(item)

    with pytest.raises(error):
        parallel_map(work, ["a", "b"])
    assert asked == ["a"]


def test_results_in_the_checkpoint_are_not_computed_again(tmp_path, capsys):
    asked = []

    def work(item):
        asked.append(item)
        if item == 2 and len(asked) == 3:
            raise KeyboardInterrupt
        return np.array([item])

    def run(label="Step"):
        checkpoint = Checkpoint.open(tmp_path / "fit", {"X": ("", "")})
        execution = Execution(checkpoint=checkpoint, verbose=1)
        try:
            return parallel_map(work, [0, 1, 2, 3], execution, label=label)
        finally:
            checkpoint.write()

    with pytest.raises(KeyboardInterrupt):
        run()
    assert [int(result[0]) for result in run()] == [0, 1, 2, 3]
    assert asked == [0, 1, 2, 2, 3]
    assert "4/4" in capsys.readouterr().err  # those of the checkpoint count too
    run()
    assert len(asked) == 5
    run("Another step")
    assert len(asked) == 9


def test_workers_are_stopped_only_if_there_are_any(monkeypatch):
    stopped = []
    executor = SimpleNamespace(shutdown=lambda **how: stopped.append(how))
    monkeypatch.setattr(parallel, "get_reusable_executor", lambda reuse: executor)
    stop_workers(1)
    assert stopped == []
    stop_workers(2)
    assert stopped == [{"wait": False, "kill_workers": True}]
    with joblib.parallel_config("threading"):
        stop_workers(2)
    assert len(stopped) == 1
