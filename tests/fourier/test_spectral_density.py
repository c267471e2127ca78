"""Spectral densities: their gradients, and kernels that have none."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from emgpr.fourier.spectral_density import spectral_density
from tests.finite_differences import assert_is_the_gradient

KERNELS = [
    RBF(0.4),
    RBF([0.3, 0.6]),
    Matern(0.5, nu=0.5),
    Matern([0.3, 0.6], nu=1.5),
    Matern(0.4, nu=np.inf),
    ConstantKernel(0.5) * RBF(0.4) + ConstantKernel(0.3),
    RBF(0.4, "fixed") + Matern(0.7, nu=2.5) * ConstantKernel(2.0),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_gradients_are_the_derivatives(kernel, rng):
    omega = np.vstack([np.zeros((1, 2)), rng.normal(size=(5, 2))])
    _, gradient = spectral_density(kernel, omega, 3.0)
    assert gradient.shape == (kernel.n_dims, len(omega))
    weight = rng.normal(size=len(omega))

    def value(theta):
        return spectral_density(kernel.clone_with_theta(theta), omega, 3.0)[0] @ weight

    assert_is_the_gradient(gradient @ weight, value, kernel.theta)


class DoubledRBF(RBF):
    def __call__(self, X, Y=None, eval_gradient=False):
        return 2 * super().__call__(X, Y, eval_gradient)


UNKNOWN = [
    RationalQuadratic(),
    ExpSineSquared(),
    WhiteKernel(),
    RBF() * RBF(),
    RBF() + RationalQuadratic(),
    DoubledRBF(),  # a subclass of a known kernel that computes something else
]


@pytest.mark.parametrize("kernel", UNKNOWN, ids=str)
def test_a_kernel_without_a_known_density_is_refused_by_name(kernel):
    with pytest.raises(ValueError, match=r"spectral density of kernel=.* expected RBF, Matern"):
        spectral_density(kernel, np.zeros((1, 2)), 1.0)
