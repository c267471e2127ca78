"""Moments and scores by quadrature agree with closed forms and with SciPy's quadrature."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm

from emgpr.prediction import GaussianMixture
from emgpr.transforms import Identity, Log, NormalScore, OutputScaler, YeoJohnson
from emgpr.transforms.quadrature import hermite_expansion


def test_the_expansion_of_an_exponential_is_the_closed_form(rng):
    m, s = rng.normal(size=(2, 3)), rng.uniform(0.1, 1.0, size=(2, 3))
    expected, expected_variance = Log().expansion(m, s, 6)
    for every in (1, 4):
        a, variance = hermite_expansion(np.exp, m, s, 6, every)
        assert_allclose(a, expected, rtol=1e-9)
        assert_allclose(variance, expected_variance, rtol=1e-9)


def of_transform(transform):
    return OutputScaler((transform,), np.zeros(1), np.ones(1))


def test_crps_by_quadrature_agrees_with_the_closed_forms_of_mixtures(rng):
    """Scores on a straight line are the identity; a power of 0 is the log of 1 + y for y > 0."""
    m, s = rng.normal(3, 1, size=(5, 8, 1)), rng.uniform(0.1, 0.4, size=(5, 8, 1, 1))
    distribution, Y = GaussianMixture(m, s**2), rng.normal(3, 1, size=(8, 1))
    line = np.array([-1.0, 0.5, 2.0])
    for general, closed, of_general, of_closed in [
        (NormalScore(line, line), Identity(), Y, Y),
        (YeoJohnson(0.0, 1.0, 0.0), Log(), np.exp(Y) - 1, np.exp(Y)),
    ]:
        found = of_transform(general).crps(distribution, of_general)
        expected = of_transform(closed).crps(distribution, of_closed)
        assert_allclose(found, expected, rtol=1e-6)


def test_scipys_adaptive_quadrature_agrees(rng):
    """Integrals of the definitions, for a power transform of a mixture."""
    scaler = OutputScaler.fit(np.exp(rng.normal(size=(30, 1))) ** 0.5, "yeo-johnson")
    parts = [(-0.3, 0.6), (1.0, 0.3)]
    m, s = np.array(parts).T
    distribution = GaussianMixture(m[:, None, None], s[:, None, None, None] ** 2)

    def f(z):
        return scaler.to_original(np.array([[z]])).item()

    def F(y):
        z = scaler.standardise(np.array([[y]])).item()
        return np.mean([norm.cdf(z, *part) for part in parts])

    def density(z):
        return np.mean([norm.pdf(z, *part) for part in parts])

    mean = quad(lambda z: f(z) * density(z), -6, 6)[0]
    assert_allclose(scaler.mean(distribution), mean, rtol=1e-6)
    y = f(0.4)
    below = quad(lambda x: F(x) ** 2, f(-6.0), y, epsrel=1e-7)[0]
    above = quad(lambda x: (1 - F(x)) ** 2, y, f(6.0), epsrel=1e-7)[0]
    assert_allclose(scaler.crps(distribution, np.array([[y]])), below + above, rtol=1e-6)
