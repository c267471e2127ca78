"""Whole distributions on the user's scale: centres, quantiles, exceedance, and joint draws."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from simulated import (
    covariance,
    gram,
    known_model,
    noise_between,
    paper,
    readings,
    smooth_table,
    which_were_read,
    world,
)
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.preprocessing import FunctionTransformer, PowerTransformer

from emgpr import EMGPR
from emgpr.ensemble import RULES, mixture
from emgpr.estimators import believer
from emgpr.prediction import condition_jointly

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
    edges = norm.cdf(np.linspace(-6, 6, 1201))
    q = norm.cdf(np.linspace(-5.995, 5.995, 1200))
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


def agrees(drawn, mean, cov):
    """Whether draws (n, m) have this mean and covariance, to 5 standard errors each."""
    n = len(drawn)
    apart = drawn - mean
    products = apart[:, :, None] * apart[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    return bool(
        np.all(np.abs(apart.mean(axis=0)) < FIVE * np.sqrt(np.diag(cov) / n))
        and np.all(np.abs(products.mean(axis=0) - cov) < FIVE * error)
    )


def stacked(drawn):
    """Draws (M, D, n) as (n, D·M): output 0 at every site, then output 1, …"""
    return np.moveaxis(drawn, (0, 1, 2), (2, 1, 0)).reshape(drawn.shape[-1], -1)


def joint_readings(made, x, observed, *, noisy):
    """What would be read at x, over all sites and outputs, by plain inversion.

    What is observed at x are readings of the samples that are asked about: outputs that
    were not read of them share their noise, and of those that were another is taken.
    """
    N, D, M = len(made.X), made.Y.shape[1], len(x)
    known = replace(made, X=np.vstack([made.X, x]), Y=np.vstack([made.Y, observed]))
    (z, other, y), (_, row) = readings(known), which_were_read(known)
    task, there = np.repeat(np.arange(D), M), np.tile(x, (D, 1))
    own = np.where(np.isnan(observed), N, N + M)[np.tile(np.arange(M), D), task]
    own = own + np.tile(np.arange(M), D)
    cross = covariance(known, there, task, z, other)
    prior = covariance(known, there, task, there, task)
    if noisy:
        cross = cross + noise_between(known, task, own, other, row)
        prior = prior + noise_between(known, task, own, task, own)
    solved = np.linalg.solve(gram(known), np.column_stack([cross.T, y]))
    return cross @ solved[:, -1], prior - cross @ solved[:, :-1]


@pytest.mark.parametrize("noisy", [True, False], ids=["readings", "signals"])
@pytest.mark.parametrize("known_there", [False, True], ids=["nothing known", "some known"])
@pytest.mark.parametrize("correlated", [False, True], ids=["own noise", "joined noise"])
def test_sites_and_outputs_of_a_draw_belong_together(rng, correlated, known_there, noisy):
    """9 means and 45 covariances, by plain inversion: a false alarm in 30,000 runs."""
    made = world(rng, correlated=correlated, missing=0.2)
    x, observed = rng.uniform(0.3, 0.6, size=(3, 2)), np.full((3, 3), np.nan)
    if known_there:
        observed[0, 1], observed[2, :2] = 0.7, [-0.5, 0.9]
    model = known_model(made)
    drawn = stacked(
        model.sample_y(x, 20_000, random_state=5, observed=observed, include_noise=noisy)
    )
    mean, cov = joint_readings(made, x, observed, noisy=noisy)
    assert agrees(drawn, mean, cov)
    assert not agrees(drawn, mean, np.diag(np.diag(cov)))


def test_a_draw_at_a_training_site_knows_what_was_read_of_that_sample(rng):
    """Noise is joined: 9 means and 45 covariances, a false alarm in 30,000 runs."""
    made = world(rng, correlated=True, missing=0.3)
    made.Y[:3] = [[np.nan, 0.5, 1.0], [0.3, np.nan, np.nan], [0.1, 0.2, np.nan]]
    drawn = stacked(known_model(made).sample_y(made.X[:3], 20_000, random_state=5))
    without = made.table(np.where(np.arange(12)[:, None] < 3, np.nan, made.Y))
    assert agrees(drawn, *joint_readings(without, made.X[:3], made.Y[:3], noisy=True))


def test_an_ensemble_draws_from_each_member(fitted):
    """The joint mixture over 12 values: 12 means and 78 covariances, once in 19,000 runs."""
    model = fitted("none", 3)
    parts = [
        condition_jointly(model._seen, X_NEW, model.kernels_, W, model._noise)
        for W in model.weights_
    ]
    means = np.array([mean.ravel() for mean, _ in parts])
    mean = means.mean(axis=0)
    cov = np.mean([cov.reshape(12, 12) for _, cov in parts], axis=0)
    cov = cov + (means - mean).T @ (means - mean) / 3
    drawn = stacked(model.sample_y(X_NEW, 20_000, random_state=2, include_noise=False))
    scale = np.repeat(model._scale.scale, 4)
    assert agrees((drawn - np.repeat(model._scale.shift, 4)) / scale, mean, cov)


def surest(means, covs, prior):
    best = np.trace(covs, axis1=2, axis2=3).argmin(axis=0)
    site = np.arange(len(best))
    return means[best, site], covs[best, site]


OTHERS = {name: name for name in RULES if name != "mean"} | {"surest": surest}


@pytest.fixture(scope="module")
def ensembles():
    """Of three members, by what they are conditioned on; rules take part in predictions only."""
    settings = QUICK | {"batch_size": 9}
    return {how: paper(**settings, conditioning=how).fit(X, Y) for how in ("all", "batch")}


@pytest.mark.parametrize("conditioning", ["all", "batch"])
@pytest.mark.parametrize("rule", [*OTHERS.values(), mixture], ids=[*OTHERS, "the mixture itself"])
def test_whatever_the_rule_each_site_is_drawn_as_predicted(ensembles, rule, conditioning):
    """12 means and 24 covariances, each within 5 standard errors: once in 48,000 runs."""
    model = ensembles[conditioning].set_params(combine=rule)
    mean, cov = model.predict(X_NEW, return_cov=True, statistic="mean")
    drawn = model.sample_y(X_NEW, 5000, random_state=3)
    for site in range(4):
        assert agrees(drawn[site].T, mean[site], cov[site])


@pytest.mark.parametrize("rule", ["mean", *OTHERS.values()], ids=["mean", *OTHERS])
def test_whatever_the_rule_neighbouring_sites_are_drawn_alike(ensembles, rule):
    """Signals on a walk in steps of a fiftieth of the length-scale: hardly any step shows."""
    model = ensembles["all"].set_params(combine=rule)
    walk = np.column_stack([np.linspace(0, 1, 121), np.full(121, 0.4)])
    drawn = model.sample_y(walk, 300, random_state=3, include_noise=False)
    drawn = drawn - drawn.mean(axis=-1, keepdims=True)
    steps = np.diff(drawn, axis=0).std(axis=-1) / drawn.std(axis=-1)[1:]
    assert steps.max() < 0.3


def twice_as_doubtful(means, covs, prior):
    return means.mean(axis=0), (2.0 if len(means) > 1 else 1.0) * covs.mean(axis=0)


@pytest.mark.parametrize("seed", [1, 2])
def test_where_members_agree_a_rule_changes_no_correlation(seed):
    """Three members of the same weights, and twice their covariance: 12 means and 78
    covariances within 5 standard errors, a false alarm in 19,000 runs."""
    model = paper(**QUICK, combine=twice_as_doubtful, batch_size=9, rank=3).fit(X, Y)
    W = np.random.default_rng(seed).normal(size=(3, 3, 3))
    model.weights_ = np.stack([W, W, W])
    mean, cov = condition_jointly(model._seen, X_NEW, model.kernels_, W, model._noise)
    drawn = stacked(model.sample_y(X_NEW, 20_000, random_state=2, include_noise=False))
    scale, shift = (np.repeat(part, 4) for part in (model._scale.scale, model._scale.shift))
    assert agrees((drawn - shift) / scale, mean.ravel(), 2 * cov.reshape(12, 12))


def test_of_neighbours_a_single_site_is_drawn_as_predicted():
    """3 means and 6 covariances: a false alarm in 190,000 runs."""
    model = paper(**QUICK, conditioning=4, batch_size=None).fit(X, Y)
    mean, cov = model.predict(X_NEW[:1], return_cov=True)
    assert agrees(model.sample_y(X_NEW[:1], 10_000)[0].T, mean[0], cov[0])


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
