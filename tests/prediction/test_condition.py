"""Beliefs at new sites, against the conditional distribution by plain inversion."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import posterior, world
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr.arrays import JitterWarning, NumericalError
from emgpr.prediction import condition, condition_on_neighbours
from emgpr.prediction.condition import coupled

WORLDS = {
    "full table": {},
    "missing readings": {"missing": 0.4},
    "one latent": {"Q": 1},
    "more latents than tasks": {"Q": 4, "D": 2, "k": 1},
    "one task": {"Q": 2, "D": 1, "k": 1},
    "one site": {"N": 1},
    "correlated noise": {"correlated": True},
    "correlated noise, missing readings": {"correlated": True, "missing": 0.4},
}


@pytest.fixture(params=WORLDS.values(), ids=WORLDS.keys())
def made(request, rng):
    return world(rng, **request.param)


@pytest.fixture
def x_new(rng, made):
    return np.vstack([rng.uniform(-0.5, 1.5, size=(5, 2)), made.X[:1]])


def test_it_is_the_conditional_distribution(made, x_new):
    belief = condition(made.seen, x_new, made.kernels, made.W[None], made.noise)
    mean, cov = posterior(made, x_new)
    assert_allclose(belief.mean[0], mean, rtol=1e-9, atol=1e-9)
    assert_allclose(belief.cov[0], cov, rtol=1e-9, atol=1e-9)


def test_so_it_is_given_neighbours_when_all_are_neighbours(made, x_new):
    belief = condition_on_neighbours(
        made.seen, x_new, made.kernels, made.W[None], made.noise, n_neighbours=99
    )
    mean, cov = posterior(made, x_new)
    assert_allclose(belief.mean[0], mean, rtol=1e-8, atol=1e-8)
    assert_allclose(belief.cov[0], cov, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("correlated", [False, True])
def test_every_member_has_its_own_weights(rng, correlated):
    made = world(rng, missing=0.2, correlated=correlated)
    others = rng.normal(size=made.W.shape)
    x_new = rng.uniform(size=(4, 2))
    W = np.stack([made.W, others])
    for ways in (condition, lambda *given: condition_on_neighbours(*given, 99)):
        belief = ways(made.seen, x_new, made.kernels, W, made.noise)
        for member, own in enumerate(W):
            mean, cov = posterior(replace(made, W=own), x_new)
            assert_allclose(belief.mean[member], mean, atol=1e-8)
            assert_allclose(belief.cov[member], cov, atol=1e-8)


@pytest.mark.parametrize("correlated", [False, True])
def test_chunks_of_new_sites_change_nothing(rng, monkeypatch, correlated):
    made = world(rng, missing=0.2, correlated=correlated)
    x_new = rng.uniform(size=(7, 2))
    given = made.seen, x_new, made.kernels, made.W[None], made.noise
    whole = condition(*given), condition_on_neighbours(*given, 5)
    for name in ("condition", "neighbours"):
        monkeypatch.setattr(sys.modules[f"emgpr.prediction.{name}"], "room", lambda device: 1.0)
    pieces = condition(*given), condition_on_neighbours(*given, 5)
    for a, b in zip(whole, pieces, strict=True):
        assert_allclose(a.mean, b.mean, rtol=1e-12)
        assert_allclose(a.cov, b.cov, rtol=1e-10, atol=1e-14)


def test_outputs_that_share_no_latent_are_conditioned_apart_exactly(rng):
    made = world(rng, Q=3, D=4, k=1, missing=0.2)
    W = made.W.copy()
    W[0, [2, 3]] = W[1, [0, 1, 3]] = W[2, [0, 1, 2]] = 0.0  # {0, 1} through latent 0; 2; 3
    assert groups_of(W, made.noise) == [([0, 1], [0]), ([2], [1]), ([3], [2])]
    made = replace(made, W=W)
    x_new = rng.uniform(size=(4, 2))
    belief = condition(made.seen, x_new, made.kernels, W[None], made.noise)
    mean, cov = posterior(made, x_new)
    assert_allclose(belief.mean[0], mean, atol=1e-9)
    assert_allclose(belief.cov[0], cov, atol=1e-9)


def groups_of(W, noise):
    B = (W @ np.swapaxes(W, -1, -2))[None]
    return [(tasks.tolist(), latents.tolist()) for tasks, latents in coupled(B, noise)]


def test_outputs_joined_through_a_third_stay_together():
    W = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])[..., None]
    assert groups_of(W, np.eye(3)) == [([0, 1, 2], [0, 1])]


def test_outputs_joined_by_their_noise_alone_stay_together(rng):
    """Without a latent in common; a reading of one informs about the noise of the other."""
    made = world(rng, Q=3, D=3, k=1, missing=0.3, correlated=True)
    noise = made.noise.copy()
    noise[1, [0, 2]] = noise[[0, 2], 1] = 0.0
    made = replace(made, W=np.eye(3)[..., None], noise=noise)
    assert groups_of(made.W, noise) == [([0, 2], [0, 2]), ([1], [1])]
    x_new = rng.uniform(size=(4, 2))
    mean, cov = posterior(made, x_new)
    for way in (condition, lambda *given: condition_on_neighbours(*given, 99)):
        belief = way(made.seen, x_new, made.kernels, made.W[None], noise)
        assert_allclose(belief.mean[0], mean, atol=1e-9)
        assert_allclose(belief.cov[0], cov, atol=1e-9)
    apart = condition(made.seen, x_new, made.kernels, made.W[None], np.diag(np.diag(noise)))
    assert not np.allclose(apart.mean[0], mean, atol=1e-3)
    assert np.all(np.abs(belief.cov[0][:, 0, 2]) > 1e-6)


def test_an_output_that_hears_no_latent_tells_of_the_noise_of_another(rng):
    """A blank channel, read for the sake of the noise that it shares."""
    made = world(rng, Q=1, D=2, k=1, correlated=True)
    made = replace(made, W=np.array([[[1.0], [0.0]]]))
    belief = condition(made.seen, made.X[:3], made.kernels, made.W[None], made.noise)
    mean, cov = posterior(made, made.X[:3])
    assert_allclose(belief.mean[0], mean, atol=1e-9)
    assert_allclose(belief.cov[0], cov, atol=1e-9)


def test_an_output_that_no_reading_informs_keeps_its_prior(rng):
    made = world(rng, Q=2, D=2, k=1)
    W = np.array([[1.0, 0.0], [0.0, 2.0]])[..., None]
    Y = made.Y.copy()
    Y[:, 1] = np.nan
    belief = condition(made.table(Y).seen, made.X[:3], made.kernels, W[None], made.noise)
    assert_allclose(belief.mean[0, :, 1], 0.0)
    assert_allclose(belief.cov[0, :, 1, 1], 4.0)
    assert_allclose(belief.cov[0, :, 0, 1], 0.0)


def test_an_output_with_no_weights_is_known_to_be_zero(rng):
    made = world(rng, Q=1, D=2, k=1)
    W = np.array([[[1.0], [0.0]]])
    belief = condition(made.seen, made.X[:3], made.kernels, W[None], made.noise)
    assert_allclose(belief.mean[0, :, 1], 0.0)
    assert_allclose(belief.cov[0, :, 1], 0.0)


@pytest.mark.parametrize("way", [condition, lambda *a: condition_on_neighbours(*a, 6)])
def test_a_covariance_that_needs_help_is_announced_and_a_hopeless_one_refused(rng, way):
    made = world(rng, Q=1, D=1, k=1, N=3)
    twice = replace(made, X=np.tile(made.X, (2, 1)), Y=np.tile(made.Y, (2, 1)))
    given = made.X[:1], made.kernels, made.W[None]
    with pytest.warns(JitterWarning, match="covariance of"):
        way(twice.seen, *given, np.zeros((1, 1)))
    with pytest.raises(NumericalError, match="not positive definite"):
        way(twice.seen, *given, np.full((1, 1), -0.5))


def test_noise_inside_a_product_is_noise_to_new_sites_too(rng):
    """A WhiteKernel that could not be told from the signal: scikit-learn's meaning is kept."""
    made = world(rng, Q=1, D=1, k=1)
    made = replace(made, kernels=(2.0 * (RBF(0.3) + WhiteKernel(0.2)),))
    x_new = rng.uniform(size=(3, 2))
    belief = condition(made.seen, x_new, made.kernels, made.W[None], made.noise)
    assert_allclose(belief.mean[0], explicit_mean(made, x_new), rtol=1e-9)


def explicit_mean(made, x_new):
    (kernel,), ((w,),) = made.kernels, made.W[0]
    gram = w**2 * kernel(made.X) + made.noise * np.eye(len(made.X))
    return w**2 * kernel(x_new, made.X) @ np.linalg.solve(gram, made.Y)
