"""Outputs on the standardised scale, and distributions of them in original units.

Statistics of distributions are compared with integrals and samples computed independently.
"""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import lognorm, norm
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, QuantileTransformer

from emgpr.prediction import GaussianMixture
from emgpr.transforms import (
    TRANSFORM_NAMES,
    TRANSFORMS,
    Bounded,
    FittedTransformer,
    Identity,
    Log,
    NormalScore,
    OutputScaler,
    YeoJohnson,
)
from emgpr.transforms.base import NamedTransform

QUANTILES = QuantileTransformer(n_quantiles=15, output_distribution="normal")
ARCSINH = FunctionTransformer(np.arcsinh, np.sinh)
DISTRIBUTIONS = [
    GaussianMixture(np.reshape(m, (-1, 1, 1)), np.reshape(s, (-1, 1, 1, 1)) ** 2)
    for m, s in [
        ([-0.3], [1e-3]),  # nearly certain
        ([0.0], [1.6]),  # wide
        ([-0.5, 0.1, 0.6], [0.5, 0.6, 0.4]),  # three similar components
        ([-2.5, 2.0], [0.05, 0.6]),  # two different components
    ]
]
NAMES = ["Cd", "Zn"]


@pytest.fixture
def Y(rng):
    Y = np.exp(rng.normal(size=(40, 2))) * [1.0, 1e4]
    Y[3, 0] = np.nan
    return Y


@pytest.mark.parametrize("spec", [*TRANSFORM_NAMES, PowerTransformer()])
def test_standardised_outputs_have_mean_0_and_variance_1_and_are_inverted(Y, spec):
    scaler = OutputScaler.fit(Y, spec)
    Z = scaler.standardise(Y)
    assert_allclose(np.nanmean(Z, axis=0), 0, atol=1e-7)  # the mean is kept to eight digits
    assert_allclose(np.nanstd(Z, axis=0), 1)
    assert np.isnan(Z[3, 0])
    assert np.isnan(Z).sum() == 1
    assert_allclose(scaler.to_original(Z), Y, rtol=1e-9)
    samples = np.stack([Z, Z])
    assert_allclose(scaler.to_original(samples)[1], Y, rtol=1e-9)
    again = pickle.loads(pickle.dumps(scaler))
    assert_allclose(again.standardise(Y), Z)


def test_each_output_may_have_its_own_transform(Y):
    def classes(spec, names=None):
        return [type(t) for t in OutputScaler.fit(Y, spec, names=names).transforms]

    signed = OutputScaler.fit(Y - [1.0, 1e4], ["yeo-johnson", "normal-score"]).transforms
    assert [type(t) for t in signed] == [YeoJohnson, NormalScore]
    assert classes([None, "normal-score"]) == [Identity, Bounded]
    assert classes({"Zn": "yeo-johnson"}, NAMES) == [Identity, Bounded]
    assert classes([None, "softplus"]) == [Identity, Bounded]
    assert classes({1: PowerTransformer(), "0": "log"}) == [Log, FittedTransformer]


class SquareRoot(NamedTransform):
    """A transform with nothing but what is required of it."""

    n_parameters = 0

    @classmethod
    def fit(cls, values):
        return cls()

    def forward(self, y):
        return np.where(y < 0, -np.inf, np.sqrt(np.maximum(y, 0)))

    def inverse(self, u):
        return np.maximum(u, 0.0) ** 2

    def log_slope(self, y):
        return -np.log(2) - 0.5 * np.log(y)


def test_a_new_transform_needs_only_its_functions_and_an_entry_in_the_registry(Y, monkeypatch):
    """Its moments and scores are integrated numerically: E u² = m² + s²."""
    monkeypatch.setitem(TRANSFORMS, "root", SquareRoot)
    scaler = OutputScaler.fit(Y, "root", normalize=False)
    assert_allclose(scaler.to_original(scaler.standardise(Y)), Y)
    distribution = GaussianMixture(np.full((1, 1, 2), 9.0), 0.25 * np.eye(2)[None, None])
    assert_allclose(scaler.mean(distribution), 81.25)
    assert_allclose(scaler.std(distribution) ** 2, 4 * 81 * 0.25 + 2 * 0.25**2)
    assert_allclose(scaler.crps(distribution, np.full((1, 2), 1e6)), 1e6 - 81.25, rtol=1e-5)
    Y[[2, 5], 1] = -1.0
    with pytest.raises(ValueError, match=r"output '1' is undefined for 2 values.* rows 2, 5 "):
        OutputScaler.fit(Y, "root")


