"""A cluster of two worker processes, which may be killed.

Workers are killed by SIGKILL in the middle of a task, once. Other workers repeat what they had, and
the result does not change.
"""

import os
from functools import partial

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import FunctionTransformer
from threadpoolctl import threadpool_info

from emgpr import EMGPR, LMC
from emgpr.checkpoint import Checkpoint
from emgpr.covariance import VecchiaTable, vecchia_table
from emgpr.latents import VFE, sparse
from emgpr.observations import Observations
from emgpr.parallel import Execution, parallel_map, stop_workers
from tests.dying_workers import DyingKernel, dying_identity, dying_mean
from tests.simulated import smooth_table
from tests.smooth_fields import quick, table

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

RNG = np.random.default_rng(3)
X, Y = smooth_table(RNG, N=80)
LOCATIONS = RNG.uniform(size=(90, 2))
pytestmark = pytest.mark.slow  # worker processes start anew, several times
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


@pytest.fixture(scope="module")
def client():
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    two = distributed.LocalCluster(n_workers=2, **options)
    with two as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def on_dask(client):
    """joblib's work goes to the cluster."""
    with joblib.parallel_config("dask"):
        yield client


def paper(**params):
    return EMGPR.paper(**({"batch_size": 20, "random_state": 0} | params))


@pytest.fixture(scope="module")
def in_one_process():
    return paper(n_jobs=1).fit(X, Y)


def assert_same_model(one, other):
    assert_allclose(one.weights_, other.weights_, atol=1e-8)
    assert_allclose(one.noise_, other.noise_, atol=1e-8)
    with joblib.parallel_config("sequential"):
        assert_same_predictions(
            one.predict(LOCATIONS, return_std=True), other.predict(LOCATIONS, return_std=True)
        )


def assert_same_predictions(one, other):
    for values, expected in zip(one, other, strict=True):
        assert_allclose(values, expected, rtol=1e-7)


def test_work_is_done_by_the_workers_unless_one_process_is_requested(on_dask):
    def process_and_threads(_):
        pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
        return os.getpid(), {pool["num_threads"] for pool in pools}

    workers = set(on_dask.run(os.getpid).values())
    for process, threads in parallel_map(process_and_threads, list(range(6))):
        assert process in workers
        assert threads == {1}  # for each slot of a worker
    here = parallel_map(lambda _: os.getpid(), list(range(6)), Execution(n_jobs=1))
    assert set(here) == {os.getpid()}


def test_a_fit_equals_that_in_one_process(on_dask, in_one_process, capsys):
    assert_same_model(paper(verbose=1).fit(X, Y), in_one_process)
    assert "Step 2: members" in capsys.readouterr().err


def test_a_search_over_parameters_gives_each_fit_to_a_worker(on_dask, in_one_process):
    """Each fit is a task of its own, which must not wait for tasks inside it."""
    fits = [joblib.delayed(paper().fit)(X, Y) for _ in range(2)]
    for model in joblib.Parallel()(fits):
        assert_same_model(model, in_one_process)


def test_errors_are_raised_and_the_cluster_goes_on(on_dask):
    def fail(item):
        raise KeyError(item)

    with pytest.raises(KeyError, match="b"):
        parallel_map(fail, ["b", "c"])
    stop_workers(None)
    assert parallel_map(abs, [-1, 2]) == [1, 2]


def test_finished_items_are_in_the_checkpoint(on_dask, tmp_path):
    fit = {"X": ("", "")}
    first = Execution(checkpoint=Checkpoint.open(tmp_path / "fit", fit))
    parallel_map(np.sqrt, [4.0, 9.0], first)
    again = Execution(checkpoint=Checkpoint.open(tmp_path / "fit", fit))
    assert parallel_map(lambda _: None, [4.0, 9.0], again) == [2.0, 3.0]


@posix
def test_a_worker_killed_during_a_fit_does_not_change_it(on_dask, tmp_path):
    kernel = DyingKernel(0.4, "fixed", mark=str(tmp_path / "died"), survivor=os.getpid())
    killed = paper(kernel=kernel).fit(X, Y)
    assert (tmp_path / "died").exists()
    assert_same_model(killed, paper(kernel=kernel, n_jobs=1).fit(X, Y))


