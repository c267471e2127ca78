"""Beliefs on the user's scale, against integrals and draws made without the code under test."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import lognorm, norm
from sklearn.preprocessing import FunctionTransformer, QuantileTransformer

from emgpr.prediction import Belief
from emgpr.transforms import Identity, Log, Marginals, NormalScore, YeoJohnson

QUANTILES = QuantileTransformer(n_quantiles=15, output_distribution="normal")
ARCSINH = FunctionTransformer(np.arcsinh, np.sinh)
SPECS = [None, "log", "yeo-johnson", "normal-score", ARCSINH, QUANTILES]
BELIEFS = {
    "one Gaussian": ([0.4], [0.7]),
    "nearly certain": ([-0.3], [1e-3]),
    "wide": ([0.0], [1.6]),
    "far from the data": ([2.8], [0.5]),
    "three members": ([-0.5, 0.1, 0.6], [0.5, 0.6, 0.4]),
    "far apart, unlike": ([-2.5, 2.0], [0.05, 0.6]),
}


@pytest.fixture(params=SPECS, ids=lambda spec: str(spec)[:12])
def marginals(request):
    Y = np.exp(np.random.default_rng(3).normal(1.0, 0.5, size=(25, 1)))
    return Marginals.learned(Y, request.param)


@pytest.fixture(params=BELIEFS.values(), ids=BELIEFS.keys())
def belief(request):
    m, s = np.array(request.param)
    return Belief(m[:, None, None], s[:, None, None, None] ** 2)


def components(belief):
    """Mean and deviation of each Gaussian, of the only output of the only site."""
    return list(zip(belief.mean.ravel(), np.sqrt(belief.cov.ravel()), strict=True))


def user(marginals, z):
    return marginals.to_user(np.reshape(z, (-1, 1))).ravel()


def expected(function, marginals, belief):
    """E function(y), by Simpson's rule on 8001 points a component, finer than any knot."""
    x = np.linspace(-11, 11, 8001)
    w = norm.pdf(x) * (x[1] - x[0]) * np.tile([4, 2], 4001)[:-1] / 3
    return np.mean([w @ function(user(marginals, m + s * x)) for m, s in components(belief)])


def test_the_mean_and_variance_are_integrals(marginals, belief):
    """To 1e-6 of the deviation; where a borrowed map has kinks, 1e-3."""
    borrowed = getattr(marginals.maps[0], "transformer", None)
    within = 1e-3 if isinstance(borrowed, QuantileTransformer) else 1e-6
    mean = expected(lambda y: y, marginals, belief)
    variance = expected(lambda y: (y - mean) ** 2, marginals, belief)
    assert_allclose(marginals.mean(belief), mean, atol=within * np.sqrt(variance))
    assert_allclose(marginals.covariance(belief), variance, rtol=2 * within)


def test_quantiles_are_where_the_distribution_reaches_them(marginals, belief):
    q = np.array([0.001, 0.05, 0.3, 0.5, 0.77, 0.999])
    values = marginals.quantiles(belief, q)
    assert values.shape == (6, 1, 1)
    assert (np.diff(values[:, 0, 0]) >= 0).all()
    inside = values[np.isfinite(marginals.maps[0].forward(values))]
    reached = [marginals.cdf(belief, np.array([[value]])).item() for value in inside]
    ends = user(marginals, [-99.0, 99.0])
    free = (inside > ends[0]) & (inside < ends[1])  # what is put at an end of the reach is there
    assert free.any()
    assert_allclose(np.array(reached)[free], q[free], rtol=1e-9)
    assert_allclose(marginals.median(belief), values[3], rtol=1e-12)


def test_exceedance_is_the_share_of_the_components_above(marginals, belief):
    threshold = user(marginals, [0.2])
    share = np.mean([norm.sf(0.2, m, s) for m, s in components(belief)])
    assert_allclose(marginals.exceedance(belief, threshold[0]), share, rtol=1e-8)
    assert_allclose(marginals.exceedance(belief, threshold), share, rtol=1e-8)
    assert_allclose(marginals.cdf(belief, threshold[None]), 1 - share, rtol=1e-8)


def test_the_density_is_the_slope_of_the_distribution(marginals, belief):
    for m, s in components(belief):
        z = m + s * np.array([-1.3, 0.01, 0.8])  # on no knot
        ends = marginals.maps[0].forward(user(marginals, [-99.0, 99.0]))
        z = np.clip(z, *(ends - marginals.shift) / marginals.scale + [1e-3, -1e-3])
        left, y, right = (user(marginals, z + step)[:, None] for step in (-1e-5 * s, 0, 1e-5 * s))
        many = Belief(np.repeat(belief.mean, 3, 1), np.repeat(belief.cov, 3, 1))
        slope = (marginals.cdf(many, right) - marginals.cdf(many, left)) / (right - left)
        assert_allclose(np.exp(marginals.log_density(many, y)), slope, rtol=1e-4)


