"""The product of experts is the product of the likelihoods of its batches."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from emgpr.latents import Exact, PoE
from emgpr.latents.product_of_experts import batch_log_likelihood
from emgpr.observations import Observations
from tests.finite_differences import assert_is_the_gradient

KERNEL = ConstantKernel(1.7) * Matern([0.4, 0.8], nu=1.5)
PARAMS = np.append(KERNEL.theta, np.log(0.08))[None]
FIRST = np.zeros(1, int)


@pytest.fixture
def table(rng):
    x = rng.uniform(size=(70, 2))
    return Observations.from_table(x, np.sin(6 * x) + 0.3 * rng.normal(size=(70, 2)))


def value(learner, table, device="cpu"):
    """The log-likelihood of the second output."""
    objective = learner.objective(learner.select_sites(table), KERNEL, np.array([1]), device)
    return -objective(PARAMS, FIRST)[0][0]


def log_density(table):
    cov = KERNEL(table.x) + 0.08 * np.eye(table.n_sites)
    return multivariate_normal(np.zeros(table.n_sites), cov).logpdf(table.y[1])


def test_the_objective_is_the_sum_over_the_batches(table):
    learner = PoE(batch_size=24, n_batches=2)
    selected = learner.select_sites(table)
    assert selected.n_sites in (46, 47, 48)  # two of three batches
    parts = np.array_split(np.arange(selected.n_sites), 2)
    assert_allclose(value(learner, table), sum(log_density(selected.at(part)) for part in parts))


@pytest.mark.parametrize("learner", [PoE(), Exact()], ids=repr)
def test_one_batch_is_the_exact_likelihood(table, learner):
    assert_allclose(value(learner, table), log_density(table))


@pytest.mark.parametrize("learner", [PoE(24, 2), Exact()], ids=repr)
def test_gradients_equal_finite_differences(table, learner):
    objective = learner.objective(learner.select_sites(table), KERNEL, np.array([1]))
    _, gradient = objective(PARAMS, FIRST)
    assert_is_the_gradient(gradient[0], lambda p: objective(p[None], FIRST)[0][0], PARAMS[0])


def test_a_device_gives_the_same(table, device):
    learner = PoE(24, 2)
    assert_allclose(value(learner, table, device), value(learner, table))


def test_the_number_of_batches_is_limited(rng):
    table = Observations.from_table(rng.uniform(size=(1000, 2)), rng.normal(size=(1000, 1)))
    assert PoE(100, 3).select_sites(table).n_sites == 300
    assert PoE(100, 30).select_sites(table).n_sites == 1000
    assert PoE(5000).select_sites(table) is table
    assert PoE(100, 3).batch_counts(1000) == (3, 100)


def test_kernels_of_other_learners_are_given_the_likelihood_of_batches(table):
    found, n = batch_log_likelihood(table.x, table.y[1], KERNEL, 0.08)
    assert n == 70
    assert_allclose(found, log_density(table))
