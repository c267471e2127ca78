"""Kernels evaluated together equal the same kernels evaluated one by one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from emgpr.arrays import devices, to_device, to_numpy
from emgpr.kernel_stack import KernelStack
from emgpr.kernels import Pairs, evaluate_kernel

KERNELS = {
    "similar": [RBF(0.3), RBF(0.5), RBF(0.7)],
    "several length-scales": [Matern([0.3, 1.0], nu=1.5), Matern([0.5, 0.2], nu=1.5)],
    "sums and products": [ConstantKernel(2.0) * RBF(1.0) + RBF(0.1)] * 3,
    "different": [RBF(0.3), RBF(0.5), Matern(0.5, nu=1.5), RBF(0.1), RBF([0.1, 0.2])],
    "some fixed": [RBF(0.3), RBF(0.5, "fixed"), RBF(0.6, "fixed"), RBF(0.6, "fixed")],
    "evaluated by scikit-learn": [DotProduct(0.3), DotProduct(2.0)],
}


@pytest.fixture(params=KERNELS.values(), ids=KERNELS.keys())
def kernels(request):
    return request.param


@pytest.fixture(params=[(), (3,)], ids=["table", "batch"])
def x(request, rng):
    return rng.uniform(size=(*request.param, 6, 2))


def one_by_one(kernels, x, G):
    evaluated = [evaluate_kernel(kernel, kernel.theta, Pairs(x)) for kernel in kernels]
    gradients = [pull(G[..., q, :, :]) for q, (_, pull) in enumerate(evaluated)]
    return np.stack([K for K, _ in evaluated], axis=-3), np.concatenate(gradients, axis=-1)


def together(kernels, x, G):
    theta = np.concatenate([kernel.theta for kernel in kernels])
    K, pullback = KernelStack(kernels, x).evaluate(theta)
    return K, pullback(G)


@pytest.mark.parametrize("panel_size", [1, 80, 10_000])
def test_matrices_and_gradients_are_those_of_each_kernel(rng, kernels, x, panel_size, monkeypatch):
    monkeypatch.setattr(devices, "CPU_PANEL_SIZE", panel_size)
    G = rng.normal(size=(*x.shape[:-2], len(kernels), 6, 6))
    for found, expected in zip(together(kernels, x, G), one_by_one(kernels, x, G), strict=True):
        assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_a_device_gives_the_same(rng, kernels, x, device):
    G = rng.normal(size=(*x.shape[:-2], len(kernels), 6, 6))
    on_device = together(kernels, to_device(x, device), to_device(G, device))
    for found, expected in zip(on_device, one_by_one(kernels, x, G), strict=True):
        assert not isinstance(found, np.ndarray)
        assert_allclose(to_numpy(found), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "panel_size", "lengths"),
    [
        ("similar", 10_000, [3]),
        ("similar", 80, [2, 1]),
        ("similar", 1, [1, 1, 1]),
        ("different", 10_000, [2, 1, 1, 1]),
        ("some fixed", 10_000, [1, 1, 2]),
    ],
)
def test_similar_kernels_share_runs_that_fit_a_panel(rng, name, panel_size, lengths, monkeypatch):
    monkeypatch.setattr(devices, "CPU_PANEL_SIZE", panel_size)
    runs = KernelStack(KERNELS[name], rng.uniform(size=(6, 2))).runs
    assert [run.stop - run.start for run in runs] == lengths