@pytest.mark.parametrize("spec", [None, "yeo-johnson", "normal-score", PowerTransformer()])
@pytest.mark.parametrize("constant", [0.0, 0.1, -1e9])
def test_a_constant_output_is_only_shifted(spec, constant):
    Y = np.full((7, 1), constant)
    scaler = OutputScaler.fit(Y, spec, bounds=None)
    assert_allclose(scaler.scale, 1.0)
    assert_allclose(scaler.standardise(Y + 1.0), 1.0)


@pytest.mark.parametrize("spec", ["softplus", "yeo-johnson", "normal-score"])
@pytest.mark.parametrize("constant", [0.0, 0.1, 7e8])
def test_a_constant_output_without_negative_readings_stays_so(spec, constant):
    scaler = OutputScaler.fit(np.full((7, 1), constant), spec)
    assert_allclose(scaler.scale, 1.0)
    quantiles = scaler.quantiles(DISTRIBUTIONS[1], [0.01, 0.5, 0.99])
    assert quantiles.min() >= 0
    assert_allclose(scaler.to_original(np.zeros((1, 1))), constant, rtol=1e-6)


@pytest.mark.parametrize("spec", ["log", "yeo-johnson", "softplus", "normal-score"])
def test_predictions_far_beyond_the_readings_are_finite(spec):
    """For instance, with a kernel that grows without bounds, far from the data."""
    scaler = OutputScaler.fit(np.exp(np.linspace(-2, 9, 50))[:, None], spec)
    far = GaussianMixture(np.full((1, 1, 1), 1e5), np.ones((1, 1, 1, 1)))
    for values in (scaler.median(far), scaler.quantiles(far, [0.1, 0.9]), scaler.mean(far)):
        assert np.isfinite(values).all()
        assert values.min() > 8000


def test_a_constant_output_keeps_its_log():
    scaler = OutputScaler.fit(np.full((4, 1), 5.0), "log")
    assert_allclose(scaler.standardise(np.array([[5.0 * np.e]])), 1.0)


@pytest.mark.parametrize("bad", [0.0, -2.0])
def test_values_without_a_log_are_rejected_by_output_and_row(Y, bad):
    fitted = OutputScaler.fit(Y[:3], "log", names=NAMES)
    Y[[5, 9], 1] = bad
    with pytest.raises(ValueError, match=r"output 'Zn' has 2 .*rows 5, 9 .*detection limit"):
        OutputScaler.fit(Y, "log", names=NAMES)
    with pytest.raises(ValueError, match=r"'Zn'.* rows 5, 9 "):
        fitted.standardise(Y)
    assert np.isinf(fitted.standardise_or_nan(Y)[[5, 9], 1]).all()


REJECTED = {
    "unknown name": ("sqrt", "'sqrt' for output 'Cd'.*'log', 'yeo-johnson', 'normal-score'"),
    "too few": (["log"], "1 transforms for 2 outputs; expected one"),
    "unknown output": ({"Pb": "log"}, r"keys \['Pb'\].*any of \['Cd', 'Zn'\]"),
    "no transformer": ([None, 3], "'Zn', 3, has no fit"),
}


@pytest.mark.parametrize(("spec", "message"), REJECTED.values(), ids=REJECTED.keys())
def test_a_transform_that_cannot_be_used_is_rejected_with_what_can(Y, spec, message):
    with pytest.raises(ValueError, match=message):
        OutputScaler.fit(Y, spec, names=NAMES)


