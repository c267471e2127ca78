"""The systems that the paper compares with are special cases of each other."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from emgpr import ICM, LMC, CoKriging
from emgpr.cokriging import VariogramModel
from emgpr.convolution import ConvolvedCovariance, ReadingPairs
from emgpr.covariance import log_likelihood
from emgpr.kernels import Spherical
from emgpr.prediction import DensePosterior, LMCModel, LMCPosterior
from tests.simulated import smooth_table, world


@pytest.fixture
def made(rng):
    """A table with gaps and independent noise."""
    return world(rng, N=20, D=3, Q=2, k=1, missing=0.3)


def posterior_of(made, kernels, W):
    model = LMCModel(tuple(kernels), W[None], made.noise)
    sites = (np.arange(len(made.X)),)
    return LMCPosterior(made.observations, model, sites, "all", independent=model)


def kernel_stack(made, kernels):
    return np.stack([kernel(made.X) for kernel in kernels])


def test_convolved_processes_with_equal_widths_are_the_linear_model(rng, made):
    """Likelihood and predictions agree to 1e-12."""
    v, scales, W = 0.04, np.array([0.2, 0.5]), made.W[..., 0]
    covariance = ConvolvedCovariance(scales, np.full(3, np.sqrt(v)), W, 2)
    kernels = [RBF(np.sqrt(2 * v + scale**2)) for scale in scales]
    noise = np.diagonal(made.noise)
    found = ReadingPairs(made.observations).evaluate(covariance, noise).value
    linear = log_likelihood(made.observations, made.W, made.noise, kernel_stack(made, kernels))
    assert found == pytest.approx(float(linear.value), rel=1e-12)
    x = rng.uniform(size=(5, 2))
    expected = posterior_of(made, kernels, made.W)
    dense = DensePosterior(made.observations, covariance, noise, expected.model)
    sets = np.tile(np.arange(20), (3, 1))
    for mine, theirs in (
        (dense.predict(x), expected.predict(x)),
        (dense.leave_out(sets), expected.leave_out(sets)),
    ):
        assert_allclose(mine.mean, theirs.mean, atol=1e-12)
        assert_allclose(mine.cov, theirs.cov, atol=1e-12)


def test_the_intrinsic_model_of_full_rank_is_the_linear_model_with_equal_kernels(rng, made):
    """B = Σ_q w_q w_qᵀ: D processes of rank 1 with one kernel, or one process of rank D."""
    W = rng.normal(size=(3, 3, 1))
    kernel, x = RBF(0.4), rng.uniform(size=(5, 2))
    joined = np.moveaxis(W, 0, -1).reshape(1, 3, 3)
    assert_allclose((joined @ np.swapaxes(joined, 1, 2))[0], (W @ np.swapaxes(W, 1, 2)).sum(axis=0))
    linear, intrinsic = (
        log_likelihood(made.observations, weights, made.noise, kernel_stack(made, [kernel] * n))
        for weights, n in ((W, 3), (joined, 1))
    )
    assert float(intrinsic.value) == pytest.approx(float(linear.value), rel=1e-12)
    mine = posterior_of(made, [kernel], joined).predict(x)
    theirs = posterior_of(made, [kernel] * 3, W).predict(x)
    assert_allclose(mine.mean, theirs.mean, atol=1e-10)
    assert_allclose(mine.cov, theirs.cov, atol=1e-10)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fitted_intrinsic_model_of_full_rank_is_a_fitted_linear_model(rng):
    """The diagonal that ICM adds to B is redundant for full rank, so that both maxima are equal."""
    X, Y = smooth_table(rng, N=30)
    settings = {
        "kernel": RBF(0.4, "fixed"), "prior": None, "n_neighbours": None, "random_state": 0,
        "parameter_uncertainty": False, "output_transform": None, "max_iter": 500,
    }  # fmt: skip
    intrinsic = ICM(rank=3, **settings).fit(X, Y)
    linear = LMC(n_latents=3, rank=1, **settings).fit(X, Y)
    values = [model.log_marginal_likelihood_value_ for model in (intrinsic, linear)]
    assert values[0] == pytest.approx(values[1], abs=0.05)


def test_cokriging_with_known_means_is_the_linear_model(rng, made):
    weights = rng.normal(size=(2, 3, 3))
    kernels = (Spherical(0.4), RBF(0.7))
    model = VariogramModel(kernels, weights, made.noise).with_unknown_means(np.zeros(3))
    x = rng.uniform(size=(5, 2))
    expected = posterior_of(made, kernels, weights)
    found = replace(expected, model=model).predict(x)
    assert_allclose(found.mean, expected.predict(x).mean, atol=1e-12)


def test_simple_cokriging_subtracts_the_average(rng):
    """A constant added to the readings is added to the predictions, also with known means."""
    X, Y = smooth_table(rng, N=30)
    settings = {"output_transform": None, "output_bounds": None, "mean_variance": 0.0}
    model = CoKriging(Spherical(0.5, "fixed"), **settings)
    x = rng.uniform(size=(4, 2))
    before, after = (model.fit(X, table).predict(x) for table in (Y, Y + 100.0))
    assert_allclose(after - before, 100.0, rtol=1e-8)
