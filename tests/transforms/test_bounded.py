"""Transforms between bounds: never beyond them, nearly the identity away from them, calibrated."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import kstest, norm

from emgpr.prediction import GaussianMixture
from emgpr.transforms import Bounded, Identity, NormalScore, OutputScaler, YeoJohnson
from emgpr.transforms.bounded import Link, fit_bounded

INF = np.inf
SHAPES = [Identity, YeoJohnson, NormalScore]


def tables(seed):
    """Readings with their bounds: concentrations, temperatures, rain, percentages, negatives."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 200))
    z = rng.normal(rng.normal(), 10 ** rng.uniform(-2, 0.5), n)
    unit = 10 ** rng.uniform(-6, 6)
    yield unit * np.exp(z), (0.0, INF)
    yield unit * (20 + z), (0.0, INF)
    yield unit * np.maximum(z - np.median(z), 0.0), (0.0, INF)
    yield 100 / (1 + np.exp(-z)), (0.0, 100.0)
    yield np.clip(50 + 40 * z, 0.0, 100.0), (0.0, 100.0)
    yield -np.exp(z), (-INF, 0.0)
    yield np.round(np.exp(z)), (0.0, INF)


LINKS = [Link(0.0, INF, 2.0), Link(-INF, 1.1, 0.7), Link(-1.0, 3.0, 9.0)]


@pytest.mark.parametrize("link", LINKS, ids=str)
def test_a_link_is_increasing_invertible_and_has_its_slope(link):
    g = np.linspace(-30, 30, 601)
    y = link.inverse(g)
    inside = (y > link.lower) & (y < link.upper) & (link.upper - y > 1e-12)
    assert (np.diff(y) >= 0).all()
    assert y.min() >= link.lower
    assert y.max() <= link.upper
    assert_allclose(link.forward(y[inside]), g[inside], rtol=1e-3, atol=1e-6)
    middle = link.inverse(np.array([-0.5, 0.3, 1.0]))
    h = 1e-6
    slope = (link.forward(middle + h) - link.forward(middle - h)) / (2 * h)
    assert_allclose(link.log_slope(middle), np.log(slope), rtol=1e-5)
    bounded = np.isfinite([link.lower, link.upper])
    assert np.isneginf(link.log_slope(np.array([-99.0, 99.0])))[bounded].all()


@pytest.mark.parametrize("bounds", [(-1e300, 1e300), (-1e12, INF), (-INF, 1e12), (-1e15, 1e9)])
def test_distant_bounds_cost_no_digits(bounds):
    y = np.random.default_rng(0).normal(20, 3, 40)
    for shape in SHAPES:
        fitted = fit_bounded(y, bounds, shape)
        assert_allclose(fitted.inverse(fitted.forward(y)), y, rtol=1e-12)


def test_a_link_is_defined_at_infinity():
    """Where the inverse of another transform overflows."""
    ends = np.array([-INF, INF])
    for link in LINKS:
        assert_allclose(link.inverse(ends), [link.lower, link.upper])


@pytest.mark.parametrize("shape", SHAPES)
def test_readings_that_are_rounded_bounds_are_at_the_bounds(shape):
    y = np.append(np.linspace(0.3, 5, 30), 0.1 + 0.2)  # 0.30000000000000004
    y[0] = np.nextafter(0.3, 1)
    for bounds in ((0.3, INF), (0.3, 5 * (1 - 1e-12))):
        fitted = fit_bounded(y, bounds, shape)
        assert np.isfinite(fitted.forward(y)).all()
        assert fitted.at_lower is not None
        ends = np.array([0.3, 0.1 + 0.2, 0.3 * (1 - 1e-10)])
        m, s = np.zeros((1, 3)), np.ones((1, 3))
        assert_allclose(np.ptp(fitted.log_density(ends, m, s)), 0.0)
        mass = np.exp(fitted.log_density(ends, m, s)[0])
        assert_allclose(np.sort(fitted.cdf(ends, m, s)), mass * np.array([1, 3, 5]) / 6)


def test_far_from_its_bounds_a_link_is_the_identity_and_a_wide_one_a_log_or_logit():
    y = np.array([20.0, 50.0, 80.0])
    assert_allclose(Link(0.0, 100.0, 1.0).forward(y), y, rtol=1e-7)
    wide = Link(0.0, INF, 1e6).forward(y)
    assert_allclose(np.diff(wide) / np.diff(np.log(y)), 1e6, rtol=1e-4)
    wide = Link(0.0, 100.0, 1e6).forward(y)
    assert_allclose(np.diff(wide) / np.diff(np.log(y / (100 - y))), 1e6, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(48))  # with 7 tables and 3 shapes, 1008 random tables