@pytest.fixture(params=[*TRANSFORM_NAMES, ARCSINH, QUANTILES], ids=lambda spec: str(spec)[:12])
def scaler(request):
    Y = np.exp(np.random.default_rng(3).normal(1.0, 0.5, size=(25, 1)))
    return OutputScaler.fit(Y, request.param)


def components(distribution):
    """Mean and standard deviation of each Gaussian, of one output at one location."""
    return list(zip(distribution.mean.ravel(), np.sqrt(distribution.cov.ravel()), strict=True))


def original(scaler, z):
    return scaler.to_original(np.reshape(z, (-1, 1))).ravel()


def of_transform(transform):
    return OutputScaler((transform,), np.zeros(1), np.ones(1))


def expectation(function, scaler, distribution):
    """E function(y), by Simpson's rule on 8001 points a component, finer than any knot."""
    x = np.linspace(-11, 11, 8001)
    w = norm.pdf(x) * (x[1] - x[0]) * np.tile([4, 2], 4001)[:-1] / 3
    parts = [w @ function(original(scaler, m + s * x)) for m, s in components(distribution)]
    return np.mean(parts)


def test_mean_and_variance_are_integrals(scaler):
    """To 1e-6 of the standard deviation; 1e-3 where the inverse has kinks."""
    for distribution in DISTRIBUTIONS:
        transform = scaler.transforms[0]
        kinks = isinstance(getattr(transform, "transformer", None), QuantileTransformer)
        kinks |= isinstance(getattr(transform, "shape", None), NormalScore)
        within = 1e-3 if kinks else 1e-6
        mean = expectation(lambda y: y, scaler, distribution)
        variance = expectation(lambda y, mean=mean: (y - mean) ** 2, scaler, distribution)
        assert_allclose(scaler.mean(distribution), mean, atol=within * np.sqrt(variance))
        assert_allclose(scaler.covariance(distribution), variance, rtol=2 * within)
        assert_allclose(scaler.std(distribution) ** 2, scaler.covariance(distribution)[..., 0])


def test_quantiles_are_where_the_distribution_function_reaches_them(scaler):
    for distribution in DISTRIBUTIONS:
        q = np.array([0.001, 0.05, 0.3, 0.5, 0.77, 0.999])
        values = scaler.quantiles(distribution, q)
        assert values.shape == (6, 1, 1)
        assert (np.diff(values[:, 0, 0]) >= 0).all()
        inside = values[np.isfinite(scaler.transforms[0].forward(values))]
        reached = [scaler.cdf(distribution, np.array([[value]])).item() for value in inside]
        ends = original(scaler, [-99.0, 99.0])
        free = (inside > ends[0]) & (inside < ends[1])  # not moved to an end of the inverse
        assert free.any()
        assert_allclose(np.array(reached)[free], q[free], rtol=1e-9)
        assert_allclose(scaler.median(distribution), values[3], rtol=1e-12)


def test_exceedance_is_the_mean_over_components(scaler):
    for distribution in DISTRIBUTIONS:
        threshold = original(scaler, [0.2])
        share = np.mean([norm.sf(0.2, m, s) for m, s in components(distribution)])
        assert_allclose(scaler.exceedance(distribution, threshold[0]), share, rtol=1e-8)
        assert_allclose(scaler.exceedance(distribution, threshold), share, rtol=1e-8)
        assert_allclose(scaler.cdf(distribution, threshold[None]), 1 - share, rtol=1e-8)


def test_the_density_is_the_slope_of_the_distribution_function(scaler):
    for distribution in DISTRIBUTIONS:
        for m, s in components(distribution):
            z = m + s * np.array([-1.3, 0.01, 0.8])  # on no knot
            ends = scaler.transforms[0].forward(original(scaler, [-99.0, 99.0]))
            z = np.clip(z, *(ends - scaler.shift) / scaler.scale + [1e-3, -1e-3])
            left, y, right = (
                original(scaler, z + step)[:, None] for step in (-1e-5 * s, 0, 1e-5 * s)
            )
            repeated = GaussianMixture(
                np.repeat(distribution.mean, 3, 1), np.repeat(distribution.cov, 3, 1)
            )
            slope = (scaler.cdf(repeated, right) - scaler.cdf(repeated, left)) / (right - left)
            assert_allclose(np.exp(scaler.log_density(repeated, y)), slope, rtol=1e-4)


