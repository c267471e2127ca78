"""The prior on the sill: its gradient, and its effect on a fit."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from emgpr import EMGPR
from emgpr.observations import Observations
from emgpr.parallel import DEFAULT_EXECUTION
from emgpr.weights.joint import EnsembleLikelihood
from emgpr.weights.parameters import LMCParameters, ParameterVector
from emgpr.weights.sill_prior import SillPrior


def test_the_prior_is_highest_where_the_sill_is_the_variance_of_the_readings():
    prior = SillPrior(np.array([4.0]))
    values = [
        float(prior(np.full((1, 1, 1), w), np.array([[1.0]]), np.ones((1, 3))).value)
        for w in (0.5, np.sqrt(3.0), 4.0)
    ]
    assert_allclose(values[1], 0.0, atol=1e-12)
    assert values[0] < 0 > values[2]


def test_constant_outputs_have_no_prior(rng):
    W, noise, ones = rng.normal(size=(2, 3, 1)), np.eye(3), np.ones((2, 5))
    some = SillPrior(np.ones(3), np.array([False, True, False]))(W, noise, ones)
    assert not some.of_weights[:, 1].any()
    assert some.of_noise[1, 1] == 0
    assert some.of_weights[:, 0].all()


@pytest.mark.parametrize("n_batches", [1, 2])
def test_gradients_with_the_prior_equal_finite_differences(rng, n_batches):
    """For kernels whose variance depends on their parameters, too."""
    X, Y = rng.uniform(size=(16, 2)), rng.normal(size=(16, 3))
    Y[3, 1] = np.nan
    table = Observations.from_table(X, Y)
    kernels = (
        RBF(0.3),
        ConstantKernel(2.0) * Matern(0.5, nu=1.5),
        RBF(0.2) + DotProduct(1.0),
    )
    W = rng.normal(size=(n_batches, 3, 3, 2))
    start = LMCParameters(kernels, 0.3 * np.eye(3) + 0.1, W[0], np.tile([1e-6, 10.0], (3, 1)))
    vector = ParameterVector.around(start, table, correlated=True)
    batches = np.array_split(np.arange(16), n_batches)
    likelihood = EnsembleLikelihood(table, batches, vector, True, DEFAULT_EXECUTION)
    prior = SillPrior(np.array([1.0, 2.0, 0.5]))
    x = vector.pack(start, W)

    def value(x):
        return likelihood.evaluate(x, W, prior)[0].sum()

    steps = 1e-6 * np.eye(len(x))
    numerical = [(value(x + step) - value(x - step)) / 2e-6 for step in steps]
    assert_allclose(likelihood.evaluate(x, W, prior)[1], numerical, rtol=1e-5, atol=1e-5)
    assert not np.isclose(value(x), likelihood.evaluate(x, W)[0].sum())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_far_from_all_data_predictions_have_the_spread_of_the_data():
    """Smooth trends, for which the likelihood is highest with a sill of 2 to 20 variances."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    trend = X @ rng.normal(size=(2, 3)) + (X**2) @ rng.normal(size=(2, 3))
    Y = trend + 0.1 * trend.std() * rng.normal(size=(60, 3))
    far = np.array([[1e4, 1e4]])
    for prior, held in (("weak", True), (None, False)):
        model = EMGPR(output_transform=None, prior=prior, random_state=0).fit(X, Y)
        ratio = model.predict(far, return_std=True)[1] / Y.std(axis=0)
        assert (ratio > 0.7).all()
        assert (ratio.max() < 1.5) == held
