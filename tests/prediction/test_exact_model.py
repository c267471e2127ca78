"""The model that predictions are made with, and the outputs that it couples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF

from emgpr.arrays import JitterWarning, NumericalError
from emgpr.prediction import LMCModel
from emgpr.prediction.exact import factor_readings
from tests.simulated import KERNELS, covariance, world


def groups(model):
    return [(g.outputs.tolist(), g.latents.tolist()) for g in model.coupled_outputs()]


def coupled_by(W, noise, L=1):
    W = np.asarray(W, float)[..., None]
    kernels = tuple(RBF(q + 1.0) for q in range(len(W)))
    return LMCModel(kernels, np.stack([W] * L), np.asarray(noise, float))


def test_outputs_that_share_no_latent_are_groups_of_their_own():
    W = [[1, -1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    assert groups(coupled_by(W, np.eye(4))) == [([0, 1], [0]), ([2], [1]), ([3], [2])]


def test_outputs_coupled_through_a_third_are_one_group():
    W = [[1, 1, 0], [0, 1, 1]]
    assert groups(coupled_by(W, np.eye(3))) == [([0, 1, 2], [0, 1])]


def test_outputs_coupled_by_their_noise_alone_are_one_group():
    noise = np.array([[1.0, 0.0, -0.3], [0.0, 1.0, 0.0], [-0.3, 0.0, 1.0]])
    assert groups(coupled_by(np.eye(3), noise)) == [([0, 2], [0, 2]), ([1], [1])]


def test_an_output_without_weights_has_no_latents():
    assert groups(coupled_by([[1, 0]], np.eye(2))) == [([0], [0]), ([1], [])]


def test_outputs_that_one_member_couples_are_one_group():
    model = coupled_by(np.eye(2), np.eye(2), L=2)
    assert len(groups(model)) == 2
    model.weights[1, 0, 1] = 0.1
    assert groups(LMCModel(model.kernels, model.weights, model.noise)) == [([0, 1], [0, 1])]


def test_a_group_has_its_part_of_the_model(rng):
    W = rng.normal(size=(2, 3, 4, 2))
    W[:, 0, [1, 3]] = W[:, 1, [0, 2]] = W[:, 2, [1, 3]] = 0.0
    noise = np.diag([1.0, 2.0, 3.0, 4.0])
    noise[1, 3] = noise[3, 1] = 0.5
    model = LMCModel(KERNELS[:3], W, noise)
    first, second = model.coupled_outputs()
    assert (first.outputs.tolist(), first.latents.tolist()) == ([0, 2], [0, 2])
    assert first.kernels == [KERNELS[0], KERNELS[2]]
    assert_array_equal(first.B, model.B[:, [0, 2]][:, :, [0, 2]][..., [0, 2]])
    assert_array_equal(first.noise, np.diag([1.0, 3.0]))
    assert_array_equal(second.noise, [[2.0, 0.5], [0.5, 4.0]])


def test_properties_of_the_ensemble(rng):
    made = world(rng)
    model = made.ensemble(rng.normal(size=(4, *made.W.shape)))
    assert model.n_members == 4
    assert_allclose(model.B[1, 2], model.weights[1, 2] @ model.weights[1, 2].T)
    some = model.members(range(2, 4))
    assert_array_equal(some.weights, model.weights[2:])
    assert some.kernels is model.kernels
    assert not model.correlated_noise
    assert world(rng, correlated=True).model.correlated_noise


def test_the_prior_covariance_is_that_of_the_signals(rng):
    made = world(rng, k=1)
    x, outputs = rng.uniform(size=(4, 2)), np.arange(3)
    prior = made.model.prior_covariance(x)
    assert prior.shape == (1, 4, 3, 3)
    for i, location in enumerate(x):
        there = np.tile(location, (3, 1))
        assert_allclose(prior[0, i], covariance(made, there, outputs, there, outputs))
    (group,) = made.model.coupled_outputs()
    assert_array_equal(group.prior_covariance(x), prior)
    alone = coupled_by([[1, 0]], np.eye(2), L=3)
    _, without = alone.coupled_outputs()
    assert_array_equal(without.prior_covariance(x), np.zeros((3, 4, 1, 1)))


def test_a_covariance_that_needs_jitter_is_reported_and_an_indefinite_one_refused(rng):
    made = world(rng, Q=1, D=1, k=1, N=3)
    table = made.observations.at([0, 1, 2, 0, 1, 2])
    B, K = made.model.B[0], made.K[:, [0, 1, 2, 0, 1, 2]][:, :, [0, 1, 2, 0, 1, 2]]
    with pytest.warns(JitterWarning, match="covariance of the 6 readings used for"):
        factor_readings(table, B, np.zeros((1, 1)), K)
    with pytest.raises(NumericalError, match=r"covariance of the 6 readings .* not positive def"):
        factor_readings(table, B, np.full((1, 1), -0.5), K)
    tables = made.observations.at(np.array([[0, 1, 0], [2, 1, 2]]))
    batch = np.stack([made.K[:, s][:, :, s] for s in ([0, 1, 0], [2, 1, 2])])
    with pytest.warns(JitterWarning, match="covariance of 3 neighbouring sites"):
        factor_readings(tables, B, np.zeros((1, 1)), batch)
