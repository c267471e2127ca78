"""Equal mixtures of Gaussians of one quantity: tails, densities and quantiles."""

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
