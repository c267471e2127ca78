"""The maps of one output: they increase, they can be undone, their slopes are theirs."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm, skew, yeojohnson_llf
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, QuantileTransformer

from emgpr.transforms import Fitted, Identity, Log, NormalScore, YeoJohnson

READINGS = np.exp(np.random.default_rng(5).normal(1.0, 0.7, size=60))
LIMITED = np.maximum(READINGS, np.quantile(READINGS, 0.4))  # a detection limit
DECREASING = FunctionTransformer(lambda y: -np.sqrt(y), np.square)
MAPS = {
    "identity": Identity(),
    "log": Log(),
    "power": YeoJohnson.learned(READINGS),
    "power 0": YeoJohnson(3.0, 2.0, 0.0),
    "power 2": YeoJohnson(3.0, 2.0, 2.0),
    "scores": NormalScore.learned(READINGS),
    "scores of 3": NormalScore.learned(READINGS[:3]),
    "scores with ties": NormalScore.learned(LIMITED),
    "borrowed power": Fitted.learned(PowerTransformer(), READINGS, "Cd"),
    "decreasing": Fitted.learned(DECREASING, READINGS, "Cd"),
    "quantiles": Fitted.learned(
        QuantileTransformer(n_quantiles=20, output_distribution="normal"), READINGS, "Cd"
    ),
}
BOUNDED = ("borrowed power", "decreasing", "quantiles")


@pytest.fixture(params=MAPS.values(), ids=MAPS.keys())
def of(request):
    return request.param


def test_it_increases_and_is_undone_within_the_data(of):
    y = np.linspace(READINGS[:3].min(), READINGS[:3].max(), 200)
    u = of.forward(y)
    assert (np.diff(u) > 0).all()
    assert_allclose(of.back(u), y, rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in MAPS if name not in BOUNDED])
@settings(deadline=None)
@given(u=st.floats(-30, 30))
def test_every_prediction_has_a_value_that_leads_back_to_it(name, u):
    of = MAPS[name]
    y = of.back(np.array([u]))
    assert np.isfinite(y).all()
    assert_allclose(of.forward(y), u, rtol=1e-6, atol=1e-6)


def test_the_slope_is_that_of_finite_differences(of):
    y = np.linspace(READINGS[:3].min(), READINGS[:3].max(), 41)[1:-1] + 1e-4  # not on a knot
    h = 1e-6
    differences = (of.forward(y + h) - of.forward(y - h)) / (2 * h)
    assert_allclose(of.log_slope(y), np.log(differences), atol=1e-6)


def test_what_is_missing_stays_missing(of):
    assert np.isnan(of.forward(np.array([np.nan]))).all()
    assert np.isnan(of.log_slope(np.array([np.nan]))).all()


@pytest.mark.parametrize("name", [name for name in MAPS if name != "decreasing"])  # lambdas
def test_it_can_be_stored(name):
    again = pickle.loads(pickle.dumps(MAPS[name]))
    assert_allclose(again.forward(READINGS[:3]), MAPS[name].forward(READINGS[:3]))


def test_the_power_is_the_most_likely_one():
    of = YeoJohnson.learned(READINGS**0.7)
    x = (READINGS**0.7 - of.centre) / of.spread
    nearby = of.power + np.array([-1e-3, 0.0, 1e-3])
    assert np.argmax([yeojohnson_llf(power, x) for power in nearby]) == 1
    coarse = np.linspace(0, 2, 21)
    assert yeojohnson_llf(of.power, x) > max(yeojohnson_llf(power, x) for power in coarse)
    assert abs(skew(of.forward(READINGS**0.7))) < 0.2 * skew(READINGS**0.7)


@pytest.mark.parametrize(("values", "at"), [(-(READINGS**4), 2.0), (READINGS**4, 0.0)])
def test_the_power_never_leaves_the_range_in_which_it_can_be_undone(values, at):
    of = YeoJohnson.learned(values)
    assert_allclose(of.power, at, atol=1e-6)
    assert np.isfinite(of.back(np.array([-50.0, 50.0]))).all()


@pytest.mark.parametrize("learn", [YeoJohnson.learned, NormalScore.learned])
@pytest.mark.parametrize(("scale", "shift"), [(1e6, 0.0), (1e-6, 0.0), (1.0, 500.0)])
def test_units_do_not_matter(learn, scale, shift):
    y = np.linspace(-5, 50, 30)
    ours, theirs = learn(READINGS), learn(READINGS * scale + shift)
    assert_allclose(theirs.forward(y * scale + shift), ours.forward(y), rtol=1e-5, atol=1e-7)


def test_a_power_is_learned_where_most_readings_are_one_value():
    of = YeoJohnson.learned(np.maximum(READINGS, np.quantile(READINGS, 0.9)))
    assert of.spread > 0
    assert_allclose(of.back(of.forward(READINGS)), READINGS)


def test_scores_are_the_normal_quantiles_of_middle_ranks():
    of = NormalScore.learned(np.array([7.0, 1.0, 1.0, 2.0]))
    assert_allclose(of.forward(np.array([1.0, 2.0, 7.0])), norm.ppf([0.25, 0.625, 0.875]))


@settings(deadline=None)
@given(
    values=st.lists(st.integers(-20, 20), min_size=2, max_size=30).filter(lambda v: len(set(v)) > 1)
)
def test_scores_of_any_few_values_reach_beyond_them_by_slopes_of_their_own_size(values):
    values = np.array(values, dtype=float)
    of = NormalScore.learned(values)
    span = np.ptp(values)
    assert (of.slopes > 0).all()
    inner = of.back(of.scores[[0, -1]] + [1.0, -1.0])  # the outermost unit of the data
    assert_allclose(of.slopes[[0, -1]], np.abs(inner - of.values[[0, -1]]), atol=1e-12)
    assert of.slopes[[0, -1]].max() <= span
    y = np.array([values.min() - 3 * span, values.max() + 3 * span])
    assert_allclose(of.back(of.forward(y)), y, rtol=1e-9, atol=1e-9 * span)


def test_scores_of_many_values_keep_the_extremes_and_some_between(rng):
    values = rng.normal(size=20_000)
    of = NormalScore.learned(values)
    assert 200 < len(of.values) <= 283  # 2√n
    assert_allclose(of.values[[0, -1]], [values.min(), values.max()])
    assert np.diff(of.scores[20:-20]).max() < 0.04
    assert_allclose(of.forward(np.array([-1.0, 0.0, 1.0])), [-1, 0, 1], atol=0.05)


def test_scores_do_not_follow_chance_gaps(rng):
    """Unseen readings lose 0.05 of log density to the truth; with a knot at each value, 0.4."""
    lost = []
    for _ in range(20):
        of, unseen = NormalScore.learned(rng.normal(size=500)), rng.normal(size=500)
        lost.append(
            np.mean(norm.logpdf(unseen) - norm.logpdf(of.forward(unseen)) - of.log_slope(unseen))
        )
    assert 0 < np.mean(lost) < 0.1


def test_a_log_has_nothing_at_or_below_zero():
    y = np.array([0.0, -3.0])
    assert (Log().forward(y) == -np.inf).all()
    assert (Log().log_slope(y) == -np.inf).all()


def test_a_borrowed_inverse_is_asked_only_within_its_reach():
    root = MAPS["decreasing"]
    assert_allclose(root.back(np.array([-9.0])), root.lowest)
    assert root.lowest < 0.01  # the square of a root of nearly nothing
    quantiles = MAPS["quantiles"]
    assert_allclose(quantiles.back(np.array([-9.0, 9.0])), [READINGS.min(), READINGS.max()])
    beyond = np.array([READINGS.min() - 1, READINGS.max() + 1])
    assert_allclose(quantiles.forward(beyond), [-np.inf, np.inf])
    assert (quantiles.log_slope(beyond) == -np.inf).all()


def test_a_power_that_cannot_be_undone_far_away_stops_short_of_there():
    """scikit-learn's powers go below 0, where the transformed scale ends."""
    values = READINGS**4
    of = Fitted.learned(PowerTransformer(), values, "Cd")
    assert of.transformer.lambdas_[0] < 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert np.isnan(of.transformer.inverse_transform([[30.0]])).all()
    furthest = of.back(np.array([30.0]))[0]
    assert values.max() < furthest < values.max() + 1001 * np.ptp(values)


def test_a_box_cox_power_takes_thresholds_that_have_none():
    of = Fitted.learned(PowerTransformer(method="box-cox"), READINGS, "Cd")
    assert_allclose(of.forward(np.array([-1.0, 0.0])), -np.inf)
