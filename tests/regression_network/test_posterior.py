"""Predictive moments against draws from q, readings left out, and readings at new locations."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from emgpr.observations import Observations
from emgpr.prediction import LMCModel
from emgpr.regression_network import NetworkKernels, NetworkPosterior, NetworkProblem
from tests.regression_network.networks import some_state, some_table


@pytest.fixture
def posterior(rng):
    table = some_table(rng)
    state = some_state(rng, NetworkProblem(table))
    alone = LMCModel((RBF(0.3),) * 3, np.eye(3)[None, :, :, None], 0.2 * np.eye(3))
    return NetworkPosterior(table, NetworkKernels(), state.parameters, state.given, alone)


def test_moments_are_those_of_draws(posterior, rng):
    """Means and covariances of 40,000 draws agree within 5 standard errors.

    There are 3 means and 9 covariances at each of 2 locations: a false alarm is one run in 10^5.
    """
    x = np.array([[0.4, 0.5], [1.5, 0.2]])
    expected = posterior.predict(x)
    drawn = posterior.sample(x, 40_000, rng)
    error = drawn - expected.mean[0]
    products = error[:, :, :, None] * error[:, :, None, :]
    for values, zero in ((error, 0.0), (products, expected.cov[0])):
        z = (values.mean(axis=0) - zero) / (values.std(axis=0) / np.sqrt(len(drawn)))
        assert np.abs(z).max() < 5


@pytest.mark.parametrize("by", ["site", "reading", "block"])
def test_leaving_out_is_a_prediction_without_the_readings(posterior, by):
    table = posterior.observations
    D, N = table.y.shape
    sets = {
        "site": np.tile(np.arange(N), (D, 1)),
        "reading": np.arange(D * N).reshape(D, N),
        "block": np.tile(np.arange(N) % 3, (D, 1)),
    }[by]
    found = posterior.leave_out(sets)
    weights = posterior.weights
    for d, i in [(0, 0), (1, 0), (2, 0)]:
        Y = table.table.copy()
        Y[(sets == sets[d, i]).T] = np.nan
        rest = NetworkPosterior(
            Observations.from_table(table.x, Y), posterior.kernels, posterior.parameters,
            posterior.given, posterior.independent,
        )  # fmt: skip
        rest.__dict__["weights"] = weights  # held fixed
        expected = rest.predict(table.x[[i]])
        assert_allclose(found.mean[0, i, d], expected.mean[0, 0, d], atol=1e-8)
        assert_allclose(found.cov[0, i, d, d], expected.cov[0, 0, d, d], atol=1e-8)


def test_observed_readings_are_training_readings_with_the_same_weights(posterior):
    x, known = np.array([[0.45, 0.55]]), np.array([[np.nan, 2.0, np.nan]])
    found = posterior.predict(x, known)
    assert abs(found.mean - posterior.predict(x).mean).max() > 1e-3
    table, nodes = posterior._given(x, known)
    assert table.n_sites == posterior.n_sites + 1
    assert_allclose(nodes.moments.cov[-1] - np.swapaxes(nodes.moments.cov[-1], 0, 1), 0, atol=1e-12)
    repeated = posterior.observations
    at, values = repeated.x[:1], repeated.table[:1]
    assert_allclose(posterior.predict(at, values).mean, posterior.predict(at).mean)


def test_correlations_far_from_all_sites_are_zero(posterior):
    near, far = posterior.correlations(np.array([[0.5, 0.5], [1e3, 1e3]]))
    assert_allclose(np.diagonal(near), 1.0)
    assert_allclose(far, np.eye(3), atol=1e-6)
    noisy = posterior.correlations(np.array([[0.5, 0.5]]), include_noise=True)[0]
    assert (np.abs(noisy - np.eye(3)) <= np.abs(near - np.eye(3)) + 1e-12).all()
