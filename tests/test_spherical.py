"""The spherical kernel: its formula, its gradient, and its use in every model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel

import emgpr
from emgpr import LMC
from emgpr.kernels import Pairs, Spherical, evaluate_kernel, kernel_matrix
from tests.finite_differences import assert_is_the_gradient
from tests.simulated import smooth_table


def test_it_falls_to_zero_at_its_range():
    h = np.array([[0.0], [0.5], [1.0], [2.0], [3.0]])
    expected = [1.0, 1 - 1.5 * 0.25 + 0.5 * 0.25**3, 0.3125, 0.0, 0.0]
    assert_allclose(Spherical(2.0)(np.zeros((1, 1)), h)[0], expected, atol=1e-15)
    assert_allclose(Spherical(2.0).diag(h), 1.0)
    assert Spherical().is_stationary()


@pytest.mark.parametrize("P", [1, 2, 3])
def test_it_is_a_covariance_for_up_to_three_inputs(rng, P):
    x = rng.uniform(size=(80, P))
    assert np.linalg.eigvalsh(Spherical(0.7)(x)).min() > -1e-12


@pytest.mark.parametrize("other", [False, True])
def test_matrices_and_gradients_agree_with_the_kernel_itself(rng, other):
    x, z = rng.uniform(size=(9, 2)), rng.uniform(size=(5, 2)) if other else None
    kernel = Spherical(0.6)
    assert_allclose(kernel_matrix(kernel, x, z), kernel(x, z), atol=1e-14)
    G = rng.normal(size=(9, 5 if other else 9))

    def contracted(theta):
        return float((G * kernel.clone_with_theta(theta)(x, z)).sum())

    _, pullback = evaluate_kernel(kernel, kernel.theta, Pairs(x, z))
    assert_is_the_gradient(pullback(G), contracted, kernel.theta)
    if not other:
        _, slope = kernel(x, eval_gradient=True)
        assert_is_the_gradient(np.tensordot(G, slope, 2), contracted, kernel.theta)


def test_its_parameter_can_be_fixed(rng):
    x, fixed = rng.uniform(size=(4, 1)), Spherical(0.5, "fixed")
    assert fixed.n_dims == 0
    assert fixed(x, eval_gradient=True)[1].shape == (4, 4, 0)
    assert clone(fixed) == fixed
    with pytest.raises(ValueError, match="Gradient can only be evaluated"):
        fixed(x, x, eval_gradient=True)


def test_scikit_learn_fits_it(rng):
    x = rng.uniform(size=(60, 2))
    y = np.linalg.cholesky(Spherical(0.5)(x) + 0.01 * np.eye(60)) @ rng.normal(size=60)
    kernel = ConstantKernel() * Spherical(0.2)
    model = GaussianProcessRegressor(kernel, alpha=0.01).fit(x, y)
    assert 0.2 < model.kernel_.k2.length_scale < 1.5


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_linear_model_can_have_it_and_be_stored(rng, tmp_path):
    X, Y = smooth_table(rng, N=30)
    model = LMC(Spherical(), n_latents=2, max_iter=3, random_state=0).fit(X, Y)
    assert all(isinstance(kernel, Spherical) for kernel in model.kernels_)
    model.save(tmp_path / "model.emgpr")
    assert_allclose(emgpr.load(tmp_path / "model.emgpr").predict(X), model.predict(X))