def test_no_quantile_mean_or_sample_lies_beyond_the_bounds(seed):
    z = np.random.default_rng(seed).normal(0, 4, size=(20, 1))
    wide = GaussianMixture(z[None], np.full((1, 20, 1, 1), 9.0))
    for values, bounds in tables(seed):
        for name in ("softplus", "yeo-johnson", "normal-score"):
            scaler = OutputScaler.fit(values[:, None], name, bounds=bounds)
            lower, upper = bounds
            quantiles = scaler.quantiles(wide, [0.001, 0.025, 0.5, 0.975, 0.999])
            results = [quantiles, scaler.mean(wide), scaler.to_original(z)]
            for result in results:
                assert np.isfinite(result).all()
                assert result.min() >= lower
                assert result.max() <= upper
            back = scaler.to_original(scaler.standardise(values[:, None]))
            spread = np.ptp(values) or 1.0
            assert_allclose(back, values[:, None], atol=1e-6 * spread, rtol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_densities_and_masses_add_up_to_one(shape):
    rng = np.random.default_rng(0)
    m, s = np.array([[0.1]]), np.array([[1.3]])
    values = np.clip(rng.normal(30, 40, 80), 0, 100)
    for bounds in ((0.0, 100.0), (0.0, INF)):
        t = fit_bounded(values[values < bounds[1]], bounds, shape)
        scale = t.forward(values[(values > 0) & (values < 100)]).std()
        m_u, s_u = m * scale, s * scale

        def density(y, t=t, m_u=m_u, s_u=s_u):
            return float(np.exp(t.log_density(np.array([y]), m_u, s_u))[0])

        top = min(bounds[1], 4000.0)
        inside = quad(density, 1e-9, top - 1e-9, limit=400, points=[1, 10, 50, 90, 99.9])[0]
        masses = density(0.0) + (density(top) if bounds[1] == top else 0.0)
        assert_allclose(inside + masses, 1.0, atol=1e-2)
        assert density(-1.0) == 0


def test_a_mass_is_the_probability_beyond_its_limit():
    t = fit_bounded(np.array([0.0, 0.0, 0.0, 1.0, 2.0, 5.0]), (0.0, INF), Identity)
    assert isinstance(t, Bounded)
    m, s = np.array([[0.5]]), np.array([[2.0]])
    zero = np.array([0.0])
    assert_allclose(np.exp(t.log_density(zero, m, s)), norm.cdf(-0.25))
    scaler = OutputScaler.fit(np.array([[0.0], [0.0], [1.0], [3.0]]), "softplus", normalize=False)
    distribution = GaussianMixture(m[..., None], (s**2)[..., None, None])
    assert_allclose(scaler.exceedance(distribution, 0.0), norm.sf(-0.25))
    assert_allclose(scaler.exceedance(distribution, -1.0), 1.0)
    mean = 0.5 * norm.cdf(0.25) + 2.0 * norm.pdf(0.25)  # of max(0, u)
    assert_allclose(scaler.mean(distribution), mean, rtol=1e-3)


@pytest.mark.parametrize("threshold", [-0.8, 0.0, 0.8])
def test_probability_integral_transforms_of_censored_readings_are_uniform(threshold):
    """600 readings with known distributions; a Kolmogorov distance over 0.06 has chance 0.03."""
    rng = np.random.default_rng(3)
    signal = rng.normal(size=600)
    u = signal + 0.5 * rng.normal(size=600)
    y = np.maximum(u - threshold, 0.0)
    scaler = OutputScaler.fit(y[:, None], "softplus", normalize=False)
    distribution = GaussianMixture(
        (signal - threshold)[None, :, None], np.full((1, 600, 1, 1), 0.25)
    )
    pit = scaler.cdf(distribution, y[:, None]).ravel()
    assert ((pit > 0) & (pit < 1)).all()
    assert kstest(pit, "uniform").statistic < 0.06


def test_readings_outside_the_bounds_are_named():
    scaler = OutputScaler.fit(np.array([[1.0], [2.0], [4.0]]), "softplus", names=["rain"])
    with pytest.raises(ValueError, match=r"'rain' has 2 values outside \(0, inf\).*rows 0, 2 "):
        scaler.standardise(np.array([[-1.0], [3.0], [0.0]]))
    assert np.isnan(scaler.standardise(np.array([[np.nan]]))).all()
