"""Beliefs about latent processes, against the conditional distribution by plain inversion."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import gram, known_model, readings, world

from emgpr.prediction import condition, condition_latents
from emgpr.weights import aligned

WORLDS = {
    "full table": {},
    "missing readings": {"missing": 0.4},
    "one latent": {"Q": 1},
    "more latents than tasks": {"Q": 4, "D": 2, "k": 1},
    "one task": {"Q": 2, "D": 1, "k": 1},
    "one site": {"N": 1},
    "correlated noise, missing readings": {"correlated": True, "missing": 0.4},
}


@pytest.fixture(params=WORLDS.values(), ids=WORLDS.keys())
def made(request, rng):
    return world(rng, **request.param)


@pytest.fixture
def x_new(rng):
    return rng.uniform(-0.5, 1.5, size=(6, 2))


def by_inversion(made, x_new):
    """Mean and variance of every process, one after another."""
    x, task, y = readings(made)
    K = gram(made)
    Q, _, k = made.W.shape
    mean, var = np.empty((2, len(x_new), Q, k))
    for q, kernel in enumerate(made.kernels):
        for j in range(k):
            cross = kernel(x_new, x) * made.W[q, task, j]
            mean[:, q, j] = cross @ np.linalg.solve(K, y)
            var[:, q, j] = 1 - np.einsum("mn,nm->m", cross, np.linalg.solve(K, cross.T))
    return mean, var


@pytest.mark.parametrize("n_neighbours", [None, 99])
def test_it_is_the_conditional_distribution(made, x_new, n_neighbours):
    told = condition_latents(
        made.seen, x_new, made.kernels, made.W, made.noise, n_neighbours=n_neighbours
    )
    for ours, theirs in zip(told, by_inversion(made, x_new), strict=True):
        assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_weighted_they_add_up_to_the_outputs(made, x_new):
    mean, _ = condition_latents(made.seen, x_new, made.kernels, made.W, made.noise)
    signals = condition(made.seen, x_new, made.kernels, made.W[None], made.noise)
    assert_allclose(np.einsum("mqj,qdj->md", mean, made.W), signals.mean[0], rtol=1e-9, atol=1e-9)


def test_neighbours_are_those_near_each_site(rng):
    """Two clusters far apart: the other one says nothing."""
    made = world(rng, N=20)
    made.X[10:] += 50.0
    x_new = np.vstack([made.X[:3], made.X[12:15]]) + 0.01
    near = condition_latents(made.seen, x_new, made.kernels, made.W, made.noise, n_neighbours=10)
    everything = condition_latents(made.seen, x_new, made.kernels, made.W, made.noise)
    for ours, theirs in zip(near, everything, strict=True):
        assert_allclose(ours, theirs, atol=1e-6)


def test_a_latent_that_no_output_hears_keeps_its_prior(rng, x_new):
    made = world(rng)
    made.W[1] = 0.0
    mean, var = condition_latents(made.seen, x_new, made.kernels, made.W, made.noise)
    assert (mean[:, 1] == 0).all()
    assert_allclose(var[:, 1], 1.0)
    assert (var[:, 0] < 1).any()


def test_the_estimator_gives_those_of_aligned_weights(rng, x_new):
    made = world(rng, missing=0.2)
    model = known_model(made)
    mean, std = model.predict_latents(x_new, return_std=True)
    turned = made.table(made.Y)
    turned = type(made)(made.X, made.Y, made.kernels, aligned(made.W[None])[0], made.noise)
    expected, var = by_inversion(turned, x_new)
    assert_allclose(mean, expected, rtol=1e-8, atol=1e-8)
    assert_allclose(std, np.sqrt(var), rtol=1e-8)
    assert_allclose(model.predict_latents(x_new), mean)


def test_an_ensembles_are_those_of_the_mixture(rng, x_new):
    made = world(rng)
    model = known_model(made)
    # A member turned round is the same member.
    model.weights_ = np.stack([made.W, -made.W])
    both = model.predict_latents(x_new, return_std=True)
    model.weights_ = made.W[None]
    for ours, theirs in zip(both, model.predict_latents(x_new, return_std=True), strict=True):
        assert_allclose(ours, theirs, rtol=1e-8, atol=1e-8)
    model.weights_ = np.stack([made.W, 0 * made.W])  # the other knows nothing
    mean, std = model.predict_latents(x_new, return_std=True)
    model.weights_ = made.W[None]
    alone, own = model.predict_latents(x_new, return_std=True)
    assert_allclose(mean, alone / 2, atol=1e-8)
    assert_allclose(std**2, (own**2 + 1) / 2 + (alone / 2) ** 2, rtol=1e-8)
