"""The log posterior density of all parameters: gradients, priors, and subsets of blocks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from emgpr.covariance import VecchiaTable
from emgpr.noise import noise_prior, output_variances
from emgpr.weights import LMCParameters, ParameterVector
from emgpr.weights.posterior_density import PosteriorDensity
from tests.finite_differences import assert_is_the_gradient
from tests.simulated import world

KERNELS = {
    "stationary": (RBF(0.3), Matern([0.2, 0.5], nu=1.5)),
    "with variances": (ConstantKernel(2.0) * RBF(0.3), RBF(0.2) + DotProduct(0.5)),
}


def a_density(rng, kernels, *, weak=True, free=None, correlated=True, N=16, m=5):
    made = world(rng, N=N, Q=2, missing=0.2, correlated=correlated)
    observations = made.observations
    bounds = np.tile([1e-8, 1e2], (3, 1))
    start = LMCParameters(kernels, made.noise, made.W, bounds, free)
    vector = ParameterVector.around(start, observations, correlated=correlated)
    table = VecchiaTable.from_sites(observations, kernels, m)
    density = PosteriorDensity(table, vector, weak, output_variances(observations))
    return density, vector.pack(start, start.W)


@pytest.mark.parametrize("kernels", KERNELS.values(), ids=KERNELS.keys())
@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize("correlated", [False, True])
def test_the_gradient_agrees_with_finite_differences(rng, kernels, weak, correlated):
    density, x = a_density(rng, kernels, weak=weak, correlated=correlated)
    assert_is_the_gradient(density(x)[1], lambda at: density(at)[0], x, rtol=1e-5)


def test_fixed_weights_have_neither_gradient_nor_information(rng):
    free = rng.uniform(size=(2, 3, 2)) < 0.5
    density, x = a_density(rng, KERNELS["stationary"], free=free)
    fixed = np.concatenate([np.zeros(len(x) - free.size, bool), ~free.ravel()])
    assert not density(x)[1][fixed].any()
    assert density(x)[1][~fixed].all()
    F = density.information(x)
    assert not F[fixed].any()
    assert not F[:, fixed].any()


def test_the_information_contains_the_curvature_of_the_prior(rng):
    """At the mode of the prior on the sills, its second derivative is minus this part of F."""
    weak, flat = (
        a_density(np.random.default_rng(3), KERNELS["stationary"], weak=w) for w in (True, False)
    )
    F = weak[0].information(weak[1]) - flat[0].information(flat[1])
    assert np.linalg.eigvalsh(F)[0] > -1e-8
    assert np.linalg.matrix_rank(F, tol=1e-6) >= 3


def test_a_subset_stands_for_all_blocks(rng):
    """The mean of many random subsets is the whole, within four standard errors."""
    density, x = a_density(rng, KERNELS["stationary"], weak=False, N=40)
    values = [density.on_subset(20, np.random.default_rng(i))(x)[0] for i in range(200)]
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - density(x)[0]) < 4 * error
    assert density.on_subset(20, rng).n_readings == pytest.approx(density.n_readings, rel=0.2)
    assert density.on_subset(40, rng) is density


def test_the_log_likelihood_is_the_density_without_its_prior(rng):
    weak, x = a_density(np.random.default_rng(3), KERNELS["stationary"])
    flat, _ = a_density(np.random.default_rng(3), KERNELS["stationary"], weak=False)
    assert_allclose(weak(x)[0] - weak.log_prior(x), flat(x)[0])
    _, vector, W = weak._split(x)
    noise = weak.vector.noise.matrix(vector)
    log_prior = noise_prior(weak.variances, True)(noise)[0]
    sills = weak._sill_prior(W, noise, np.ones((2, 1))).value
    assert_allclose(weak(x)[0], flat(x)[0] + log_prior + sills)
