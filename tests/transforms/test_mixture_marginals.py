"""Mixtures of Gaussians of one quantity, with or without weights: tails, densities, quantiles."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from emgpr.transforms import mixture_marginals


def mixture(*components):
    m, s = np.array(components, dtype=float).T
    return m[:, None], s[:, None]


def test_functions_are_means_over_the_components():
    components = (-0.3, 0.6), (1.0, 0.3), (0.2, 2.0)
    m, s = mixture(*components)
    u = np.array([0.4])
    for name in ("cdf", "sf", "pdf"):
        expected = np.mean([getattr(norm, name)(0.4, *part) for part in components])
        assert_allclose(getattr(mixture_marginals, name)(u, m, s), expected)
    assert_allclose(mixture_marginals.logpdf(u, m, s), np.log(mixture_marginals.pdf(u, m, s)))
    area, _ = quad(lambda v: mixture_marginals.pdf(np.array([v]), m, s).item(), -20, 20)
    assert_allclose(area, 1.0)


def test_tails_are_not_lost_to_rounding():
    m, s = mixture((0.0, 1.0), (1.0, 1.0))
    u = np.array([12.0])
    assert_allclose(mixture_marginals.sf(u, m, s), (norm.sf(12.0) + norm.sf(11.0)) / 2)
    assert_allclose(mixture_marginals.cdf(-u, m, s), (norm.sf(12.0) + norm.sf(13.0)) / 2)
    far = mixture_marginals.logpdf(np.array([100.0]), m, s)
    assert_allclose(far, norm.logpdf(99.0) - np.log(2))


def test_quantiles_are_where_the_distribution_function_reaches_them():
    q = np.array([1e-6, 0.05, 0.3, 0.5, 0.77, 0.999])
    for components in [((-0.5, 0.5), (0.1, 0.6), (0.6, 0.4)), ((-2.5, 0.05), (2.0, 0.6))]:
        m, s = mixture(*components)
        found = mixture_marginals.ppf(q, m, s)
        assert found.shape == (6, 1)
        assert_allclose(mixture_marginals.cdf(found, m, s).ravel(), q, rtol=1e-9)


def test_the_median_of_components_far_apart_is_half_way():
    """Where the distribution function is flat to rounding, 20 standard deviations from either."""
    half = np.array([0.5])
    assert_allclose(mixture_marginals.ppf(half, *mixture((-20, 1), (24, 1))), 2.0, atol=1e-9)
    three = mixture((-1e6, 0.5), (1.0, 0.5), (1e6, 0.5))
    assert_allclose(mixture_marginals.ppf(half, *three), 1.0)
    within = 1.0 + 0.5 * norm.ppf(0.2)  # a fifth of the middle component
    assert_allclose(mixture_marginals.ppf(np.array([1.2 / 3]), *three), within, rtol=1e-9)


WEIGHTS = np.array([[0.2], [0.7], [0.1]])
THREE = (-0.3, 0.6), (1.0, 0.3), (0.2, 2.0)


def test_functions_are_weighted_means_over_the_components():
    m, s = mixture(*THREE)
    u = np.array([0.4])
    for name in ("cdf", "sf", "pdf"):
        expected = WEIGHTS[:, 0] @ [getattr(norm, name)(0.4, *part) for part in THREE]
        assert_allclose(getattr(mixture_marginals, name)(u, m, s, WEIGHTS), expected)
    density = mixture_marginals.pdf(u, m, s, WEIGHTS)
    assert_allclose(mixture_marginals.logpdf(u, m, s, WEIGHTS), np.log(density))


def test_equal_weights_are_the_same_as_none():
    m, s = mixture(*THREE)
    u, equal = np.array([0.4]), np.full((3, 1), 1 / 3)
    for name in ("cdf", "sf", "pdf", "logpdf"):
        function = getattr(mixture_marginals, name)
        assert_allclose(function(u, m, s, equal), function(u, m, s), rtol=1e-12)
    q = np.array([0.01, 0.5, 0.8])
    found = mixture_marginals.ppf(q, m, s, equal)
    assert_allclose(found, mixture_marginals.ppf(q, m, s), rtol=1e-9)


def test_quantiles_of_weighted_components_are_where_the_distribution_function_reaches_them():
    q = np.array([1e-6, 0.05, 0.3, 0.5, 0.77, 0.999])
    m, s = mixture(*THREE)
    found = mixture_marginals.ppf(q, m, s, WEIGHTS)
    assert_allclose(mixture_marginals.cdf(found, m, s, WEIGHTS).ravel(), q, rtol=1e-9)


def test_quantiles_far_apart_depend_on_the_weights():
    """A quarter of the probability is at −20: the first quartile is between the components."""
    m, s = mixture((-20, 1), (24, 1))
    w = np.array([[0.25], [0.75]])
    low, middle = mixture_marginals.ppf(np.array([0.2, 0.5]), m, s, w)[:, 0]
    assert_allclose(low, norm.ppf(0.8, -20, 1))
    assert_allclose(middle, norm.ppf(1 / 3, 24, 1))


def test_components_of_weight_zero_change_nothing():
    m, s = mixture(*THREE, (1e6, 1e-6))
    w = np.vstack([WEIGHTS, [[0.0]]])
    q, u = np.array([0.001, 0.5, 0.999]), np.array([0.4])
    alone = mixture(*THREE)
    found = mixture_marginals.ppf(q, m, s, w)
    assert_allclose(found, mixture_marginals.ppf(q, *alone, WEIGHTS), rtol=1e-9)
    one = mixture_marginals.cdf(u, m, s, w), mixture_marginals.cdf(u, *alone, WEIGHTS)
    assert_allclose(*one)
    values = np.array([[1.0], [2.0], [3.0]])
    assert_allclose(mixture_marginals.average(values, WEIGHTS), [0.2 + 1.4 + 0.3])
    assert_allclose(mixture_marginals.log_average(np.log(values), WEIGHTS), np.log([1.9]))


def test_weights_can_differ_between_locations(rng):
    m, s = rng.normal(size=(3, 5)), rng.uniform(0.3, 1.0, size=(3, 5))
    w, q = rng.dirichlet(np.ones(3), size=5).T, np.array([0.1, 0.6])
    together = mixture_marginals.ppf(q, m, s, w)
    for i in range(5):
        alone = mixture_marginals.ppf(q, m[:, [i]], s[:, [i]], w[:, [i]])
        assert_allclose(together[:, [i]], alone, rtol=1e-9)
