"""A latent that ends between neighbouring sites is noise by another name."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import start_of, world
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from emgpr.covariance import log_likelihood
from emgpr.kernels import matrices
from emgpr.observations import Observations
from emgpr.weights import Mixture, fit_weights, refine
from emgpr.weights.fit import without_transfer
from emgpr.weights.refine import _given_to_the_noise, _is_noise

SHORT = 1e-4


@pytest.fixture
def seen(rng):
    x = rng.uniform(size=(20, 2))
    return Observations.from_table(np.concatenate([x, x[:5]]), rng.normal(size=(25, 3)))


def a_mixture(rng, *kernels):
    Q = len(kernels)
    noise = np.diag([0.1, 0.2, 0.3])
    return Mixture(kernels, noise, rng.normal(size=(Q, 3, 2)), np.tile([1e-8, 1e2], (3, 1)))


def test_it_is_heard_and_has_nothing_to_say_to_the_nearest_other_site(rng, seen):
    """Sites that were visited twice are one: at no distance every latent says something."""
    mixture = a_mixture(rng, RBF(0.5), RBF(SHORT), ConstantKernel(100.0) * RBF(SHORT), RBF(SHORT))
    W = np.stack([mixture.W] * 2)
    W[:, 3] = 0.0
    assert_array_equal(_is_noise(mixture, W, seen), [False, True, True, False])
    W[1, 3, 0, 0] = 0.1  # heard by one task of one member
    assert_array_equal(_is_noise(mixture, W, seen), [False, True, True, True])


def test_of_a_single_site_nothing_can_be_told(rng, seen):
    mixture = a_mixture(rng, RBF(SHORT), RBF(1.0))
    assert not _is_noise(mixture, mixture.W[None], seen.at([0, 20])).any()
    assert_array_equal(_is_noise(mixture, mixture.W[None], seen.at([0, 1])), [True, False])


@pytest.mark.parametrize("power", [1.0, 4.0])
def test_given_to_the_noise_the_table_is_as_likely_as_it_was(rng, seen, power):
    seen = seen.at(np.arange(20))
    mixture = a_mixture(rng, RBF(0.5), ConstantKernel(power) * RBF(SHORT))
    quiet = np.array([False, True])
    told, W = _given_to_the_noise(mixture, mixture.W[None], quiet, seen)
    assert_array_equal(W[0, 0], mixture.W[0])
    assert_array_equal(W[0, 1], 0.0)
    K = matrices(mixture.kernels, seen.x)
    before = log_likelihood(seen, mixture.W, mixture.noise, K).value
    assert_allclose(log_likelihood(seen, W[0], told.noise, K).value, before)


def test_of_several_members_the_noise_gets_the_mean(rng, seen):
    mixture = a_mixture(rng, RBF(SHORT))
    W = rng.normal(size=(4, 1, 3, 2))
    told, _ = _given_to_the_noise(mixture, W, np.array([True]), seen)
    heard = np.mean([w @ w.T for w in W[:, 0]], axis=0)
    assert_allclose(told.noise - mixture.noise, heard)


def test_the_joint_ascent_gives_it_away_if_that_costs_little(rng):
    """The second latent begins as noise that the outputs share, and there is no other such."""
    made = world(rng, N=40, D=2, Q=1, k=1, noise=0.3, correlated=True)
    kernels = (made.kernels[0], RBF(SHORT, (SHORT, 1.0)))
    W = np.concatenate([made.W, np.full((1, 2, 1), 0.5)])
    start = start_of(made, kernels=kernels, noise=np.diag(np.diag(made.noise)), W=W)
    parts = [np.arange(40)]
    fitted = fit_weights(made.seen, parts, start, max_iter=30)
    ends = {
        correlated: refine(
            made.seen, parts, start, fitted, sweeps="joint", correlated=correlated, max_iter=60
        )
        for correlated in (False, True)
    }
    assert ends[False].members.W[0, 1].any()
    assert not ends[True].members.W[0, 1].any()
    assert ends[True].mixture.noise[0, 1] != 0.0
    lost = ends[False].members.log_likelihood[0] - ends[True].members.log_likelihood[0]
    assert lost <= 2.0  # the weights that it had
    assert_allclose(ends[True].history[-1].log_likelihood, ends[True].members.log_likelihood[0])


def test_without_transfer_the_start_is_the_end(rng):
    start = a_mixture(rng, RBF(0.5), RBF(1.0))
    fitted = without_transfer(start, -12.5)
    assert_array_equal(fitted.W, start.W[None])
    assert fitted.log_likelihood.tolist() == [-12.5]
    assert fitted.converged.tolist() == [True]
    assert fitted.n_iter.tolist() == [0]