@pytest.mark.parametrize("at", [-2.0, 0.3, 3.0])
def test_crps_is_the_integral_of_the_squared_distance_to_the_reading(marginals, belief, at):
    """By a sum over 40,000 strips of x, whose own error is about 1e-4."""
    reading = user(marginals, [at])
    z = np.concatenate([m + s * np.linspace(-9, 9, 10_000) for m, s in components(belief)])
    z = np.sort(np.concatenate([z, np.linspace(z.min(), z.max(), 10_000)]))
    x = np.unique(np.concatenate([user(marginals, z), reading]))
    middle = (x[1:] + x[:-1]) / 2
    u = (marginals.maps[0].forward(middle) - marginals.shift) / marginals.scale
    F = np.mean([norm.cdf(u, m, s) for m, s in components(belief)], axis=0)
    integral = np.sum((F - (middle > reading)) ** 2 * np.diff(x))
    assert_allclose(marginals.crps(belief, reading[None]), integral, rtol=3e-4)


def test_crps_of_a_gaussian_and_a_lognormal_are_the_published_ones():
    """Gneiting & Raftery (2007), eq. 21; Baran & Lerch (2015), eq. 7."""
    belief = Belief(np.array([[[0.3]]]), np.array([[[[0.49]]]]))
    m, s, y = 0.3, 0.7, 1.1
    t = (y - m) / s
    gaussian = s * (t * (2 * norm.cdf(t) - 1) + 2 * norm.pdf(t) - 1 / np.sqrt(np.pi))
    t = (np.log(y) - m) / s
    tails = norm.cdf(t - s) + norm.cdf(s / np.sqrt(2)) - 1
    lognormal = y * (2 * norm.cdf(t) - 1) - 2 * np.exp(m + s**2 / 2) * tails
    for of, published in ((Identity(), gaussian), (Log(), lognormal)):
        marginals = Marginals((of,), np.zeros(1), np.ones(1))
        assert_allclose(marginals.crps(belief, np.array([[y]])), published, rtol=1e-13)


def test_general_crps_agrees_with_the_closed_forms_of_mixtures(rng):
    """Scores of a straight line are the identity; a power of 0 is the log of 1 + y for y > 0."""
    m, s = rng.normal(3, 1, size=(5, 8, 1)), rng.uniform(0.1, 0.4, size=(5, 8, 1, 1))
    belief, Y = Belief(m, s**2), rng.normal(3, 1, size=(8, 1))
    line = np.array([-1.0, 0.5, 2.0])
    pairs = [
        (NormalScore(line, line), Identity(), Y, Y),
        (YeoJohnson(0.0, 1.0, 0.0), Log(), np.exp(Y) - 1, np.exp(Y)),
    ]
    for general, closed, ours, theirs in pairs:
        scores = [
            Marginals((of,), np.zeros(1), np.ones(1)).crps(belief, readings)
            for of, readings in ((general, ours), (closed, theirs))
        ]
        assert_allclose(*scores, rtol=1e-6)


def test_log_density_of_a_lognormal_is_scipys():
    marginals = Marginals((Log(),), np.array([0.2]), np.array([2.0]))
    belief = Belief(np.full((1, 4, 1), 0.3), np.full((1, 4, 1, 1), 0.25))
    Y = np.array([[0.5], [3.0], [np.nan], [-1.0]])
    known = lognorm.logpdf(Y[:2], s=1.0, scale=np.exp(0.8))
    assert_allclose(marginals.log_density(belief, Y).ravel(), [*known.ravel(), np.nan, -np.inf])


def test_thresholds_outside_the_domain_are_certainly_exceeded():
    marginals = Marginals.learned(np.array([[1.0, 1.0], [2.0, 3.0]]), "log")
    belief = Belief(np.zeros((2, 3, 2)), np.broadcast_to(np.eye(2), (2, 3, 2, 2)))
    assert (marginals.exceedance(belief, [0.0, -5.0]) == 1.0).all()
    assert (marginals.cdf(belief, np.zeros((3, 2))) == 0.0).all()
    Y = np.full((3, 2), -5.0)
    assert_allclose(marginals.crps(belief, Y) - marginals.crps(belief, 0 * Y), 5.0)


def test_small_chances_are_not_lost_to_rounding():
    marginals = Marginals.learned(np.array([[-1.0], [1.0]]))
    belief = Belief(np.zeros((1, 1, 1)), np.ones((1, 1, 1, 1)))
    assert_allclose(marginals.exceedance(belief, 12.0), norm.sf(12.0))


def test_missing_readings_have_no_score(marginals, belief):
    for score in (marginals.cdf, marginals.log_density, marginals.crps):
        assert np.isnan(score(belief, np.array([[np.nan]]))).all()


