"""Latent processes that are noise: how they are found, and what becomes of them."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from emgpr.covariance import log_likelihood
from emgpr.kernels import kernel_matrices
from emgpr.observations import Observations
from emgpr.weights import (
    FittedWeights,
    LMCParameters,
    fit_weights,
    refine,
)
from tests.simulated import start_of, world

pytestmark = pytest.mark.slow
joint = sys.modules[refine.__module__]
SHORT = 1e-4


@pytest.fixture
def table(rng):
    x = rng.uniform(size=(20, 2))
    return Observations.from_table(np.concatenate([x, x[:5]]), rng.normal(size=(25, 3)))


def parameters_of(rng, *kernels):
    noise = np.diag([0.1, 0.2, 0.3])
    W = rng.normal(size=(len(kernels), 3, 2))
    return LMCParameters(kernels, noise, W, np.tile([1e-8, 1e2], (3, 1)))


def test_a_latent_in_use_without_correlation_between_nearest_sites_is_noise(rng, table):
    """Repeated sites count once: without a distance, everything is correlated."""
    parameters = parameters_of(
        rng, RBF(0.5), RBF(SHORT), ConstantKernel(100.0) * RBF(SHORT), RBF(SHORT)
    )
    W = np.stack([parameters.W] * 2)
    W[:, 3] = 0.0
    assert_array_equal(joint.is_noise(parameters, W, table), [False, True, True, False])
    W[1, 3, 0, 0] = 0.1  # of one output of one member
    assert_array_equal(joint.is_noise(parameters, W, table), [False, True, True, True])


@pytest.mark.parametrize(("correlation", "noise"), [(0.06, False), (0.04, True)])
def test_a_correlation_below_a_twentieth_is_none(rng, correlation, noise):
    pair = Observations.from_table(np.array([[0.0], [1.0]]), rng.normal(size=(2, 3)))
    length = np.sqrt(-0.5 / np.log(correlation))
    parameters = parameters_of(rng, RBF(length))
    assert joint.is_noise(parameters, parameters.W[None], pair).tolist() == [noise]


def test_a_single_site_says_nothing_about_noise(rng, table):
    parameters = parameters_of(rng, RBF(SHORT), RBF(1.0))
    W = parameters.W[None]
    assert not joint.is_noise(parameters, W, table.at([0, 20])).any()
    assert_array_equal(joint.is_noise(parameters, W, table.at([0, 1])), [True, False])


@pytest.mark.parametrize("variance", [1.0, 4.0])
def test_as_noise_such_a_latent_leaves_the_likelihood_as_it_was(rng, table, variance):
    table = table.at(np.arange(20))
    parameters = parameters_of(rng, RBF(0.5), ConstantKernel(variance) * RBF(SHORT))
    noisy = np.array([False, True])
    moved, W = joint.move_to_noise(parameters, parameters.W[None], noisy, table)
    assert_array_equal(W[0, 0], parameters.W[0])
    assert_array_equal(W[0, 1], 0.0)
    K = kernel_matrices(parameters.kernels, table.x)
    before = log_likelihood(table, parameters.W, parameters.noise, K).value
    assert_allclose(log_likelihood(table, W[0], moved.noise, K).value, before)


def test_the_noise_gets_the_mean_of_several_members(rng, table):
    parameters = parameters_of(rng, RBF(SHORT))
    W = rng.normal(size=(4, 1, 3, 2))
    moved, _ = joint.move_to_noise(parameters, W, np.array([True]), table)
    B = np.mean([w @ w.T for w in W[:, 0]], axis=0)
    assert_allclose(moved.noise - parameters.noise, B)


def test_the_joint_optimisation_makes_a_latent_noise_if_that_costs_little(rng):
    """The second latent starts as noise that the outputs share."""
    made = world(rng, N=40, D=2, Q=1, k=1, noise=0.3, correlated=True)
    kernels = (made.kernels[0], RBF(SHORT, (SHORT, 1.0)))
    W = np.concatenate([made.W, np.full((1, 2, 1), 0.5)])
    start = start_of(made, kernels=kernels, noise=np.diag(np.diag(made.noise)), W=W)
    batches = [np.arange(40)]
    fitted = fit_weights(made.observations, batches, start, max_iter=30)
    ends = {
        correlated: refine(
            made.observations, batches, start, fitted,
            sweeps="joint", correlated=correlated, max_iter=60,
        )
        for correlated in (False, True)
    }  # fmt: skip
    assert ends[False].members.W[0, 1].any()
    assert not ends[True].members.W[0, 1].any()
    assert ends[True].parameters.noise[0, 1] != 0.0
    lost = ends[False].members.log_likelihood[0] - ends[True].members.log_likelihood[0]
    assert lost <= 2.0  # the number of its weights
    assert_allclose(ends[True].history[-1].log_likelihood, ends[True].members.log_likelihood[0])


def test_a_latent_that_is_worth_its_weights_stays(rng, monkeypatch):
    """Here everything counts as noise, and giving up the only signal costs too much."""
    made = world(rng, N=30, D=2, Q=1, k=1, noise=0.01)
    start, batches = start_of(made), [np.arange(30)]
    fitted = FittedWeights.fixed(made.W[None])
    how = {"sweeps": "joint", "correlated": True, "max_iter": 20}
    plain = refine(made.observations, batches, start, fitted, **how)
    monkeypatch.setattr(joint, "NOISE_CORRELATION", 2.0)
    kept = refine(made.observations, batches, start, fitted, **how)
    assert_array_equal(kept.members.W, plain.members.W)
    assert kept.history == plain.history
