"""Kernels evaluated together are the kernels, each on its own, on NumPy and on a device."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from emgpr.arrays import devices, fetch, put
from emgpr.kernels import Pairs, evaluate
from emgpr.weights.together import Together

KERNELS = {
    "all alike": [RBF(0.3), RBF(0.5), RBF(0.1 * 7)],
    "a scale a column": [Matern([0.3, 1.0], nu=1.5), Matern([0.5, 0.2], nu=1.5)],
    "sums and products": [ConstantKernel(2.0) * RBF(1.0) + RBF(0.1)] * 3,
    "not alike": [RBF(0.3), RBF(0.5), Matern(0.5, nu=1.5), RBF(0.1), RBF([0.1, 0.2])],
    "some fixed": [RBF(0.3), RBF(0.5, "fixed"), RBF(0.6, "fixed"), RBF(0.6, "fixed")],
    "nobody's": [DotProduct(0.3), DotProduct(2.0)],
}


@pytest.fixture(params=KERNELS.values(), ids=KERNELS.keys())
def kernels(request):
    return request.param


@pytest.fixture(params=[(), (3,)], ids=["a table", "a batch"])
def x(request, rng):
    return rng.uniform(size=(*request.param, 6, 2))


def one_after_another(kernels, x, G):
    built = [evaluate(kernel, kernel.theta, Pairs(x)) for kernel in kernels]
    pulled = [pull(G[..., q, :, :]) for q, (_, pull) in enumerate(built)]
    return np.stack([K for K, _ in built], axis=-3), np.concatenate(pulled, axis=-1)


def together(kernels, x, G):
    theta = np.concatenate([kernel.theta for kernel in kernels])
    K, pullback = Together(kernels, x).evaluate(theta)
    return K, pullback(G)


@pytest.mark.parametrize("at_once", [1, 80, 10_000])
def test_together_they_are_what_they_are_alone(rng, kernels, x, at_once, monkeypatch):
    monkeypatch.setattr(devices, "HOST_PANEL", at_once)
    G = rng.normal(size=(*x.shape[:-2], len(kernels), 6, 6))
    for own, other in zip(together(kernels, x, G), one_after_another(kernels, x, G), strict=True):
        assert_allclose(own, other, rtol=1e-12, atol=1e-14)


def test_on_a_device_too(rng, kernels, x, device):
    G = rng.normal(size=(*x.shape[:-2], len(kernels), 6, 6))
    there = together(kernels, put(x, device), put(G, device))
    for own, other in zip(there, one_after_another(kernels, x, G), strict=True):
        assert not isinstance(own, np.ndarray)
        assert_allclose(fetch(own), other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "at_once", "lengths"),
    [
        ("all alike", 10_000, [3]),
        ("all alike", 80, [2, 1]),
        ("all alike", 1, [1, 1, 1]),
        ("not alike", 10_000, [2, 1, 1, 1]),
        ("some fixed", 10_000, [1, 1, 2]),
    ],
)
def test_as_many_as_the_caches_hold_are_one(rng, name, at_once, lengths, monkeypatch):
    monkeypatch.setattr(devices, "HOST_PANEL", at_once)
    runs = Together(KERNELS[name], rng.uniform(size=(6, 2))).runs
    assert [run.stop - run.start for run in runs] == lengths