@pytest.mark.parametrize("at", [-2.0, 0.3])
def test_crps_is_the_integral_of_the_squared_difference_to_the_step(scaler, at):
    """By a sum over at least 20,000 strips, whose own error is about 1e-4."""
    for distribution in DISTRIBUTIONS:
        reading = original(scaler, [at])
        z = np.concatenate(
            [m + s * np.linspace(-9, 9, 10_000) for m, s in components(distribution)]
        )
        z = np.sort(np.concatenate([z, np.linspace(z.min(), z.max(), 10_000)]))
        x = np.unique(np.concatenate([original(scaler, z), reading]))
        middle = (x[1:] + x[:-1]) / 2
        u = (scaler.transforms[0].forward(middle) - scaler.shift) / scaler.scale
        F = np.mean([norm.cdf(u, m, s) for m, s in components(distribution)], axis=0)
        integral = np.sum((F - (middle > reading)) ** 2 * np.diff(x))
        assert_allclose(scaler.crps(distribution, reading[None]), integral, rtol=3e-4)


def test_missing_readings_have_no_score(scaler):
    distribution = GaussianMixture(np.zeros((2, 1, 1)), np.ones((2, 1, 1, 1)))
    for score in (scaler.cdf, scaler.log_density, scaler.crps):
        assert np.isnan(score(distribution, np.array([[np.nan]]))).all()


def test_the_median_of_one_gaussian_does_not_read_its_covariance(scaler):
    distribution = GaussianMixture(np.array([[[0.3]]]), np.full((1, 1, 1, 1), np.nan))
    assert_allclose(scaler.median(distribution), original(scaler, [0.3])[:, None])


def test_components_without_variance_are_steps(scaler):
    distribution = GaussianMixture(np.array([[[-0.5]], [[0.2]], [[0.4]]]), np.zeros((3, 1, 1, 1)))
    values = original(scaler, [-0.5, 0.2, 0.4])
    assert_allclose(scaler.median(distribution), values[1], rtol=1e-6)
    assert_allclose(scaler.mean(distribution), values.mean())
    assert_allclose(scaler.covariance(distribution), values.var(), rtol=1e-6)
    reading = original(scaler, [0.3])
    assert_allclose(scaler.cdf(distribution, reading[None]), 2 / 3)
    energy = np.abs(values - reading).mean() - np.abs(values[:, None] - values).mean() / 2
    assert_allclose(scaler.crps(distribution, reading[None]), energy, rtol=1e-6)


def test_a_variance_below_zero_by_rounding_counts_as_zero(scaler):
    distribution = GaussianMixture(np.zeros((1, 1, 1)), np.full((1, 1, 1, 1), -1e-17))
    assert_allclose(scaler.covariance(distribution), 0.0, atol=1e-20)
    assert_allclose(scaler.quantiles(distribution, [0.1])[0], scaler.median(distribution))


def test_crps_of_a_gaussian_and_a_lognormal_are_the_published_ones():
    """Gneiting & Raftery (2007), eq. 21; Baran & Lerch (2015), eq. 7."""
    distribution = GaussianMixture(np.array([[[0.3]]]), np.array([[[[0.49]]]]))
    m, s, y = 0.3, 0.7, 1.1
    t = (y - m) / s
    gaussian = s * (t * (2 * norm.cdf(t) - 1) + 2 * norm.pdf(t) - 1 / np.sqrt(np.pi))
    t = (np.log(y) - m) / s
    tails = norm.cdf(t - s) + norm.cdf(s / np.sqrt(2)) - 1
    lognormal = y * (2 * norm.cdf(t) - 1) - 2 * np.exp(m + s**2 / 2) * tails
    for transform, published in ((Identity(), gaussian), (Log(), lognormal)):
        crps = of_transform(transform).crps(distribution, np.array([[y]]))
        assert_allclose(crps, published, rtol=1e-13)


