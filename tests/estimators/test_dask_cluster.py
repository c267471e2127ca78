"""On a cluster of two processes: tasks, members and blocks of places, and workers that are killed.

Workers die by SIGKILL in the middle of a task, once. What they had is done again by others, and
nothing of the result changes.
"""

import os
from functools import partial

import joblib
import numpy as np
import pytest
from mortal import MortalKernel, mortal_identity, mortal_mean
from numpy.testing import assert_allclose
from simulated import smooth_table
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import threadpool_info

from emgpr import EMGPR
from emgpr.checkpoint import Ledger
from emgpr.execution import each, end_workers
from tests.smooth_fields import quick, table

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(3)
X, Y = smooth_table(RNG, N=80)
PLACES = RNG.uniform(size=(90, 2))
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture(scope="module")
def client():
    two = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with distributed.LocalCluster(**two) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def on_dask(client):
    with joblib.parallel_config("dask"):
        yield client


def paper(**settings):
    return EMGPR.paper(**({"batch_size": 20, "random_state": 0} | settings))


def assert_same_model(one, other):
    assert_allclose(one.weights_, other.weights_, atol=1e-8)
    assert_allclose(one.noise_, other.noise_, atol=1e-8)
    for mine, theirs in zip(
        one.predict(PLACES, return_std=True), other.predict(PLACES, return_std=True), strict=True
    ):
        assert_allclose(mine, theirs, rtol=1e-8)


def test_work_goes_to_the_workers_unless_one_process_is_asked_for(on_dask):
    workers = set(on_dask.run(os.getpid).values())
    assert set(each(lambda _: os.getpid(), list(range(6)))) <= workers
    assert set(each(lambda _: os.getpid(), list(range(6)), n_jobs=1)) == {os.getpid()}


def test_a_worker_uses_one_thread_for_each_of_its_places(on_dask):
    def threads(_):
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    assert {n for found in each(threads, [0, 1]) for n in found} == {1}


def test_tasks_and_members_are_learned_as_in_one_process(on_dask, capsys):
    assert_same_model(paper(verbose=1).fit(X, Y), paper(n_jobs=1).fit(X, Y))
    assert "Step 2: members" in capsys.readouterr().err


def test_a_search_over_settings_gives_each_fit_to_a_worker(on_dask):
    """Each fit is a task of its own, within which there is nothing to wait for."""
    tries = (joblib.delayed(paper(batch_size=n).fit)(X, Y) for n in (20, 40))
    for model, n in zip(joblib.Parallel()(tries), (20, 40), strict=True):
        assert_same_model(model, paper(batch_size=n, n_jobs=1).fit(X, Y))


def test_errors_pass_and_the_cluster_lives_on(on_dask):
    def refuse(item):
        raise KeyError(item)

    with pytest.raises(KeyError, match="b"):
        each(refuse, ["b", "c"])
    end_workers(None)
    assert each(abs, [-1, 2]) == [1, 2]


def test_what_is_finished_is_in_the_ledger(on_dask, tmp_path):
    fit = {"X": ("", "")}
    ledger = Ledger.opened(tmp_path / "fit", fit)
    each(np.sqrt, [4.0, 9.0], ledger=ledger)
    again = Ledger.opened(tmp_path / "fit", fit)
    assert len(again.pieces) == 2
    assert each(lambda _: None, [4.0, 9.0], ledger=again) == [2.0, 3.0]


@posix
def test_a_worker_killed_while_it_learns_costs_nothing_but_time(on_dask, tmp_path):
    kernel = MortalKernel(mark=str(tmp_path / "died"), home=os.getpid())
    killed = paper(kernel=kernel).fit(X, Y)
    assert (tmp_path / "died").exists()
    assert_same_model(killed, paper(kernel=kernel, n_jobs=1).fit(X, Y))


@posix
def test_a_worker_killed_while_it_predicts_costs_its_block_only(client, tmp_path):
    rule = partial(mortal_mean, str(tmp_path / "died"), os.getpid())
    model = paper(combine=rule, conditioning=8).fit(X, Y)
    told = model.predict(da.from_array(PLACES, chunks=(15, 2)), return_std=True)
    found = dask.compute(*told)
    assert (tmp_path / "died").exists()
    for mine, theirs in zip(found, model.predict(PLACES, return_std=True), strict=True):
        assert_allclose(mine, theirs, rtol=1e-8)


@posix
@pytest.mark.parametrize("dies", ["never", "looking", "summing"])
def test_a_worker_killed_in_a_pass_over_a_table_costs_its_block_only(client, dies, tmp_path):
    """Looking at blocks as they are read, or when transforms are used: on workers, for sums."""
    die, home = partial(mortal_identity, str(tmp_path / "died")), os.getpid()
    settings = {"box": ([0, 0], [1, 1])}
    if dies == "summing":
        settings["transform"] = FunctionTransformer(partial(die, home), np.asarray)
    sites, readings = table(np.random.default_rng(2), N=40_000)
    lazy = da.from_array(sites, chunks=(8000, 2))
    if dies == "looking":
        lazy = lazy.map_blocks(partial(die, home), dtype=float, meta=sites)
    killed = quick(**settings).fit(lazy, da.from_array(readings, chunks=(8000, 2)))
    assert (tmp_path / "died").exists() == (dies != "never")
    alone = quick(**settings).fit(sites, readings)
    assert_same_model(killed, alone)
    assert killed.n_sites_ == alone.n_sites_
