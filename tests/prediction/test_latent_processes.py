"""The latent processes given the readings, against plain inversion."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from emgpr.prediction import condition, condition_latents
from emgpr.weights import aligned
from tests.simulated import gram, known_model, readings, with_weights, world

module = sys.modules[condition_latents.__module__]

WORLDS = {
    "a complete table": {},
    "one latent": {"Q": 1},
    "more latents than outputs": {"Q": 4, "D": 2, "k": 1},
    "one output at one site": {"Q": 2, "D": 1, "k": 1, "N": 1},
    "correlated noise, missing readings": {"correlated": True, "missing": 0.4},
}


@pytest.fixture(params=WORLDS.values(), ids=WORLDS.keys())
def made(request, rng):
    return world(rng, **request.param)


@pytest.fixture
def x_new(rng):
    return rng.uniform(-0.5, 1.5, size=(6, 2))


def by_inversion(made, x_new, W=None):
    """Mean and variance of every process, one after another."""
    x, output, y = readings(made)
    K, W = gram(made), made.W if W is None else W
    Q, _, k = W.shape
    mean, var = np.empty((2, len(x_new), Q, k))
    for q, kernel in enumerate(made.kernels):
        for j in range(k):
            cross = kernel(x_new, x) * W[q, output, j]
            mean[:, q, j] = cross @ np.linalg.solve(K, y)
            reduction = np.einsum("mn,nm->m", cross, np.linalg.solve(K, cross.T))
            var[:, q, j] = kernel.diag(x_new) - reduction
    return mean, var


def check(result, expected, **tolerance):
    for ours, theirs in zip(result, expected, strict=True):
        assert_allclose(ours, theirs, **{"rtol": 1e-9, "atol": 1e-9} | tolerance)


@pytest.mark.parametrize("n_neighbours", [None, 99])
def test_it_is_the_conditional_distribution(made, x_new, n_neighbours):
    given = made.observations, x_new, made.model
    check(condition_latents(*given, n_neighbours=n_neighbours), by_inversion(made, x_new))


def test_the_weighted_sum_of_the_processes_is_the_signal(made, x_new):
    mean, _ = condition_latents(made.observations, x_new, made.model)
    signals = condition(made.observations, x_new, made.model)
    assert_allclose(np.einsum("mqj,qdj->md", mean, made.W), signals.mean[0], rtol=1e-9, atol=1e-9)


def test_neighbours_are_those_near_each_tile_of_locations(rng):
    """Two clusters far apart do not inform each other, and tiles hold 32 locations."""
    made = world(rng, N=20)
    made.X[10:] += 50.0
    x_new = np.vstack([np.repeat(made.X[:4], 8, axis=0), made.X[12:15]]) + 0.01
    order = rng.permutation(len(x_new))
    near, everything = (
        condition_latents(made.observations, x_new[order], made.model, n_neighbours=n)
        for n in (10, None)
    )
    check(near, everything, atol=1e-6)
    fewer = condition_latents(made.observations, x_new[order], made.model, n_neighbours=1)
    assert not np.allclose(fewer[0], near[0], atol=1e-3)


def test_locations_are_taken_in_lexicographic_tiles():
    x = np.array([[2.0, 1.0], [1.0, 9.0], [2.0, 0.0], [0.0, 5.0], [1.0, 3.0]])
    assert [tile.tolist() for tile in module._tiles(x, 2)] == [[3, 4], [1, 2], [0]]
    assert list(module._tiles(x[:0], 0)) == []


def test_chunks_of_locations_change_nothing(rng, x_new, monkeypatch):
    made = world(rng, missing=0.2)
    given = made.observations, x_new, made.model
    whole = condition_latents(*given)
    monkeypatch.setattr(module, "chunk_bytes", lambda device: 1.0)
    check(condition_latents(*given), whole, rtol=1e-12)


def test_a_latent_without_weights_keeps_its_prior(rng, x_new):
    made = world(rng)
    made.W[1] = 0.0
    kernels = (made.kernels[0], ConstantKernel(3.0) * RBF(0.2), made.kernels[2])
    mean, var = condition_latents(
        made.observations, x_new, type(made.model)(kernels, made.W[None], made.noise)
    )
    assert_array_equal(mean[:, 1], 0.0)
    assert_allclose(var[:, 1], 3.0)
    assert (var[:, 0] < 1).any()


def test_without_readings_the_priors_remain(rng, x_new):
    made = world(rng)
    empty = made.table(np.full_like(made.Y, np.nan)).observations
    for n in (None, 3):
        mean, var = condition_latents(empty, x_new, made.model, n_neighbours=n)
        assert_array_equal(mean, 0.0)
        assert_array_equal(var, np.ones((6, 3, 2)))


def test_variances_are_not_negative(rng):
    """At the sites themselves, almost without noise."""
    made = world(rng, Q=1, D=1, k=1, noise=1e-14)
    assert condition_latents(made.observations, made.X, made.model)[1].min() >= 0.0


def test_on_a_device_it_is_the_same(rng, x_new, device):
    made = world(rng, missing=0.3, correlated=True)
    given = made.observations, x_new, made.model
    for n in (None, 4):
        here, there = (
            condition_latents(*given, n_neighbours=n, device=where) for where in ("cpu", device)
        )
        assert isinstance(there[0], np.ndarray)
        check(there, here, rtol=1e-8)


def test_the_estimator_predicts_those_of_aligned_weights(rng, x_new):
    made = world(rng, missing=0.2)
    model = known_model(made)
    mean, std = model.predict_latents(x_new, return_std=True)
    expected, var = by_inversion(made, x_new, aligned(made.W[None])[0])
    check((mean, std), (expected, np.sqrt(var)), rtol=1e-8, atol=1e-8)
    assert_allclose(model.predict_latents(x_new), mean)


def test_an_ensemble_has_those_of_the_mixture_of_its_members(rng, x_new):
    made = world(rng)
    model = known_model(made)
    alone, own = model.predict_latents(x_new, return_std=True)
    # A member with the opposite sign is the same member.
    both = with_weights(model, np.stack([made.W, -made.W])).predict_latents(x_new, return_std=True)
    check(both, (alone, own), rtol=1e-8, atol=1e-8)
    half = with_weights(model, np.stack([made.W, 0 * made.W]))  # the other has no signal
    mean, std = half.predict_latents(x_new, return_std=True)
    assert_allclose(mean, alone / 2, atol=1e-8)
    assert_allclose(std**2, (own**2 + 1) / 2 + (alone / 2) ** 2, rtol=1e-8)