def test_log_density_of_a_lognormal_is_scipys():
    scaler = OutputScaler((Log(),), np.array([0.2]), np.array([2.0]))
    distribution = GaussianMixture(np.full((1, 4, 1), 0.3), np.full((1, 4, 1, 1), 0.25))
    Y = np.array([[0.5], [3.0], [np.nan], [-1.0]])
    known = lognorm.logpdf(Y[:2], s=1.0, scale=np.exp(0.8))
    expected = [*known.ravel(), np.nan, -np.inf]
    assert_allclose(scaler.log_density(distribution, Y).ravel(), expected)


def test_thresholds_below_the_domain_are_certainly_exceeded():
    scaler = OutputScaler.fit(np.array([[1.0, 1.0], [2.0, 3.0]]), "log")
    distribution = GaussianMixture(np.zeros((2, 3, 2)), np.broadcast_to(np.eye(2), (2, 3, 2, 2)))
    assert (scaler.exceedance(distribution, [0.0, -5.0]) == 1.0).all()
    assert (scaler.cdf(distribution, np.zeros((3, 2))) == 0.0).all()
    Y = np.full((3, 2), -5.0)
    assert_allclose(scaler.crps(distribution, Y) - scaler.crps(distribution, 0 * Y), 5.0)


@pytest.fixture
def mixed(rng):
    """Five outputs with the five named transforms."""
    return OutputScaler.fit(np.exp(rng.normal(1.0, 0.4, size=(30, 5))), list(TRANSFORM_NAMES))


@pytest.fixture
def joint(rng):
    A = rng.normal(size=(2, 3, 5, 6)) / 3
    return GaussianMixture(rng.normal(size=(2, 3, 5)) / 2, A @ A.swapaxes(-1, -2))


def test_covariances_of_outputs_with_different_transforms_are_double_integrals(mixed, joint):
    """E y_i y_j by conditioning: an integral over z_i of one over z_j given z_i."""
    x = np.linspace(-8, 8, 501)
    w = norm.pdf(x) * (x[1] - x[0])

    def one_output(d, z):
        return mixed.transforms[d].inverse(z * mixed.scale[d] + mixed.shift[d])

    cov, mean = mixed.covariance(joint)[0], mixed.mean(joint)[0]
    for i, j in [(0, 1), (0, 3), (1, 2), (1, 4), (2, 3), (3, 4)]:
        products = []
        for m, C in zip(joint.mean[:, 0], joint.cov[:, 0], strict=True):
            z_i = m[i] + np.sqrt(C[i, i]) * x
            given = m[j] + C[i, j] / C[i, i] * (z_i - m[i])
            z_j = given[:, None] + np.sqrt(C[j, j] - C[i, j] ** 2 / C[i, i]) * x
            y_i, y_j = one_output(i, z_i), one_output(j, z_j)
            products.append(w @ ((y_i - mean[i]) * ((y_j - mean[j]) @ w)))
        within = 1e-4 * np.sqrt(cov[i, i] * cov[j, j])
        assert_allclose(cov[i, j], np.mean(products), atol=within)


def test_moments_are_those_of_samples(mixed, joint, rng):
    """Within 5 standard errors of 200,000 samples: 20 comparisons, one false alarm in 80,000."""
    location = GaussianMixture(joint.mean[:, :1], joint.cov[:, :1])
    samples = np.concatenate(
        [
            mixed.to_original(rng.multivariate_normal(m, C, size=100_000))
            for m, C in zip(location.mean[:, 0], location.cov[:, 0], strict=True)
        ]
    )
    deviations = samples - mixed.mean(location)
    products = deviations[:, :, None] * deviations[:, None, :]
    for found, claimed in (
        (samples, mixed.mean(location)),
        (products, mixed.covariance(location)),
    ):
        error = found.std(axis=0) / np.sqrt(len(found))
        assert np.all(np.abs(found.mean(axis=0) - claimed[0]) < 5 * error)


