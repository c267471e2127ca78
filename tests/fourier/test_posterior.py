"""Predictions from sums against those of the dense model with the same parameters."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import Matern

from emgpr.observations import Observations
from emgpr.prediction import LMCModel, Posterior, condition
from tests.smooth_fields import quick, table


@pytest.fixture(scope="module")
def data():
    return table(np.random.default_rng(7))


@pytest.fixture(scope="module")
def fitted(data):
    return quick().fit(*data)


@pytest.fixture(scope="module")
def posterior(fitted):
    return fitted.posterior_


def dense(model, X, Y, x):
    """Condition the dense model with the same parameters on a table."""
    observations = Observations.from_table(X, model.output_scaler_.standardise(Y))
    parameters = model.posterior_.model.parameters
    lmc = LMCModel(parameters.kernels, parameters.W[None], parameters.noise)
    return condition(observations, x, lmc)


def test_it_is_a_posterior(posterior):
    assert isinstance(posterior, Posterior)


def test_further_readings_are_conditioned_on(data, fitted):
    X, Y = data
    site, value = np.array([[0.5, 0.5]]), np.array([[3.0, -3.0]])
    X30, Y30 = np.repeat(site, 30, axis=0), np.repeat(value, 30, axis=0)
    more = copy.deepcopy(fitted).partial_fit(X30, Y30, learn=False)
    assert more.kernels_ == fitted.kernels_
    assert_allclose(more.noise_, fitted.noise_)
    before, after = (np.abs(model.predict(site) - value) for model in (fitted, more))
    assert (after < 0.7 * before).all()
    expected = dense(more, np.vstack([X, X30]), np.vstack([Y, Y30]), site)
    found = more.posterior_.predict(site, include_noise=False)
    assert_allclose(found.mean, expected.mean, atol=0.02)


def test_outputs_observed_at_a_location_inform_the_others_there(data, fitted, posterior):
    X, Y = data
    x = np.array([[0.4, 0.6], [0.2, 0.9]])
    observed = np.array([[2.0, np.nan], [np.nan, np.nan]])
    given = dense(fitted, np.vstack([X, x[:1]]), np.vstack([Y, observed[:1]]), x)
    expected = given.mean - dense(fitted, X, Y, x).mean
    z = fitted.output_scaler_.standardise(observed)
    with_z, without = (posterior.predict(x, each, include_noise=False) for each in (z, None))
    shift = (with_z.mean - without.mean)[0]
    assert_allclose(shift[0], expected[0, 0], rtol=0.1)
    assert_allclose(shift[1], 0.0, atol=1e-12)  # nothing was observed there
    plain, std = fitted.predict(x, return_std=True)
    informed, smaller = fitted.predict(x, return_std=True, observed=observed)
    assert informed[0, 1] != plain[0, 1]
    assert smaller[0, 1] < std[0, 1]
    assert_allclose(smaller[1], std[1])


def test_variance_that_features_leave_out_is_part_of_the_uncertainty(data):
    with pytest.warns(UserWarning, match=r"functions leave out .* more than tolerance=0.001"):
        few = quick(kernel=Matern(0.2, "fixed", nu=1.5), tolerance=1e-3, n_functions=41).fit(*data)
    assert (few.left_out_ > 0.01).all()
    truncated = few.posterior_.model.truncated_covariance
    found = few.posterior_.predict(data[0], include_noise=False)
    assert (np.einsum("mdd->md", found.cov[0]) > 0.999 * np.diagonal(truncated)).all()


def test_samples_have_the_predicted_distribution(data, fitted):
    """Of 500 samples, 60 means within 5 standard errors: one false alarm in 10⁴."""
    x = data[0][:30]
    mean, std = fitted.predict(x, return_std=True)
    samples = fitted.sample_y(x, 500, random_state=1)
    assert samples.shape == (30, 2, 500)
    assert (np.abs(samples.mean(axis=2) - mean) < 5 * std / np.sqrt(500)).all()
    assert_allclose(samples.std(axis=2), std, rtol=0.2)
    signals = fitted.sample_y(x, 500, include_noise=False)
    assert (signals.std(axis=2) < samples.std(axis=2)).all()
    near = np.array([[0.5, 0.5], [0.501, 0.5], [0.9, 0.1]])
    correlation = np.corrcoef(fitted.sample_y(near, 500, include_noise=False)[:, 0])
    assert correlation[0, 1] > 0.9 > abs(correlation[0, 2])


def test_what_needs_the_readings_is_refused_with_an_alternative(posterior, rng):
    with pytest.raises(ValueError, match=r"Add .* with partial_fit\(X, observed, learn=False\)"):
        posterior.sample(np.zeros((1, 2)), 1, rng, np.zeros((1, 2)))
    with pytest.raises(ValueError, match=r"cannot leave any out\. Use emgpr\.compare"):
        posterior.leave_out(np.zeros((2, 3), int))
    with pytest.raises(ValueError, match="Compare it with IndependentGP"):
        posterior.without_transfer()


def test_a_worker_predicts_the_same_without_the_sums(posterior, rng):
    x = rng.uniform(size=(5, 2))
    worker = posterior.for_worker()
    assert worker.sums is None
    assert_allclose(worker.predict(x).cov, posterior.predict(x).cov, rtol=1e-14)
    with pytest.raises(ValueError, match="not in this process"):
        worker.sample(x, 1, rng)


def test_without_covariances_only_means_are_computed(posterior, rng):
    x = rng.uniform(size=(5, 2))
    found = posterior.predict(x, include_noise=False, with_cov=False)
    assert_allclose(found.mean, posterior.predict(x).mean)
    assert not found.cov.any()
