"""Sums over blocks: the same in threads and in worker processes as one after another."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, Matern
from threadpoolctl import threadpool_limits

from emgpr import parallel
from emgpr.covariance import VecchiaTable, vecchia_table
from emgpr.kernel_stack import KernelStack
from emgpr.parallel import Execution
from tests.simulated import world

KERNELS = (RBF(0.3), Matern([0.2, 0.5], nu=1.5), Matern(0.4, nu=0.5))
THETA = np.concatenate([kernel.theta for kernel in KERNELS])
BASIS = np.eye(3)[:, :, None] * np.eye(3)[:, None]


@pytest.fixture
def made(rng):
    return world(rng, N=40, missing=0.2, correlated=True)


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of two blocks, and parts of three chunks."""
    monkeypatch.setattr(vecchia_table, "PANELS_PER_CHUNK", 2.5 * 18**2 / 150_000)
    monkeypatch.setattr(vecchia_table, "CHUNKS_PER_PART", 3)
    monkeypatch.setattr(vecchia_table, "MIN_THREADED_CHUNKS", 2)


def sums(made, **settings):
    table = VecchiaTable.from_sites(made.observations, KERNELS, 5, **settings)
    information = table.information(THETA, made.W, made.noise, BASIS)
    return [*table.evaluate(THETA, made.W, made.noise), information]


def test_threads_give_exactly_the_same_sums(made, small_chunks, monkeypatch):
    threads = set()
    inner = KernelStack.evaluate

    def evaluate(self, theta):
        threads.add(threading.get_ident())
        return inner(self, theta)

    with threadpool_limits(1, "blas"):
        alone = sums(made)
    monkeypatch.setattr(KernelStack, "evaluate", evaluate)
    monkeypatch.setattr(parallel, "allowed_threads", lambda: 3)
    for one, other in zip(alone, sums(made), strict=True):
        assert_array_equal(one, other)
    assert threads - {threading.get_ident()}


@pytest.mark.slow
def test_worker_processes_give_the_same_sums(made, small_chunks, monkeypatch):
    sizes = []
    inner = vecchia_table.parallel_map

    def parallel_map(function, items, execution):
        sizes.append([(len(part.blocks), part.observations.n_sites) for part in items])
        return inner(function, items, execution)

    monkeypatch.setattr(vecchia_table, "parallel_map", parallel_map)
    alone = sums(made)
    assert not sizes
    for one, other in zip(alone, sums(made, execution=Execution(n_jobs=2)), strict=True):
        assert_allclose(one, other, rtol=1e-10, atol=1e-10)
    assert len(sizes) == 2
    assert [n for n, _ in sizes[0]] == [6] * 6 + [4]
    assert all(n <= 6 * n_blocks for n_blocks, n in sizes[0])  # only the sites of these blocks


def test_the_order_of_many_blocks_follows_their_locations(rng, monkeypatch):
    """The same blocks; the last half of them contains fewer sites."""
    made = world(rng, N=200)

    def blocks():
        return VecchiaTable.from_sites(made.observations, KERNELS, 5).blocks

    given = blocks()
    monkeypatch.setattr(vecchia_table, "MIN_SORTED_BLOCKS", 100)
    in_order = blocks()
    assert {tuple(row) for row in in_order} == {tuple(row) for row in given}
    assert len(np.unique(in_order[100:])) < 0.8 * len(np.unique(given[100:]))
