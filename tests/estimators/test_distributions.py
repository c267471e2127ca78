"""Whole distributions on the user's scale: centres, quantiles, exceedance, and draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from simulated import paper, smooth_table
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.preprocessing import FunctionTransformer, PowerTransformer

from emgpr import EMGPR
from emgpr.estimators import believer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
KERNEL = RBF(0.4, "fixed") + WhiteKernel(0.1, "fixed")
QUICK = {"kernel": KERNEL, "max_iter": 8, "n_restarts": 1, "random_state": 0}
RNG = np.random.default_rng(11)
X, LEVELS = smooth_table(RNG, N=27)
Y = np.exp(0.5 * (LEVELS - LEVELS.mean(0)) / LEVELS.std(0)) * [1.0, 100.0, 0.01]
X_NEW = RNG.uniform(size=(4, 2))
OBSERVED = np.full((4, 3), np.nan)
OBSERVED[:3, 0] = Y[:3, 0]
OBSERVED[1, 2] = Y[1, 2]
FIVE = 5  # standard errors
TRANSFORMS = {
    "none": None,
    "log": "log",
    "yeo-johnson": "yeo-johnson",
    "normal-score": "normal-score",
    "power": PowerTransformer("box-cox"),
    "root": FunctionTransformer(np.sqrt, np.square),
    "one each": [None, "log", "normal-score"],
}
ASKED = {
    "readings": {},
    "signals": {"include_noise": False},
    "observed": {"observed": OBSERVED},
}
CASES = [(1, "readings"), (3, "readings"), (3, "signals"), (3, "observed")]
each_transform = pytest.mark.parametrize("transform", TRANSFORMS)
each_size = pytest.mark.parametrize("members", [1, 3])
each_case = pytest.mark.parametrize(("members", "asked"), CASES)


@pytest.fixture(scope="module")
def fitted():
    """Models by transform and number of members, each fitted once."""
    made = {}

    def model(transform="none", members=1):
        if (transform, members) not in made:
            settings = {"transform": TRANSFORMS[transform], "batch_size": 27 // members}
            made[transform, members] = paper(**QUICK, **settings).fit(X, Y)
            assert len(made[transform, members].weights_) == members
        return made[transform, members]

    return model


@pytest.fixture(scope="module")
def single():
    return paper(**QUICK, transform="log").fit(X, Y[:, 0])


# --- the centre


def test_without_a_transform_one_member_has_one_centre(fitted):
    model = fitted()
    median, mean = (model.predict(X_NEW, statistic=s) for s in ("median", "mean"))
    assert_allclose(median, mean, rtol=1e-12)
    assert_array_equal(model.predict(X_NEW), median)


@each_size
@each_transform
def test_the_mean_is_the_integral_of_the_quantiles(fitted, transform, members):
    model = fitted(transform, members)
    edges = norm.cdf(np.linspace(-7, 7, 1401))
    q = norm.cdf(np.linspace(-6.995, 6.995, 1400))
    values = model.predict_quantiles(X_NEW, q)
    mean, std = model.predict(X_NEW, return_std=True, statistic="mean")
    assert_allclose(np.einsum("k,kmd->md", np.diff(edges), values), mean, rtol=1e-4)
    squares = np.einsum("k,kmd->md", np.diff(edges), (values - mean) ** 2)
    assert_allclose(np.sqrt(squares), std, rtol=2e-3)


def test_through_a_log_the_mean_is_above_the_median(fitted):
    model = fitted("log")
    spread = norm.ppf(0.9)
    low, high = np.log(model.predict_quantiles(X_NEW, [0.1, 0.9]))
    variance = ((high - low) / (2 * spread)) ** 2
    mean, median = (model.predict(X_NEW, statistic=s) for s in ("mean", "median"))
    assert_allclose(mean, median * np.exp(variance / 2))


@pytest.mark.parametrize("statistic", ["mode", None, "Mean"])
def test_another_centre_is_refused(fitted, statistic):
    with pytest.raises(ValueError, match=r"statistic=.*expected 'median' or 'mean'"):
        fitted().predict(X_NEW, statistic=statistic)


# --- quantiles


def test_quantiles_are_tables_one_for_each_probability(fitted, single):
    assert fitted().predict_quantiles(X_NEW, 0.9).shape == (4, 3)
    assert fitted().predict_quantiles(X_NEW, [0.9]).shape == (1, 4, 3)
    assert fitted().predict_quantiles(X_NEW, np.array([0.1, 0.9])).shape == (2, 4, 3)
    assert single.predict_quantiles(X_NEW, 0.9).shape == (4,)
    assert single.predict_quantiles(X_NEW, [0.1, 0.9]).shape == (2, 4)


def test_of_one_gaussian_they_are_the_textbooks(fitted):
    model, q = fitted(), np.array([0.9, 0.01, 0.5])
    mean, std = model.predict(X_NEW, return_std=True)
    expected = mean + norm.ppf(q)[:, None, None] * std
    assert_allclose(model.predict_quantiles(X_NEW, q), expected, rtol=1e-10)
    assert_allclose(model.predict_quantiles(X_NEW, 0.01), expected[1], rtol=1e-10)


@each_case
@each_transform
def test_they_rise_and_the_middle_one_is_the_prediction(fitted, transform, members, asked):
    model, asked = fitted(transform, members), ASKED[asked]
    values = model.predict_quantiles(X_NEW, [0.05, 0.3, 0.5, 0.7, 0.95], **asked)
    assert np.all(np.diff(values, axis=0) > 0)
    assert_allclose(values[2], model.predict(X_NEW, **asked), rtol=1e-9)


def test_without_noise_and_with_more_known_they_are_closer(fitted):
    readings, signals, observed = (
        np.diff(fitted().predict_quantiles(X_NEW, [0.1, 0.9], **asked), axis=0)[0]
        for asked in ASKED.values()
    )
    assert np.all(signals < readings)
    assert np.all(observed < readings)


@pytest.mark.parametrize("q", [0, 1, -0.1, 1.5, np.nan, [0.5, 1.0]])
def test_what_is_no_probability_is_refused(fitted, q):
    with pytest.raises(ValueError, match=r"q holds .*above 0 and below 1"):
        fitted().predict_quantiles(X_NEW, q)


# --- exceedance


@each_case
@each_transform
def test_a_quantile_is_exceeded_as_often_as_it_says(fitted, transform, members, asked):
    model, asked = fitted(transform, members), ASKED[asked]
    low, high = model.predict_quantiles(X_NEW, [0.05, 0.8], **asked)
    chances = model.predict_exceedance(X_NEW, [low[1, 0], high[1, 1], high[1, 2]], **asked)
    assert_allclose(chances[1], [0.95, 0.2, 0.2], atol=1e-7)


def test_one_threshold_is_one_for_every_output(fitted):
    model = fitted("log", 3)
    every = model.predict_exceedance(X_NEW, 1.0)
    assert every.shape == (4, 3)
    assert_array_equal(every, model.predict_exceedance(X_NEW, [1.0, 1.0, 1.0]))
    higher = model.predict_exceedance(X_NEW, [1.5, 1.0, 1.0])
    assert np.all(higher[:, 0] < every[:, 0])
    assert_array_equal(higher[:, 1:], every[:, 1:])
    assert_array_equal(model.predict_exceedance(X_NEW, -1.0), 1.0)
    by_name = model.predict_exceedance(X_NEW, {model.output_names_[0]: 1.5})
    assert_array_equal(by_name[:, 0], higher[:, 0])
    assert np.isnan(by_name[:, 1:]).all()
    with pytest.raises(ValueError, match=r"thresholds for \['Pb'\]; expected names of outputs"):
        model.predict_exceedance(X_NEW, {"Pb": 1.0})


def test_of_a_vector_they_are_a_vector(single):
    chance = single.predict_exceedance(X_NEW, 1.0)
    assert chance.shape == (4,)
    assert np.all((chance > 0) & (chance < 1))
    assert_array_equal(chance, single.predict_exceedance(X_NEW, [1.0]))


@pytest.mark.parametrize("threshold", [[1.0, 2.0], np.ones((4, 3)), np.ones((1, 3))])
def test_thresholds_of_another_number_are_refused(fitted, threshold):
    with pytest.raises(ValueError, match=r"threshold has shape .*each of the 3 outputs"):
        fitted().predict_exceedance(X_NEW, threshold)


# --- draws


def test_draws_have_scikit_learns_shape(fitted, single):
    assert fitted().sample_y(X_NEW).shape == (4, 3, 1)
    assert fitted("log", 3).sample_y(X_NEW, 7).shape == (4, 3, 7)
    assert single.sample_y(X_NEW, n_samples=7).shape == (4, 7)
    assert fitted().sample_y(X_NEW, np.int64(2)).shape == (4, 3, 2)


@each_size
def test_a_seed_gives_the_same_draws(fitted, members):
    model = fitted("log", members)
    first = model.sample_y(X_NEW, 5, random_state=3)
    assert_array_equal(first, model.sample_y(X_NEW, 5, random_state=3))
    assert not np.array_equal(first, model.sample_y(X_NEW, 5, random_state=4))
    assert_array_equal(model.sample_y(X_NEW, 5), model.sample_y(X_NEW, 5, random_state=0))
    unseeded = [model.sample_y(X_NEW, 5, random_state=None) for _ in range(2)]
    assert not np.array_equal(*unseeded)


@each_case
@each_transform
def test_draws_are_distributed_as_predicted(fitted, transform, members, asked):
    """Shares below three quantiles, means and variances of 4 × 3 values, each within 5
    standard errors. No false alarm in 60 seeds of readings by each of the 14 models."""
    n, model, asked = 3000, fitted(transform, members), ASKED[asked]
    drawn = model.sample_y(X_NEW, n, random_state=1, **asked)
    q = np.array([0.1, 0.5, 0.9])
    values = model.predict_quantiles(X_NEW, q, **asked)
    below = (drawn < values[..., None]).mean(axis=-1)
    error = np.sqrt(q * (1 - q) / n)[:, None, None]
    assert np.all(np.abs(below - q[:, None, None]) < FIVE * error)
    mean, std = model.predict(X_NEW, return_std=True, statistic="mean", **asked)
    assert np.all(np.abs(drawn.mean(axis=-1) - mean) < FIVE * std / np.sqrt(n))
    if transform != "power":  # whose tail is so long that draws rarely show their variance
        squares = (drawn - mean[..., None]) ** 2
        assert np.all(np.abs(squares.mean(-1) - std**2) < FIVE * squares.std(-1) / np.sqrt(n))


def test_draws_through_a_log_are_positive(fitted):
    assert np.all(fitted("log", 3).sample_y(X_NEW, 200) > 0)


def test_too_many_values_at_once_are_refused_with_what_to_do(fitted, monkeypatch):
    monkeypatch.setattr(believer, "MOST_AT_ONCE", 11)
    with pytest.raises(ValueError, match=r"4 sites × 3 outputs are 12 values.*most 11.*tiles"):
        fitted().sample_y(X_NEW)
    assert fitted().sample_y(X_NEW[:3]).shape == (3, 3, 1)


@pytest.mark.parametrize("n", [0, -1, 2.5, True])
def test_a_number_of_draws_that_is_none_is_refused(fitted, n):
    with pytest.raises(ValueError, match=f"n_samples={n}; expected a whole number of at least 1"):
        fitted().sample_y(X_NEW, n)


def test_before_fit_there_is_no_distribution():
    model = EMGPR()
    for ask in (
        lambda: model.predict_quantiles(X_NEW, 0.5),
        lambda: model.predict_exceedance(X_NEW, 1.0),
        lambda: model.sample_y(X_NEW),
    ):
        with pytest.raises(NotFittedError):
            ask()
