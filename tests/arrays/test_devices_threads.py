"""Threads for small and large matrices, and work divided into chunks."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from threadpoolctl import threadpool_info

from emgpr.arrays import chunks, limit_threads
from emgpr.arrays.devices import MULTITHREADED_ROWS


def threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_small_matrices_get_one_thread_and_large_ones_all():
    before = threads()
    with limit_threads(MULTITHREADED_ROWS - 1):
        assert set(threads()) <= {1}
    with limit_threads(MULTITHREADED_ROWS):
        assert threads() == before
    assert threads() == before


def test_the_limit_of_threads_holds_until_the_last_of_several_leaves():
    before, inside, apart = threads(), Barrier(2), Barrier(2)

    def work(last):
        with limit_threads(0):
            inside.wait()
            if last:
                apart.wait()  # the other has left
                return set(threads())
        apart.wait()
        return {1}

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(work, [True, False])) == [{1}, {1}]
    assert threads() == before


@pytest.mark.parametrize(
    ("n", "bytes_each", "n_jobs"), [(1, 1.0, 1), (10, 3.0, 1), (7, 1.0, 4), (5, 99.0, 2)]
)
def test_chunks_cover_all_within_the_budget_and_give_every_worker_some(n, bytes_each, n_jobs):
    runs = chunks(n, bytes_each, n_jobs, budget=10.0)
    assert [i for run in runs for i in run] == list(range(n))
    assert all(len(run) == 1 or len(run) * bytes_each <= 10 for run in runs)
    assert max(map(len, runs)) <= -(-n // n_jobs)