@pytest.fixture
def small_parts(client, monkeypatch):
    """The joint optimisation divides its blocks into several parts for the workers."""
    panels = vecchia_table.PANELS_PER_CHUNK
    for run in (lambda function, *given: function(*given), client.run):
        run(setattr, vecchia_table, "PANELS_PER_CHUNK", 0.03)
    monkeypatch.setattr(vecchia_table, "CHUNKS_PER_PART", 2)
    yield
    for run in (lambda function, *given: function(*given), client.run):
        run(setattr, vecchia_table, "PANELS_PER_CHUNK", panels)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_workers_compute_parts_of_the_joint_likelihood(on_dask, small_parts, monkeypatch):
    settings = {"kernel": RBF(), "n_neighbours": 6, "max_iter": 2, "random_state": 0}
    n_parts = []
    inner = vecchia_table.parallel_map

    def counted(function, items, execution):
        n_parts.append(len(items))
        return inner(function, items, execution)

    monkeypatch.setattr(vecchia_table, "parallel_map", counted)
    here = LMC(n_jobs=1, **settings).fit(X, Y)
    assert not n_parts
    there = LMC(**settings).fit(X, Y)
    assert set(n_parts) == {3, 4}  # 64 or 80 sites, in chunks of 10 and parts of 20
    assert_same_model(there, here)
    assert_allclose(there.log_marginal_likelihood_value_, here.log_marginal_likelihood_value_)


@posix
def test_the_part_of_a_worker_killed_during_the_joint_optimisation_is_repeated(
    on_dask, small_parts, tmp_path
):
    kernels = (DyingKernel(0.4, mark=str(tmp_path / "died"), survivor=os.getpid()),)
    observations = Observations.from_table(X, Y - Y.mean(axis=0))
    point = kernels[0].theta, np.ones((1, Y.shape[1], 1)), 0.1 * np.eye(Y.shape[1])
    there, here = (
        VecchiaTable.from_sites(observations, kernels, 5, execution=Execution(n_jobs=n))
        for n in (None, 1)
    )
    found = there.evaluate(*point)
    assert (tmp_path / "died").exists()
    for part, expected in zip(found, here.evaluate(*point), strict=True):
        assert_allclose(part, expected, rtol=1e-10)


def test_workers_compute_parts_of_the_sums_over_inducing_points(on_dask, monkeypatch):
    monkeypatch.setattr(sparse, "SITES_PER_BLOCK", 10)
    monkeypatch.setattr(sparse, "SITES_PER_PART", 20)
    observations = Observations.from_table(X, Y - Y.mean(axis=0))
    params, which = np.log([[0.4, 0.1], [0.4, 0.2]]), np.arange(2)
    there, here = (
        VFE(12).divided_objective(observations, RBF(), which, Execution(n_jobs=n))(params, which)
        for n in (None, 1)
    )
    for found, expected in zip(there, here, strict=True):
        assert_allclose(found, expected, rtol=1e-10)


@posix
def test_the_block_of_a_worker_killed_during_a_prediction_is_repeated(client, tmp_path):
    rule = partial(dying_mean, str(tmp_path / "died"), os.getpid())
    model = paper(combine=rule, conditioning=8).fit(X, Y)
    lazy = model.predict(da.from_array(LOCATIONS, chunks=(15, 2)), return_std=True)
    computed = dask.compute(*lazy)
    assert (tmp_path / "died").exists()
    assert_same_predictions(computed, model.predict(LOCATIONS, return_std=True))


@posix
def test_the_blocks_of_workers_killed_in_the_passes_over_a_table_are_repeated(client, tmp_path):
    """One worker dies as it reads a block, in the first pass; one as it applies a transform."""
    reading, transforming = (
        partial(dying_identity, str(tmp_path / name), os.getpid()) for name in ("first", "second")
    )
    params = {
        "box": ([0, 0], [1, 1]),
        "output_transform": FunctionTransformer(transforming, np.asarray),
    }
    sites, readings = table(np.random.default_rng(2), N=40_000)
    lazy = da.from_array(sites, chunks=(8000, 2)).map_blocks(reading, dtype=float, meta=sites)
    killed = quick(**params).fit(lazy, da.from_array(readings, chunks=(8000, 2)))
    assert (tmp_path / "first").exists()
    assert (tmp_path / "second").exists()
    alone = quick(**params).fit(sites, readings)
    assert_same_model(killed, alone)
    assert killed.n_sites_ == alone.n_sites_
