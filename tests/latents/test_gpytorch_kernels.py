"""GPyTorch kernels are converted to the same scikit-learn kernels, without importing torch."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, RationalQuadratic

from emgpr.latents.gpytorch_kernels import as_sklearn_kernel


def named(name, **parameters):
    """An object of a class of this name, by which GPyTorch's kernels are recognised."""
    return type(name, (SimpleNamespace,), {})(**parameters)


def scaled(base, by=2.5):
    return named("ScaleKernel", base_kernel=base, outputscale=np.array(by))


SMOOTH = named("RBFKernel", lengthscale=np.array([[0.3]]))
ROUGH = named("MaternKernel", lengthscale=np.array([[0.2, 0.7]]), nu=1.5)
LONG = named("RQKernel", lengthscale=np.array([[0.4]]), alpha=np.array([2.0]))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (SMOOTH, RBF(0.3)),
        (ROUGH, Matern([0.2, 0.7], nu=1.5)),
        (scaled(LONG), ConstantKernel(2.5) * RationalQuadratic(0.4, 2.0)),
        (
            named("AdditiveKernel", kernels=[scaled(SMOOTH), ROUGH]),
            ConstantKernel(2.5) * RBF(0.3) + Matern([0.2, 0.7], nu=1.5),
        ),
        (
            named("ProductKernel", kernels=[SMOOTH, ROUGH]),
            RBF(0.3) * Matern([0.2, 0.7], nu=1.5),
        ),
    ],
    ids=["RBF", "Matern", "scaled", "sum", "product"],
)
def test_a_kernel_is_converted_with_its_hyper_parameters(theirs, ours):
    assert as_sklearn_kernel(theirs) == ours


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (named("SpectralMixtureKernel"), "SpectralMixtureKernel cannot be converted.*RBFKernel"),
        (named("RBFKernel", active_dims=[0], lengthscale=np.ones((1, 1))), "some columns only"),
        (named("RBFKernel", lengthscale=np.ones((3, 1, 1))), r"\(3, 1, 1\), as for a batch"),
        (scaled(SMOOTH, by=[1.0, 2.0]), r"shape \(2,\); expected a single number"),
    ],
)
def test_a_kernel_without_a_counterpart_is_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        as_sklearn_kernel(kernel)
