"""Features against the kernels they represent, and their sums against features at the sites."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from emgpr.fourier.features import FourierFeatures
from emgpr.fourier.grid import FrequencyGrid
from emgpr.fourier.resolution import FeatureChoice
from emgpr.kernels import kernel_matrix

from .small_features import ALL, covariances, small_features, small_grid

KERNELS = [
    RBF(0.4),
    Matern(0.5, nu=0.5),
    Matern(0.6, nu=2.5),
    ConstantKernel(0.5) * RBF(0.4) + ConstantKernel(0.3),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize(("P", "max_harmonic"), [(1, 2000), (2, 80)])
def test_features_of_all_frequencies_add_up_to_the_kernel(kernel, P, max_harmonic, rng):
    grid = FrequencyGrid((0.0,) * P, (8.0,) * P, (max_harmonic,) * P)
    features = FeatureChoice([kernel], np.ones(1), ALL).on_grid(grid, (1,))
    x, z = rng.uniform(size=(2, 6, P))
    made = covariances(features, [kernel], x, z)[0]
    tolerance = 0.03 if "nu=0.5" in str(kernel) else 1e-3
    assert_allclose(made, kernel_matrix(kernel, x, z), atol=tolerance)
    missing = kernel_matrix(kernel, x)[0, 0] - covariances(features, [kernel], x)[0, 0, 0]
    assert_allclose(features.truncated_variances([kernel])[0], missing, atol=1e-3)


@pytest.mark.parametrize("P", [1, 2, 3])
def test_sums_give_the_products_of_features_over_the_sites(P, rng):
    features = small_features(P, 1)
    grid = features.grid
    x, y = rng.uniform(size=(30, P)), rng.normal(size=(2, 30))
    Phi = features.evaluate(x)
    c = grid.doubled.sums(x, np.ones((30, 1)))[0]
    assert_allclose(features.gram(c), Phi.T @ Phi, atol=1e-11)
    assert_allclose(features.project(grid.sums(x, y.T)), y @ Phi, atol=1e-12)
    # The other way: coefficients evaluated at locations, and quadratic forms in features.
    b, X = rng.normal(size=(2, Phi.shape[1])), rng.normal(size=2 * (Phi.shape[1],))
    assert_allclose(grid.evaluate(x, features.to_grid(b)), Phi @ b.T, atol=1e-11)
    forms = grid.doubled.evaluate(x, features.gram_adjoint(X)[None])[:, 0]
    assert_allclose(forms, np.einsum("nj,ji,ni->n", Phi, X, Phi), atol=1e-10)


def test_the_sine_of_frequency_zero_is_not_counted():
    assert FourierFeatures(small_grid(1), np.zeros((1, 1), int), (1,)).n_functions == 1