def test_the_median_of_one_gaussian_needs_no_covariance(marginals):
    belief = Belief(np.array([[[0.3]]]), np.full((1, 1, 1, 1), np.nan))
    assert_allclose(marginals.median(belief), user(marginals, [0.3])[:, None])


def test_members_far_apart_have_their_median_half_way():
    """Where the distribution is flat to rounding, 20 deviations from either."""
    marginals = Marginals.learned(np.array([[0.0], [1.0]]), normalize=False)
    belief = Belief(np.array([[[-20.0]], [[24.0]]]), np.ones((2, 1, 1, 1)))
    assert_allclose(marginals.median(belief), 2.0, atol=1e-9)
    apart = Belief(np.array([[[-1e6]], [[1.0]], [[1e6]]]), np.full((3, 1, 1, 1), 0.25))
    assert_allclose(marginals.median(apart), 1.0)
    within = 1.0 + 0.5 * norm.ppf(0.2)  # a fifth of the middle one
    assert_allclose(marginals.quantiles(apart, [1.2 / 3]), within, rtol=1e-9)


def test_certain_members_are_steps(marginals):
    belief = Belief(np.array([[[-0.5]], [[0.2]], [[0.4]]]), np.zeros((3, 1, 1, 1)))
    values = user(marginals, [-0.5, 0.2, 0.4])
    assert_allclose(marginals.median(belief), values[1], rtol=1e-6)
    assert_allclose(marginals.mean(belief), values.mean())
    assert_allclose(marginals.covariance(belief), values.var(), rtol=1e-6)
    reading = user(marginals, [0.3])
    assert_allclose(marginals.cdf(belief, reading[None]), 2 / 3)
    energy = np.abs(values - reading).mean() - np.abs(values[:, None] - values).mean() / 2
    assert_allclose(marginals.crps(belief, reading[None]), energy, rtol=1e-6)


MIXED = [None, "log", "yeo-johnson", "normal-score"]


@pytest.fixture
def mixed(rng):
    return Marginals.learned(np.exp(rng.normal(1.0, 0.4, size=(30, 5))), [*MIXED, "log"])


@pytest.fixture
def joint(rng):
    A = rng.normal(size=(2, 3, 5, 6)) / 3
    return Belief(rng.normal(size=(2, 3, 5)) / 2, A @ A.swapaxes(-1, -2))


def test_covariances_of_unlike_outputs_are_double_integrals(mixed, joint):
    """E y_i y_j by conditioning: an integral over z_i of one over z_j given z_i."""
    x = np.linspace(-9, 9, 1201)
    w = norm.pdf(x) * (x[1] - x[0])
    cov, mean = mixed.covariance(joint)[0], mixed.mean(joint)[0]
    for i, j in [(0, 1), (0, 3), (1, 2), (1, 4), (2, 3), (3, 4)]:
        products = []
        for m, C in zip(joint.mean[:, 0], joint.cov[:, 0], strict=True):
            z_i = m[i] + np.sqrt(C[i, i]) * x
            given = m[j] + C[i, j] / C[i, i] * (z_i - m[i])
            z_j = given[:, None] + np.sqrt(C[j, j] - C[i, j] ** 2 / C[i, i]) * x
            y_i, y_j = one_output(mixed, i, z_i), one_output(mixed, j, z_j)
            products.append(w @ ((y_i - mean[i]) * ((y_j - mean[j]) @ w)))
        deviations = np.sqrt(cov[i, i] * cov[j, j])
        assert_allclose(cov[i, j], np.mean(products), atol=1e-4 * deviations)


def one_output(marginals, d, z):
    return marginals.maps[d].back(z * marginals.scale[d] + marginals.shift[d])


def test_moments_are_those_of_draws(mixed, joint, rng):
    """Within 5 standard errors of 200,000 draws: 20 comparisons, a false alarm in 80,000."""
    site = Belief(joint.mean[:, :1], joint.cov[:, :1])
    draws = np.concatenate(
        [
            mixed.to_user(rng.multivariate_normal(m, C, size=100_000))
            for m, C in zip(site.mean[:, 0], site.cov[:, 0], strict=True)
        ]
    )
    apart = draws - mixed.mean(site)
    products = apart[:, :, None] * apart[:, None, :]
    for seen, claimed in ((draws, mixed.mean(site)), (products, mixed.covariance(site))):
        error = seen.std(axis=0) / np.sqrt(len(seen))
        assert np.all(np.abs(seen.mean(axis=0) - claimed[0]) < 5 * error)


