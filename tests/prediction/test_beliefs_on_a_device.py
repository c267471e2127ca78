"""Torch equals NumPy: what is believed of new sites and of readings left out."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import world

from emgpr.prediction import (
    Belief,
    condition,
    condition_jointly,
    condition_on_neighbours,
    held_out,
    held_out_of_batch,
    held_out_of_neighbours,
)

WORLDS = {
    "full table": {},
    "missing readings, correlated noise": {"missing": 0.3, "correlated": True},
    "one task": {"Q": 2, "D": 1, "k": 1},
}


@pytest.fixture(params=WORLDS.values(), ids=WORLDS.keys())
def made(request, rng):
    return world(rng, **request.param)


@pytest.fixture(params=["joined", "apart", "deaf"])
def W(request, rng, made):
    """Two members' weights; of outputs that share latents, that share none, or hear none."""
    W = rng.normal(size=(2, *made.W.shape))
    if request.param == "apart":
        W *= np.eye(*W.shape[1:3])[..., None]
    if request.param == "deaf":
        W[:, :, -1] = 0.0
    return W


def agree(one, other):
    one, other = ((a.mean, a.cov) if isinstance(a, Belief) else a for a in (one, other))
    for a, b in zip(one, other, strict=True):
        assert isinstance(a, np.ndarray)
        assert_allclose(a, b, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("chunk", [None, 1.0])
def test_conditioning_is_the_same(made, W, device, rng, chunk, monkeypatch):
    if chunk:
        for name in ("condition", "neighbours"):
            module = sys.modules[f"emgpr.prediction.{name}"]
            monkeypatch.setattr(module, "room", lambda device: chunk)
    given = made.seen, rng.uniform(size=(7, 2)), made.kernels, W, made.noise
    agree(condition(*given, device=device), condition(*given))
    agree(condition(*given, with_cov=False, device=device), condition(*given, with_cov=False))
    agree(condition_on_neighbours(*given, 4, device=device), condition_on_neighbours(*given, 4))


def test_joint_beliefs_are_the_same(made, W, device, rng):
    given = made.seen, rng.uniform(size=(5, 2)), made.kernels, W[0], made.noise
    agree(condition_jointly(*given, device=device), condition_jointly(*given))


@pytest.mark.parametrize("by", ["site", "output"])
def test_what_is_left_out_is_the_same(made, W, device, by):
    D, N = made.seen.y.shape
    sets = np.tile(np.arange(N), (D, 1)) if by == "site" else np.arange(D * N).reshape(D, N)
    given = sets, made.kernels, W, made.noise
    agree(held_out(made.seen, *given, device=device), held_out(made.seen, *given))
    agree(
        held_out_of_neighbours(made.seen, *given, 3, device=device),
        held_out_of_neighbours(made.seen, *given, 3),
    )
    part, first = np.arange(0, N, 2), (sets, made.kernels, W[:1], made.noise)
    agree(
        held_out_of_batch(made.seen, part, *first, device=device),
        held_out_of_batch(made.seen, part, *first),
    )
