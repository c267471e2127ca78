"""Sums over parts of the sites are the same for any number of parts and of workers."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from emgpr import IndependentGP
from emgpr.latents import FITC, PITC, VFE, Exact, inducing_sums, maximum_likelihood
from emgpr.observations import Observations
from emgpr.parallel import Execution, parallel_map

KERNEL = ConstantKernel(1.7) * Matern([0.4, 0.8], nu=1.5)
PARAMS = np.stack([np.append(KERNEL.theta, np.log(noise)) for noise in (0.08, 0.2)])
TWO = Execution(n_jobs=2)


@pytest.fixture
def table(rng):
    """Two outputs at 200 sites."""
    x = rng.uniform(size=(200, 2))
    return Observations.from_table(x, np.sin(6 * x) + 0.3 * rng.normal(size=(200, 2)))


@pytest.fixture
def small_parts(monkeypatch):
    """Parts of at most 30 sites, in blocks of at most 10."""
    monkeypatch.setattr("emgpr.latents.sparse.SITES_PER_BLOCK", 10)
    monkeypatch.setattr("emgpr.latents.sparse.SITES_PER_PART", 30)


@pytest.fixture
def tasks(monkeypatch):
    """The tasks that workers received."""
    received = []

    def record(function, items, execution, **settings):
        received.extend(items)
        return parallel_map(function, items, execution, **settings)

    monkeypatch.setattr(inducing_sums, "parallel_map", record)
    return received


def evaluate(learner, table, execution):
    objective = learner.divided_objective(table, KERNEL, np.array([1, 0]), execution)
    return objective(PARAMS, np.arange(2))


@pytest.mark.parametrize("learner", [VFE(18), FITC(18), PITC(18, block_size=9)], ids=repr)
def test_parts_have_the_sum_of_the_whole(table, learner, monkeypatch):
    whole = evaluate(learner, table, Execution(n_jobs=1))
    for sites in (30, 100):
        monkeypatch.setattr("emgpr.latents.sparse.SITES_PER_BLOCK", 10)
        monkeypatch.setattr("emgpr.latents.sparse.SITES_PER_PART", sites)
        for one, other in zip(evaluate(learner, table, Execution()), whole, strict=True):
            assert_allclose(one, other, rtol=1e-9)


def test_workers_have_the_same_sums_as_one_process(table, small_parts, tasks):
    found = evaluate(VFE(18), table, TWO)
    assert len(tasks) == 2 * 2 * 7  # rounds, problems and parts
    alone = evaluate(VFE(18), table, Execution(n_jobs=1))
    assert len(tasks) == 28
    for one, other in zip(found, alone, strict=True):
        assert_allclose(one, other, rtol=1e-12)


def test_the_memory_of_a_worker_does_not_grow_with_the_readings(table, small_parts, tasks):
    """A task contains the sites of its part and matrices of the inducing points."""
    evaluate(VFE(18), table.at(np.arange(100)), TWO)
    few = max(len(pickle.dumps(task)) for task in tasks)
    tasks.clear()
    evaluate(VFE(18), table, TWO)
    sites = [sum(len(x) for x, _ in task.part) for task in tasks]
    assert sum(sites) == 2 * 2 * 200
    assert max(sites) <= 30
    assert max(len(pickle.dumps(task)) for task in tasks) < 1.1 * few


def test_a_kernel_that_cannot_be_factorised_does_not_affect_other_problems(table, small_parts):
    objective = VFE(18).divided_objective(table, KERNEL, np.array([1, 0]), TWO)
    bad = PARAMS.copy()
    bad[0] = np.nan
    values, gradients = objective(bad, np.arange(2))
    assert values[0] == np.inf
    assert not gradients[0].any()
    assert values[1] == pytest.approx(evaluate(VFE(18), table, Execution())[0][1])


def test_a_fit_with_workers_equals_that_in_one_process(table, small_parts, tasks, tmp_path):
    """Also if one output was measured at too few sites for several parts."""
    Y = table.y.T.copy()
    Y[25:, 1] = np.nan
    settings = {"latent_learner": VFE(18), "output_transform": None, "random_state": 0}
    alone = IndependentGP(RBF(), **settings).fit(table.x, Y)
    assert not tasks
    checkpoint = tmp_path / "fit"
    shared = IndependentGP(RBF(), **settings, n_jobs=2, checkpoint=checkpoint).fit(table.x, Y)
    assert tasks
    for one, other in zip(alone.kernels_, shared.kernels_, strict=True):
        assert_allclose(one.theta, other.theta, atol=1e-6)
    assert_allclose(alone.noise_, shared.noise_, rtol=1e-6)


def test_other_learners_are_not_divided(table):
    assert Exact().n_parts(10**6) == 1
    assert not maximum_likelihood._is_divided(Exact(), table, TWO)
    values, _ = evaluate(Exact(), table, TWO)
    assert np.isfinite(values).all()