@pytest.mark.parametrize("rho", [0.0, 0.6, -0.9, 0.999, 1.0, -1.0])
def test_covariances_are_positive_semi_definite(mixed, rho):
    A = np.vander(np.linspace(0.3, 1.2, 5), 5)
    alike = np.full((5, 5), abs(rho)) + (1 - abs(rho)) * np.eye(5)
    signs = np.array([1, np.sign(rho) or 1, 1, np.sign(rho) or 1, 1])
    cov = np.stack([A @ A.T, alike * np.outer(signs, signs) * 0.8])[None]
    spread = mixed.covariance(Belief(np.zeros((1, 2, 5)), cov))
    assert_allclose(spread, spread.swapaxes(-1, -2), rtol=1e-12)
    scaled = spread / np.sqrt(np.einsum("mdd,mee->mde", spread, spread))
    assert np.linalg.eigvalsh(scaled).min() > -1e-10


def test_outputs_that_are_one_and_the_same_have_its_variance_as_covariance(rng):
    """As ρ nears 1 the series is cut short: 2e-3 of the variance for lines, 1e-6 if smooth."""
    y = np.exp(rng.normal(size=(40, 1)))
    for spec, within in [
        (None, 1e-12),
        ("log", 1e-12),
        ("yeo-johnson", 1e-6),
        ("normal-score", 5e-3),
    ]:
        twins = Marginals.learned(np.hstack([y, y]), spec)
        cov = twins.covariance(Belief(np.zeros((1, 1, 2)), np.full((1, 1, 2, 2), 0.7)))[0]
        assert_allclose(cov[0, 1], cov[0, 0], rtol=within)


def test_rounding_below_zero_is_no_variance(marginals):
    belief = Belief(np.zeros((1, 1, 1)), np.full((1, 1, 1, 1), -1e-17))
    assert_allclose(marginals.covariance(belief), 0.0, atol=1e-20)
    assert_allclose(marginals.quantiles(belief, [0.1])[0], marginals.median(belief))


def test_sites_may_be_taken_in_runs(mixed, joint, monkeypatch):
    Y = mixed.to_user(joint.mean[0])
    asked = [mixed.mean, mixed.covariance, mixed.median, lambda b: mixed.crps(b, Y)]
    whole = [ask(joint) for ask in asked]
    one_by_one = lambda n, *_: [range(i, i + 1) for i in range(n)]  # noqa: E731
    monkeypatch.setattr("emgpr.transforms.marginals.chunks", one_by_one)
    for ask, before in zip(asked, whole, strict=True):
        assert_allclose(ask(joint), before, rtol=1e-6)


def test_units_of_the_outputs_are_the_units_of_the_answers(rng):
    """A thousand times the readings: a thousand times the answers, a million the covariance."""
    Y = np.exp(rng.normal(size=(30, 2)))
    belief = Belief(
        rng.normal(size=(3, 4, 2)), np.broadcast_to(np.eye(2) * 0.5 + 0.2, (3, 4, 2, 2))
    )
    for spec in MIXED:
        small, large = Marginals.learned(Y, spec), Marginals.learned(1e3 * Y, spec)
        at = small.to_user(belief.mean[0])
        for ask in ("mean", "median"):
            assert_allclose(
                getattr(large, ask)(belief), 1e3 * getattr(small, ask)(belief), rtol=1e-5
            )
        assert_allclose(large.covariance(belief), 1e6 * small.covariance(belief), rtol=1e-5)
        assert_allclose(large.crps(belief, 1e3 * at), 1e3 * small.crps(belief, at), rtol=1e-5)
        density = small.log_density(belief, at) - np.log(1e3)
        assert_allclose(large.log_density(belief, 1e3 * at), density, atol=1e-5)


def test_a_quadrature_of_scipy_agrees(rng):
    """Adaptive integrals of the whole definition, for a power of a mixture."""
    marginals = Marginals.learned(np.exp(rng.normal(size=(30, 1))) ** 0.5, "yeo-johnson")
    parts = [(-0.3, 0.6), (1.0, 0.3)]
    m, s = np.array(parts).T
    belief = Belief(m[:, None, None], s[:, None, None, None] ** 2)

    def f(z):
        return user(marginals, [z])[0]

    def F(z):
        return np.mean([norm.cdf(z, *part) for part in parts])

    def inverse(y):
        u = marginals.maps[0].forward(np.array([y]))
        return ((u - marginals.shift) / marginals.scale)[0]

    def density(z):
        return np.mean([norm.pdf(z, *part) for part in parts])

    mean = quad(lambda z: f(z) * density(z), -6, 6)[0]
    assert_allclose(marginals.mean(belief), mean, rtol=1e-6)
    y = f(0.4)
    below = quad(lambda x: F(inverse(x)) ** 2, f(-6.0), y)[0]
    above = quad(lambda x: (1 - F(inverse(x))) ** 2, y, f(6.0))[0]
    assert_allclose(marginals.crps(belief, np.array([[y]])), below + above, rtol=1e-6)