@pytest.mark.parametrize("rho", [0.0, -0.9, 0.999, 1.0, -1.0])
def test_covariances_are_positive_semidefinite(mixed, rho):
    A = np.vander(np.linspace(0.3, 1.2, 5), 5)
    equal = np.full((5, 5), abs(rho)) + (1 - abs(rho)) * np.eye(5)
    signs = np.array([1, np.sign(rho) or 1, 1, np.sign(rho) or 1, 1])
    cov = np.stack([A @ A.T, equal * np.outer(signs, signs) * 0.8])[None]
    found = mixed.covariance(GaussianMixture(np.zeros((1, 2, 5)), cov))
    assert_allclose(found, found.swapaxes(-1, -2), rtol=1e-12)
    correlation = found / np.sqrt(np.einsum("mdd,mee->mde", found, found))
    assert np.linalg.eigvalsh(correlation).min() > -1e-10


def test_equal_outputs_have_their_variance_as_covariance(rng):
    """As ρ nears 1 the series is cut short: 2e-3 of the variance for lines, 1e-6 if smooth."""
    y = np.exp(rng.normal(size=(40, 1)))
    for spec, within in zip(TRANSFORM_NAMES, (1e-12, 1e-6, 1e-12, 1e-6, 5e-3), strict=True):
        twins = OutputScaler.fit(np.hstack([y, y]), spec)
        cov = twins.covariance(GaussianMixture(np.zeros((1, 1, 2)), np.full((1, 1, 2, 2), 0.7)))[0]
        assert_allclose(cov[0, 1], cov[0, 0], rtol=within)


def test_results_do_not_depend_on_runs_of_locations(mixed, joint, monkeypatch):
    Y = mixed.to_original(joint.mean[0])
    statistics = [mixed.mean, mixed.covariance, mixed.median, lambda b: mixed.crps(b, Y)]
    together = [statistic(joint) for statistic in statistics]
    one_by_one = lambda n, *_: [range(i, i + 1) for i in range(n)]  # noqa: E731
    monkeypatch.setattr("emgpr.transforms.scaler.chunks", one_by_one)
    for statistic, expected in zip(statistics, together, strict=True):
        assert_allclose(statistic(joint), expected, rtol=1e-6)


def test_results_have_the_units_of_the_outputs(rng):
    """A thousand times the readings: a thousand times the mean, a million times the covariance."""
    Y = np.exp(rng.normal(size=(30, 2)))
    cov = np.broadcast_to(np.eye(2) * 0.5 + 0.2, (3, 4, 2, 2))
    distribution = GaussianMixture(rng.normal(size=(3, 4, 2)), cov)
    for spec in TRANSFORM_NAMES:
        one, other = OutputScaler.fit(Y, spec), OutputScaler.fit(1e3 * Y, spec)
        at = one.to_original(distribution.mean[0])
        assert_allclose(other.mean(distribution), 1e3 * one.mean(distribution), rtol=1e-5)
        assert_allclose(other.median(distribution), 1e3 * one.median(distribution), rtol=1e-5)
        covariance = one.covariance(distribution)
        assert_allclose(other.covariance(distribution), 1e6 * covariance, rtol=1e-5)
        crps = other.crps(distribution, 1e3 * at)
        assert_allclose(crps, 1e3 * one.crps(distribution, at), rtol=1e-5)
        log_density = one.log_density(distribution, at) - np.log(1e3)
        assert_allclose(other.log_density(distribution, 1e3 * at), log_density, atol=1e-5)


@pytest.mark.parametrize("q", [[0.0], [0.5, 1.0], [-1.0], [np.nan]])
def test_quantiles_outside_0_and_1_are_rejected(mixed, joint, q):
    with pytest.raises(ValueError, match=r"q contains .*; expected probabilities above 0 and"):
        mixed.quantiles(joint, q)


@pytest.mark.parametrize("threshold", [[1.0], np.ones((1, 5))])
def test_thresholds_of_another_number_of_outputs_are_rejected(mixed, joint, threshold):
    message = r"threshold has shape .* or one for each of the 5 outputs"
    with pytest.raises(ValueError, match=message):
        mixed.exceedance(joint, threshold)
