"""Torch equals NumPy: every form of the likelihood, with its gradients. Panels change nothing."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import symmetric_part, world
from sklearn.gaussian_process.kernels import RBF

from emgpr.arrays import devices, fetch, put
from emgpr.covariance import between_tasks, log_likelihood, log_likelihood_in_span, span_of
from emgpr.covariance.dense import coregionalization, readings
from emgpr.kernels import matrices
from emgpr.observations import Observations

WORLDS = {
    "full table": {},
    "missing readings": {"missing": 0.3},
    "correlated noise, missing readings": {"missing": 0.3, "correlated": True},
    "rank 1, more latents than tasks": {"Q": 4, "D": 2, "k": 1},
    "one latent": {"Q": 1},
    "one latent, correlated noise": {"Q": 1, "correlated": True},
    "one latent, missing readings": {"Q": 1, "missing": 0.3},
    "one task": {"Q": 1, "D": 1, "k": 1},
}
PARTS = ("value", "of_weights", "of_noise", "of_kernels")


@pytest.fixture(params=WORLDS.values(), ids=WORLDS.keys())
def worlds(request, rng):
    return [world(rng, **request.param) for _ in range(3)]


def agree(there, here, rtol=1e-9):
    assert not isinstance(there, np.ndarray)
    assert there.shape == here.shape
    there, here = symmetric_part(fetch(there)), symmetric_part(here)
    assert_allclose(there, here, rtol=rtol, atol=rtol * np.abs(here).max())


def stacked(worlds):
    tables = Observations(
        *(np.stack([getattr(made.seen, name) for made in worlds]) for name in ("x", "y", "seen"))
    )
    return tables, *(np.stack([getattr(w, name) for w in worlds]) for name in ("W", "noise", "K"))


def alone(made):
    return made.seen, made.W, made.noise, made.K


def test_the_likelihood_and_its_gradients_are_the_same(worlds, device):
    table, *given = alone(worlds[0])
    there = [put(a, device) for a in given]
    all_parts = {"of_kernels": True, "curvature": True}
    here = log_likelihood(table, *given, **all_parts)
    there = log_likelihood(table.on(device), *there, **all_parts)
    for part in PARTS:
        agree(getattr(there, part), np.asarray(getattr(here, part)))
    if here.curvature is not None:
        agree(there.curvature, here.curvature)


def test_so_they_are_of_a_batch_of_tables(worlds, device):
    tables, *given = stacked(worlds)
    there = [put(a, device) for a in given]
    all_parts = {"of_kernels": True, "curvature": True}
    here = log_likelihood(tables, *given, **all_parts)
    there = log_likelihood(tables.on(device), *there, **all_parts)
    for part in PARTS:
        agree(getattr(there, part), getattr(here, part))
    if here.curvature is not None:
        agree(there.curvature, here.curvature)


@pytest.mark.parametrize("some", [stacked, lambda worlds: alone(worlds[0])], ids=["batch", "one"])
def test_panels_of_tasks_change_nothing(worlds, monkeypatch, some):
    tables, *given = some(worlds)
    B = coregionalization(given[0])
    whole = log_likelihood(tables, *given, of_kernels=True), between_tasks(B, given[2])
    monkeypatch.setattr(devices, "HOST_PANEL", 1)
    parts = log_likelihood(tables, *given, of_kernels=True), between_tasks(B, given[2])
    assert_allclose(parts[1], whole[1], rtol=1e-12)
    for part in PARTS:
        one, other = (
            symmetric_part(np.asarray(getattr(fit, part))) for fit in (parts[0], whole[0])
        )
        assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


def test_a_covariance_without_a_factor_is_minus_infinity_there_too(rng, device):
    made = world(rng, Q=2, D=2, N=4)
    tables = made.seen.at(np.tile(np.arange(4), (3, 1))).on(device)
    K = put(np.stack([made.K, -5 * made.K, np.full_like(made.K, np.nan)]), device)
    W = put(np.stack([made.W] * 3), device)
    value = fetch(log_likelihood(tables, W, put(made.noise, device), K).value)
    assert np.isfinite(value[0])
    assert value[1] == value[2] == -np.inf


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("correlated", [False, True])
def test_the_span_says_the_same(rng, device, rank, correlated):
    made = world(rng, N=60, correlated=correlated)
    K = matrices([RBF(scale) for scale in (1.5, 2.0, 3.0, 6.0)], made.X)
    W = rng.normal(size=(4, 3, rank))
    here = span_of(made.seen, made.noise, K, rank)
    there = span_of(made.seen.on(device), made.noise, put(K, device), rank)
    value, gradient = log_likelihood_in_span(here, W, made.noise)
    value_there, gradient_there = log_likelihood_in_span(there, W, made.noise)
    assert isinstance(gradient_there, np.ndarray)
    assert_allclose(value_there, value, rtol=1e-7)
    assert_allclose(gradient_there, gradient, atol=1e-6 * np.abs(gradient).max())


def test_the_covariance_of_readings_is_the_same(worlds, device):
    made = worlds[0]
    given = coregionalization(made.W), made.noise, made.K
    agree(
        readings(made.seen.on(device), *(put(a, device) for a in given)),
        readings(made.seen, *given),
        rtol=1e-12,
    )
