"""Conditioning on all readings, against the conditional distribution by plain inversion."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr.prediction import condition, condition_on_neighbours
from tests.simulated import posterior, world

exact, neighbours = (sys.modules[f.__module__] for f in (condition, condition_on_neighbours))

WORLDS = {
    "a complete table": {},
    "missing readings": {"missing": 0.4},
    "one latent": {"Q": 1},
    "more latents than outputs": {"Q": 4, "D": 2, "k": 1},
    "one output": {"Q": 2, "D": 1, "k": 1},
    "one site": {"N": 1},
    "correlated noise, missing readings": {"correlated": True, "missing": 0.4},
}


def all_neighbours(observations, x, model, **given):
    return condition_on_neighbours(observations, x, model, 99, **given)


BOTH = {"all readings": condition, "all as neighbours": all_neighbours}
both_ways = pytest.mark.parametrize("way", BOTH.values(), ids=BOTH)


def check(predicted, expected, atol=1e-8):
    mean, cov = expected
    assert_allclose(predicted.mean[0], mean, rtol=1e-8, atol=atol)
    assert_allclose(predicted.cov[0], cov, rtol=1e-8, atol=atol)


@both_ways
@pytest.mark.parametrize("given", WORLDS.values(), ids=WORLDS)
def test_it_is_the_conditional_distribution(rng, given, way):
    made = world(rng, **given)
    x_new = np.vstack([rng.uniform(-0.5, 1.5, size=(5, 2)), made.X[:1]])
    check(way(made.observations, x_new, made.model), posterior(made, x_new))


@both_ways
def test_every_member_has_its_own_weights(rng, way):
    made = world(rng, missing=0.2, correlated=True)
    W = np.stack([made.W, rng.normal(size=made.W.shape)])
    x_new = rng.uniform(size=(4, 2))
    predicted = way(made.observations, x_new, made.ensemble(W))
    for member, own in enumerate(W):
        mean, cov = posterior(replace(made, W=own), x_new)
        assert_allclose(predicted.mean[member], mean, atol=1e-8)
        assert_allclose(predicted.cov[member], cov, atol=1e-8)


@both_ways
def test_chunks_of_locations_change_nothing(rng, monkeypatch, way):
    made = world(rng, missing=0.2, correlated=True)
    given = made.observations, rng.uniform(size=(7, 2)), made.model
    whole = way(*given)
    for module in (exact, neighbours):
        monkeypatch.setattr(module, "chunk_bytes", lambda device: 1.0)
    pieces = way(*given)
    assert_allclose(pieces.mean, whole.mean, rtol=1e-12)
    assert_allclose(pieces.cov, whole.cov, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(
    ("way", "bytes_each"),
    [
        # N (D² + Q + P) numbers for each location; (N D)² (3 D² + Q + P) for neighbours.
        (condition, 8 * 12 * (9 + 3 + 2)),
        (all_neighbours, 8 * 12**2 * (27 + 3 + 2)),
    ],
)
def test_chunks_fit_the_memory(rng, monkeypatch, way, bytes_each):
    made = world(rng)
    sizes = []
    for module in (exact, neighbours):
        real = module.kernel_matrices

        def noted(kernels, x, z=None, real=real):
            if z is not None:
                sizes.append(len(z))
            return real(kernels, x, *(() if z is None else (z,)))

        monkeypatch.setattr(module, "kernel_matrices", noted)
        monkeypatch.setattr(module, "chunk_bytes", lambda device: 3.5 * bytes_each)
    way(made.observations, rng.uniform(size=(7, 2)), made.model)
    assert sizes == [3, 3, 1]


def test_means_alone_are_the_same_without_covariances(rng):
    made = world(rng, missing=0.2)
    given = made.observations, rng.uniform(size=(4, 2)), made.model
    means = condition(*given, with_cov=False)
    assert_allclose(means.mean, condition(*given).mean, rtol=1e-12)
    assert_array_equal(means.cov, np.zeros((1, 4, 3, 3)))


@both_ways
def test_outputs_that_share_no_latent_are_conditioned_separately_and_exactly(rng, way):
    made = world(rng, Q=3, D=4, k=1, missing=0.2)
    W = made.W.copy()
    W[0, [2, 3]] = W[1, [0, 1, 3]] = W[2, [0, 1, 2]] = 0.0  # {0, 1} through latent 0; 2; 3
    made = replace(made, W=W)
    x_new = rng.uniform(size=(4, 2))
    check(way(made.observations, x_new, made.model), posterior(made, x_new))


@both_ways
def test_outputs_coupled_by_their_noise_inform_each_other(rng, way):
    made = world(rng, Q=3, D=3, k=1, missing=0.3, correlated=True)
    noise = made.noise.copy()
    noise[1, [0, 2]] = noise[[0, 2], 1] = 0.0
    made = replace(made, W=np.eye(3)[..., None], noise=noise)
    x_new = rng.uniform(size=(4, 2))
    predicted = way(made.observations, x_new, made.model)
    check(predicted, posterior(made, x_new))
    apart = replace(made, noise=np.diag(np.diag(noise)))
    assert not np.allclose(
        way(made.observations, x_new, apart.model).mean, predicted.mean, atol=1e-3
    )
    assert np.all(np.abs(predicted.cov[0][:, 0, 2]) > 1e-6)


def test_an_output_without_a_signal_informs_about_the_noise_of_another(rng):
    """A blank channel, measured because it shares the noise."""
    made = world(rng, Q=1, D=2, k=1, correlated=True)
    made = replace(made, W=np.array([[[1.0], [0.0]]]))
    x_new = made.X[:3]
    check(condition(made.observations, x_new, made.model), posterior(made, x_new))


@both_ways
def test_an_output_without_readings_keeps_its_prior(rng, way):
    made = world(rng, Q=2, D=2, k=1)
    made = replace(made, W=np.array([[1.0, 0.0], [0.0, 2.0]])[..., None])
    table = made.table(np.where([False, True], np.nan, made.Y)).observations
    predicted = way(table, made.X[:3], made.model)
    assert_allclose(predicted.mean[0, :, 1], 0.0)
    assert_allclose(predicted.cov[0, :, 1, 1], 4.0)
    assert_allclose(predicted.cov[0, :, 0, 1], 0.0)


@both_ways
def test_an_output_without_weights_is_zero(rng, way):
    made = replace(world(rng, Q=1, D=2, k=1), W=np.array([[[1.0], [0.0]]]))
    predicted = way(made.observations, made.X[:3], made.model)
    assert_array_equal(predicted.mean[0, :, 1], 0.0)
    assert_array_equal(predicted.cov[0, :, 1], 0.0)
    assert np.all(predicted.cov[0, :, 0, 0] > 0)


def test_noise_inside_a_product_is_not_predicted_at_new_locations(rng):
    """A WhiteKernel that cannot be separated from the signal means what it does to scikit-learn."""
    made = world(rng, Q=1, D=1, k=1)
    kernel = 2.0 * (RBF(0.3) + WhiteKernel(0.2))
    made = replace(made, kernels=(kernel,))
    x_new = rng.uniform(size=(3, 2))
    w = made.W[0, 0, 0]
    gram = w**2 * kernel(made.X) + made.noise * np.eye(len(made.X))
    expected = w**2 * kernel(x_new, made.X) @ np.linalg.solve(gram, made.Y)
    assert_allclose(condition(made.observations, x_new, made.model).mean[0], expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["coupled", "separate", "without weights"])
def test_on_a_device_it_is_the_same(rng, device, kind, monkeypatch):
    made = world(rng, missing=0.3, correlated=kind != "separate")
    W = rng.normal(size=(2, *made.W.shape))
    if kind == "separate":
        W *= np.eye(3)[..., None]
    if kind == "without weights":
        W[:, :, -1] = 0.0
    for module in (exact, neighbours):  # in several chunks
        monkeypatch.setattr(module, "chunk_bytes", lambda device: 1e4)
    given = made.observations, rng.uniform(size=(7, 2)), made.ensemble(W)
    for way, how in [(condition, {}), (condition, {"with_cov": False}), (all_neighbours, {})]:
        here, there = way(*given, **how), way(*given, **how, device=device)
        assert isinstance(there.mean, np.ndarray)
        assert_allclose(there.mean, here.mean, rtol=1e-8, atol=1e-9)
        assert_allclose(there.cov, here.cov, rtol=1e-8, atol=1e-9)
