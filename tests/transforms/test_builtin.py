"""Transforms of one output: they increase, can be inverted, and have the right slopes."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm, skew, yeojohnson_llf
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, QuantileTransformer

from emgpr.transforms import FittedTransformer, Identity, Log, NormalScore, YeoJohnson

READINGS = np.exp(np.random.default_rng(5).normal(1.0, 0.7, size=60))
AT_DETECTION_LIMIT = np.maximum(READINGS, np.quantile(READINGS, 0.4))


def from_sklearn(transformer):
    return FittedTransformer.from_transformer(transformer, READINGS, "Cd")


NAMED = {
    "identity": Identity(),
    "log": Log(),
    "Yeo-Johnson": YeoJohnson.fit(READINGS),
    "Yeo-Johnson, power 0": YeoJohnson(3.0, 2.0, 0.0),
    "Yeo-Johnson, power 2": YeoJohnson(3.0, 2.0, 2.0),
    "normal score": NormalScore.fit(READINGS),
    "normal score of 3": NormalScore.fit(READINGS[:3]),
    "normal score with ties": NormalScore.fit(AT_DETECTION_LIMIT),
}
TRANSFORMS = NAMED | {
    "PowerTransformer": from_sklearn(PowerTransformer()),
    "decreasing": from_sklearn(FunctionTransformer(lambda y: -np.sqrt(y), np.square)),
    "quantiles": from_sklearn(QuantileTransformer(n_quantiles=20, output_distribution="normal")),
}


@pytest.fixture(params=TRANSFORMS.values(), ids=TRANSFORMS.keys())
def transform(request):
    return request.param


def test_it_increases_and_is_inverted_within_the_data(transform):
    y = np.linspace(READINGS[:3].min(), READINGS[:3].max(), 200)
    u = transform.forward(y)
    assert (np.diff(u) > 0).all()
    assert_allclose(transform.inverse(u), y, rtol=1e-9)


def test_the_slope_is_that_of_finite_differences(transform):
    y = np.linspace(READINGS[:3].min(), READINGS[:3].max(), 41)[1:-1] + 1e-4  # not on a knot
    h = 1e-6
    differences = (transform.forward(y + h) - transform.forward(y - h)) / (2 * h)
    assert_allclose(transform.log_slope(y), np.log(differences), atol=1e-6)


def test_missing_values_stay_missing(transform):
    assert np.isnan(transform.forward(np.array([np.nan]))).all()
    assert np.isnan(transform.log_slope(np.array([np.nan]))).all()


@settings(deadline=None, max_examples=40)
@given(u=st.floats(-30, 30))
def test_every_prediction_has_a_value_in_original_units(u):
    for transform in NAMED.values():
        y = transform.inverse(np.array([u]))
        assert np.isfinite(y).all()
        assert_allclose(transform.forward(y), u, rtol=1e-6, atol=1e-6)


def test_it_can_be_pickled():
    for name, transform in TRANSFORMS.items():
        if name != "decreasing":  # a lambda
            again = pickle.loads(pickle.dumps(transform))
            assert_allclose(again.forward(READINGS[:3]), transform.forward(READINGS[:3]))


def test_a_log_is_undefined_at_and_below_zero():
    y = np.array([0.0, -3.0])
    assert (Log().forward(y) == -np.inf).all()
    assert (Log().log_slope(y) == -np.inf).all()


def test_the_power_maximises_the_likelihood():
    values = READINGS**0.7
    transform = YeoJohnson.fit(values)
    x = (values - transform.centre) / transform.spread
    nearby = transform.power + np.array([-1e-3, 0.0, 1e-3])
    assert np.argmax([yeojohnson_llf(power, x) for power in nearby]) == 1
    grid = np.linspace(0, 2, 21)
    assert yeojohnson_llf(transform.power, x) > max(yeojohnson_llf(power, x) for power in grid)
    assert abs(skew(transform.forward(values))) < 0.2 * skew(values)


@pytest.mark.parametrize(("values", "power"), [(-(READINGS**4), 2.0), (READINGS**4, 0.0)])
def test_the_power_stays_in_the_range_in_which_it_can_be_inverted(values, power):
    transform = YeoJohnson.fit(values)
    assert_allclose(transform.power, power, atol=1e-6)
    assert np.isfinite(transform.inverse(np.array([-50.0, 50.0]))).all()


def test_a_power_can_be_fitted_where_most_readings_are_equal():
    transform = YeoJohnson.fit(np.maximum(READINGS, np.quantile(READINGS, 0.9)))
    assert transform.spread > 0
    assert_allclose(transform.inverse(transform.forward(READINGS)), READINGS)


@pytest.mark.parametrize("fit", [YeoJohnson.fit, NormalScore.fit])
@pytest.mark.parametrize(("scale", "shift"), [(1e6, 0.0), (1e-6, 0.0), (1.0, 500.0)])
def test_units_and_origin_do_not_matter(fit, scale, shift):
    y = np.linspace(-5, 50, 30)
    one, other = fit(READINGS), fit(READINGS * scale + shift)
    assert_allclose(other.forward(y * scale + shift), one.forward(y), rtol=1e-5, atol=1e-7)


def test_scores_are_the_normal_quantiles_of_middle_ranks():
    transform = NormalScore.fit(np.array([7.0, 1.0, 1.0, 2.0]))
    expected = norm.ppf([0.25, 0.625, 0.875])
    assert_allclose(transform.forward(np.array([1.0, 2.0, 7.0])), expected)


@settings(deadline=None, max_examples=60)
@given(
    values=st.lists(st.integers(-20, 20), min_size=2, max_size=30).filter(lambda v: len(set(v)) > 1)
)
def test_scores_of_few_values_extrapolate_with_slopes_of_the_data(values):
    values = np.array(values, dtype=float)
    transform = NormalScore.fit(values)
    span = np.ptp(values)
    assert (transform.slopes > 0).all()
    ends, slopes = transform.values[[0, -1]], transform.slopes[[0, -1]]
    one_unit_inside = transform.inverse(transform.scores[[0, -1]] + [1.0, -1.0])
    assert_allclose(slopes, np.abs(one_unit_inside - ends), atol=1e-12)
    assert slopes.max() <= span
    y = np.array([values.min() - 3 * span, values.max() + 3 * span])
    assert_allclose(transform.inverse(transform.forward(y)), y, rtol=1e-9, atol=1e-9 * span)


def test_scores_of_many_values_keep_the_extremes_and_some_between(rng):
    values = rng.normal(size=20_000)
    transform = NormalScore.fit(values)
    assert 200 < len(transform.values) <= 283  # 2√n
    assert transform.n_parameters == len(transform.values) - 2
    assert_allclose(transform.values[[0, -1]], [values.min(), values.max()])
    assert np.diff(transform.scores[20:-20]).max() < 0.04
    assert_allclose(transform.forward(np.array([-1.0, 0.0, 1.0])), [-1, 0, 1], atol=0.05)


def test_scores_do_not_follow_chance_gaps(rng):
    """New readings lose 0.05 of log density to the truth; with a knot at each value, 0.4."""
    losses = []
    for _ in range(20):
        transform, new = NormalScore.fit(rng.normal(size=500)), rng.normal(size=500)
        log_density = norm.logpdf(transform.forward(new)) + transform.log_slope(new)
        losses.append(np.mean(norm.logpdf(new) - log_density))
    assert 0 < np.mean(losses) < 0.1
