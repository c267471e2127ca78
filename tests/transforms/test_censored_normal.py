"""The censored normal distribution against numerical integrals and known parameters."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from emgpr.transforms.censored_normal import NOT_CENSORED, Censoring, mean_below


@pytest.mark.parametrize("limit", [-30.0, -1.0, 0.7, 5.0])
def test_the_mean_below_a_limit_is_an_integral(limit):
    mean, std = 0.4, 1.7
    mass = norm.cdf(limit, mean, std)
    if mass > 1e-12:
        integral = quad(lambda u: u * norm.pdf(u, mean, std), mean - 12 * std, limit)[0] / mass
        assert_allclose(mean_below(limit, mean, std), integral, rtol=1e-6)
    assert mean_below(limit, mean, std) < limit


def test_without_censoring_the_fit_is_the_mean_and_standard_deviation(rng):
    u = rng.normal(3, 2, 50)
    assert_allclose(NOT_CENSORED.fit(u), (u.mean(), u.std()))
    assert_allclose(NOT_CENSORED.max_log_likelihood(u), norm.logpdf(u, u.mean(), u.std()).sum())


def test_parameters_are_recovered_from_readings_censored_on_both_sides():
    """Standard errors are about 0.03 and 0.03; the tolerance is four of them."""
    z = 5 + 2 * np.random.default_rng(1).normal(size=5000)
    inside = z[(z > 4) & (z < 8)]
    censoring = Censoring(int((z <= 4).sum()), 4.0, int((z >= 8).sum()), 8.0)
    assert_allclose(censoring.fit(inside), (5.0, 2.0), atol=0.15)
    best = censoring.max_log_likelihood(inside)
    mean, std = censoring.fit(inside)
    for other in ((mean + 0.05, std), (mean, 1.03 * std)):
        assert censoring.log_likelihood(inside, *other) < best


def test_a_censoring_is_transformed_with_its_limits():
    moved = Censoring(3, 1.0).transformed(np.exp)
    assert moved == Censoring(3, np.e, 0, np.inf)
