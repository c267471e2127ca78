"""The likelihood of convolved processes, its derivatives and its information matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from emgpr.convolution import ConvolutionVector, ReadingPairs
from emgpr.convolution.density import PosteriorDensity
from emgpr.noise import noise_prior, output_variances
from emgpr.observations import Observations
from tests.convolution.convolved import covariance_of, drawn_table, some_parameters
from tests.finite_differences import assert_is_the_gradient, derivative

CASES = [{"own": False}, {"own": True}, {"own": True, "Q": 1}]


def problem(rng, missing=0.3, **shape):
    parameters = some_parameters(rng, **shape)
    table = drawn_table(rng, parameters, missing=missing)
    vector = ConvolutionVector(3, len(parameters.covariance.weights), 2, shape["own"])
    return table, vector, parameters


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_it_is_the_density_of_the_readings(rng, case, missing):
    table, _, parameters = problem(rng, missing, **case)
    found = ReadingPairs(table).evaluate(parameters.covariance, parameters.noise)
    y = table.y[table.observed]
    expected = multivariate_normal(cov=covariance_of(table, parameters)).logpdf(y)
    assert found.value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weak_prior", [False, True])
def test_the_gradient_is_that_of_finite_differences(rng, case, weak_prior):
    table, vector, parameters = problem(rng, **case)
    density = PosteriorDensity(ReadingPairs(table), vector, weak_prior)
    x = vector.pack(parameters)
    assert_is_the_gradient(density(x)[1], lambda z: density(z)[0], x)


@pytest.mark.parametrize("case", CASES)
def test_the_information_is_the_average_information(rng, case):
    """½ (∂_aK γ)ᵀ K⁻¹ (∂_bK γ), with derivatives of the whole covariance by differences."""
    table, vector, parameters = problem(rng, **case)
    density, x = PosteriorDensity(ReadingPairs(table), vector, False), vector.pack(parameters)
    K = covariance_of(table, parameters)
    gamma = np.linalg.solve(K, table.y[table.observed])
    steps = 1e-5 * np.eye(len(x))
    dK = [
        (covariance_of(table, vector.unpack(x + s)) - covariance_of(table, vector.unpack(x - s)))
        / 2e-5
        for s in steps
    ]
    products = np.array([slope @ gamma for slope in dK])
    expected = 0.5 * products @ np.linalg.solve(K, products.T)
    found = density.information(x)
    assert_allclose(found, expected, atol=1e-7 * np.abs(expected).max())


def test_the_prior_adds_its_curvature_to_the_information(rng):
    """For noise, −∂² log p / ∂(log σ²)² plus a term that is zero at the maximum of the prior."""
    table, vector, parameters = problem(rng, own=True)
    pairs, x = ReadingPairs(table), vector.pack(parameters)
    with_prior, without = (PosteriorDensity(pairs, vector, weak) for weak in (True, False))
    added = with_prior.information(x) - without.information(x)
    assert np.linalg.eigvalsh(added).min() > -1e-10

    def log_prior(z):
        return with_prior(z)[0] - without(z)[0]

    gradient = derivative(log_prior, x)
    weights = slice(vector.parts[4].start, None)
    assert_allclose(gradient[: vector.parts[3].start], 0.0, atol=1e-6)
    assert np.abs(gradient[weights]).max() > 0.01
    noise = np.diag(parameters.noise)
    expected = noise_prior(output_variances(table), True)(noise)[0]
    assert log_prior(x) < expected  # the prior on sills is added, and not positive


def test_a_singular_covariance_has_no_likelihood(rng):
    table, _, parameters = problem(rng, own=False, missing=0.0)
    twice = Observations(np.zeros_like(table.x), table.y, table.observed)
    found = ReadingPairs(twice).evaluate(parameters.covariance, np.full(3, -1.0))
    assert found.value == -np.inf
    assert not found.of_A.any()


def test_the_last_evaluation_is_kept(rng, monkeypatch):
    table, vector, parameters = problem(rng, own=True)
    density, x = PosteriorDensity(ReadingPairs(table), vector, False), vector.pack(parameters)
    calls = []
    evaluate = ReadingPairs.evaluate
    monkeypatch.setattr(
        ReadingPairs, "evaluate", lambda self, *args: calls.append(1) or evaluate(self, *args)
    )
    density(x)
    density.information(x)
    assert density.log_likelihood(x) == density(x)[0]
    assert len(calls) == 1
