"""The likelihood of all parameters as it is optimised, and the bounds of the optimisation."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from emgpr.fourier import fit as fit_module
from emgpr.fourier.fit import absorb, log_likelihood_function, optimise
from emgpr.fourier.grid import FourierSums
from emgpr.fourier.likelihood import FourierLikelihood
from emgpr.fourier.resolution import FeatureChoice, Resolution
from emgpr.observations import Observations
from emgpr.parallel import Execution
from emgpr.weights import LMCParameters, ParameterVector
from tests.finite_differences import assert_is_the_gradient
from tests.smooth_fields import quick, table


def test_the_gradient_is_the_derivative(rng):
    """With variance that features leave out, and a kernel whose variance is fitted too."""
    X, Y = table(rng, N=60, missing=0.3)
    observations = Observations.from_table(X, Y)
    kernels = Matern(0.3, nu=1.5), ConstantKernel(0.7) * RBF(0.4) + Matern([0.3, 0.5], nu=2.5)
    noise, W = np.array([[0.2, 0.05], [0.05, 0.3]]), rng.normal(size=(2, 2, 2))
    start = LMCParameters(kernels, noise, W, np.tile([1e-8, 1e2], (2, 1)))
    few = FeatureChoice(kernels, np.ones(2), Resolution(0.01, 0.01, 31, 31))
    features = few.for_region(np.zeros(2), np.ones(2))
    assert (features.truncated_variances(kernels) > 0.05).all()
    vector = ParameterVector.around(start, observations, correlated=True)
    sums = FourierSums.from_observations(features.grid, observations)
    function = log_likelihood_function(vector, FourierLikelihood(sums, features, 2))
    x = vector.pack(start, W)
    assert_is_the_gradient(function(x)[1], lambda x: function(x)[0], x)


@pytest.fixture(scope="module")
def started():
    return quick().start(*table(np.random.default_rng(7)))


def test_correlated_noise_may_become_as_small_as_independent_noise(started):
    """Its bounds are not raised to a share of the first estimate, as they are for few sites."""
    vector = started.fourier_fit_.vector
    first = vector.n_kernel_parameters
    lower = np.exp(vector.bounds[first : first + 2, 0])
    assert vector.noise.correlated
    np.testing.assert_allclose(lower, vector.start.noise_bounds[:, 0])


def test_every_optimisation_starts_inside_the_bounds(started, monkeypatch):
    fit = started.fourier_fit_
    bounds = fit.vector.bounds.copy()
    bounds[0] = np.log([10.0, 20.0])  # far above the length-scale that was found
    fit = replace(fit, vector=replace(fit.vector, bounds=bounds))
    sums = started.summed(*table(np.random.default_rng(7)))
    starts = []

    def stop(vector, function, x0, **options):
        starts.append(x0)
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_module, "maximise", stop)
    with pytest.raises(KeyboardInterrupt):
        optimise(absorb(fit, sums), 0.05, 10, Execution())
    assert starts[0][0] == np.log(10.0)
