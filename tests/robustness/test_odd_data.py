"""Extreme but valid data: fits succeed, and predictions are finite and plausible."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR, ICM, SLFM, IndependentGP
from emgpr.arrays import JitterWarning, NumericalError
from emgpr.latents import maximum_likelihood, starts
from emgpr.weights import joint
from tests.simulated import known_model, smooth_table, with_weights, world

# Warnings of bounds reached, of jitter and so on are justified; here only predictions are checked.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::emgpr.arrays.JitterWarning"),
    pytest.mark.filterwarnings("ignore:Outputs? .* one value only"),
    pytest.mark.filterwarnings("ignore:Batches of .* sites are too small"),
]
RNG = np.random.default_rng(17)
X, Y = smooth_table(RNG, N=12)
STD = Y.std(axis=0)
X_NEW = np.vstack([X[:3], RNG.uniform(size=(3, 2)), [[50.0, -50.0]]])
every_estimator = pytest.mark.parametrize("Estimator", [EMGPR, ICM, SLFM])
SLOW_EMGPR = pytest.param(EMGPR, marks=pytest.mark.slow)  # one to two seconds


def predict(Estimator, X, Y, x_new=X_NEW, **settings):
    """Mean and standard deviation at old, new and distant locations, all finite."""
    settings = {"output_transform": None, "max_iter": 5, "n_restarts": 2} | settings
    model = Estimator(random_state=0, **settings).fit(X, Y)
    mean, std = model.predict(x_new, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert np.all(std > 0)
    return mean, std


@cache
def plain_predictions(Estimator):
    return predict(Estimator, X, Y)


@every_estimator
def test_the_reading_of_a_single_site_is_predicted_everywhere(Estimator):
    mean, _ = predict(Estimator, X[:1], Y[:1])
    assert_allclose(mean, np.tile(Y[:1], (len(X_NEW), 1)), rtol=1e-6)


@pytest.mark.parametrize("Estimator", [EMGPR.paper, ICM, SLFM])
def test_two_sites_are_reproduced_and_their_mean_is_predicted_far_away(Estimator):
    """Without correlated noise, which explains two samples as well as a process does."""
    mean, _ = predict(Estimator, X[:2], Y[:2])
    spread = np.ptp(Y[:2], axis=0)
    assert np.all(np.abs(mean[:2] - Y[:2]) < 0.2 * spread)
    assert np.all(np.abs(mean[-1] - Y[:2].mean(axis=0)) < 0.01 * spread)


@every_estimator
def test_a_constant_output_beside_another_is_predicted_as_its_constant(Estimator):
    mean, _ = predict(Estimator, X, np.column_stack([Y[:, 0], np.full(12, 7.3)]))
    assert_allclose(mean[:, 1], 7.3, atol=0.01)


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e6])
def test_a_single_constant_output_is_predicted_as_its_constant(constant):
    mean, _ = predict(IndependentGP, X, np.full(12, constant))
    assert_allclose(mean, constant, rtol=1e-9, atol=1e-9)


@every_estimator
def test_outputs_that_are_all_constant_are_predicted_as_their_constants(Estimator):
    mean, _ = predict(Estimator, X, np.tile([1.0, -2.0], (12, 1)))
    assert_allclose(mean, np.tile([1.0, -2.0], (len(X_NEW), 1)), atol=1e-4)


@pytest.mark.parametrize(
    ("make", "distance"),
    [
        pytest.param(EMGPR, 0.0, marks=pytest.mark.slow),
        (EMGPR.paper, 1e-12),
        (ICM, 1e-12),
        (SLFM, 0.0),
    ],
)
def test_equal_readings_at_repeated_sites_are_reproduced(make, distance):
    mean, std = predict(make, *repeated(distance, Y), **single_batch(make))
    # ICM and SLFM have fewer latent processes than these outputs need.
    assert np.all(np.abs(mean[:3] - Y[:3]) < (2.0 if make in (ICM, SLFM) else 0.5) * STD)
    assert np.all(std[:3] < 1.2 * STD)


@pytest.mark.parametrize(
    ("make", "distance"), [(EMGPR, 1e-12), (EMGPR.paper, 0.0), (ICM, 0.0), (SLFM, 1e-12)]
)
def test_contradictory_readings_at_repeated_sites_are_averaged_and_uncertain(make, distance):
    mean, std = predict(make, *repeated(distance, Y + STD), **single_batch(make))
    assert np.all(np.abs(mean[:3] - (Y + STD / 2)[:3]) < 0.9 * STD)
    assert np.all(std[:3] > 0.1 * STD)


def repeated(distance, second, n=8):
    """The first sites, each measured twice at locations of this distance."""
    return np.vstack([X[:n], X[:n] + distance]), np.vstack([Y[:n], second[:n]])


def single_batch(make):
    return {"prior": None} if make in (ICM, SLFM) else {"batch_size": None}


@pytest.mark.parametrize("distance", [0.0, 1e-12])
def test_contradictory_readings_at_repeated_sites_are_averaged_without_noise(distance):
    """A noise of zero is replaced by the smallest allowed."""
    kernel = RBF(0.3, "fixed") + WhiteKernel(0.0, "fixed")
    model = EMGPR.paper(kernel=kernel, batch_size=None, max_iter=5)
    model.fit(np.vstack([X, X + distance]), np.vstack([Y, Y + 1.0]))
    mean, std = model.predict(X, return_std=True)
    assert_allclose(mean, Y + 0.5, atol=0.02 * STD.max())
    assert np.all(np.isfinite(std))
    assert np.all(std > 0)


@every_estimator
def test_sites_that_are_all_equal_give_mean_and_spread_of_the_readings(Estimator):
    mean, std = predict(Estimator, np.ones((12, 2)), Y, np.ones((1, 2)))
    assert np.all(np.abs(mean[0] - Y.mean(axis=0)) < 0.1 * STD)
    assert_allclose(std[0], STD, rtol=0.2)


@pytest.mark.parametrize("Estimator", [SLOW_EMGPR, ICM])
def test_a_constant_input_column_does_not_change_predictions(Estimator):
    wide, wide_new = (np.column_stack([x, np.full(len(x), 4.0)]) for x in (X, X_NEW))
    mean, _ = predict(Estimator, wide, Y, wide_new)
    assert_allclose(mean, plain_predictions(Estimator)[0], rtol=1e-6)


def test_a_constant_input_column_may_have_a_length_scale():
    wide, wide_new = (np.column_stack([x, np.full(len(x), 4.0)]) for x in (X, X_NEW))
    predict(ICM, wide, Y, wide_new, kernel=RBF([1.0, 1.0, 1.0]))


@pytest.mark.parametrize("Estimator", [SLOW_EMGPR, ICM])
def test_predictions_are_finite_for_fewer_sites_than_outputs(Estimator):
    predict(Estimator, X[:3], np.random.default_rng(2).normal(size=(3, 4)))


@pytest.mark.parametrize(("Estimator", "n"), [(EMGPR, 1), (ICM, 3), (SLFM, 1)])
def test_an_output_with_one_value_is_named_in_a_warning_and_predicted_as_that_value(Estimator, n):
    once = np.full(len(Y), np.nan)
    once[:n] = 5.0
    with pytest.warns(UserWarning, match=rf"Output '1' has one value only \({n} r"):
        mean, _ = predict(Estimator, X, np.column_stack([Y[:, 0], once]))
    assert_allclose(mean[:, 1], 5.0, atol=0.5)


@pytest.mark.parametrize("Estimator", [SLOW_EMGPR, ICM, SLFM])
def test_predictions_are_plausible_if_no_site_has_two_outputs(Estimator):
    scattered = np.where((np.arange(12) % 3)[:, None] == np.arange(3), Y, np.nan)
    mean, _ = predict(Estimator, X, scattered)
    assert np.all(np.abs(mean - np.nanmean(scattered, axis=0)) < 4 * np.nanstd(scattered, axis=0))


@pytest.mark.parametrize("Estimator", [SLOW_EMGPR, ICM])
def test_outputs_of_extreme_units_are_predicted_as_in_others(Estimator):
    unit = np.array([1e-150, 1.0, 1e150]) / STD
    mean, std = predict(Estimator, X, Y * unit)
    plain, plain_std = plain_predictions(Estimator)
    assert np.all(np.abs(mean / unit - plain) < 1e-3 * STD)
    assert_allclose(std / unit, plain_std, rtol=1e-3)


@pytest.mark.filterwarnings("ignore:Output '2' was measured only 3 times")
@pytest.mark.parametrize("conditioning", [1, "batch"])
def test_an_output_missing_from_some_batches_is_predicted_plausibly(conditioning):
    """Also where members predict from the nearest reading or from a batch of four sites."""
    rare = Y.copy()
    rare[3:, 2] = np.nan
    settings = {"batch_size": 4, "partition": "strided", "conditioning": conditioning}
    mean, _ = predict(EMGPR, X, rare, **settings)
    assert np.all(np.abs(mean[:, 2] - np.nanmean(rare[:, 2])) < 5 * np.nanstd(rare[:, 2]))


@pytest.mark.parametrize("Estimator", [SLOW_EMGPR, ICM, SLFM])
def test_missing_readings_are_predicted_better_than_by_the_mean(Estimator):
    X, Y = smooth_table(np.random.default_rng(5), N=25)
    gaps = np.where(np.random.default_rng(6).uniform(size=Y.shape) < 0.3, np.nan, Y)
    gaps[np.isnan(gaps).all(axis=1)] = Y[np.isnan(gaps).all(axis=1)]
    model = Estimator(max_iter=8, n_restarts=2, random_state=0).fit(X, gaps)
    errors = ((model.predict(X) - Y) / Y.std(axis=0))[np.isnan(gaps)]
    assert np.sqrt(np.mean(errors**2)) < 0.7  # the mean has an error of 1
    assert model.n_rows_ignored_ == 0


@pytest.mark.parametrize("make", [EMGPR, EMGPR.paper, ICM, IndependentGP])
def test_two_identical_outputs_have_the_same_predictions(make):
    model = make(random_state=0).fit(X, Y[:, [0, 0]])
    mean, std = model.predict(X_NEW, return_std=True)
    assert_allclose(mean[:, 0], mean[:, 1], atol=1e-3 * Y[:, 0].std())
    assert_allclose(std[:, 0], std[:, 1], rtol=1e-3)


def test_jitter_is_warned_of_and_a_covariance_that_needs_more_raises_an_error():
    """Every site twice without noise, and then a negative noise."""
    made = known_model(world(np.random.default_rng(0), N=6, k=1))
    posterior = made.posterior_
    twice = posterior.observations.at(np.repeat(np.arange(6), 2))
    made.posterior_ = replace(posterior, observations=twice)
    with_weights(made, made.weights_, 1e-30 * np.eye(3))
    jittered = r"covariance of the 36 readings .*1e-1[0-2] times its mean diagonal was added"
    with pytest.warns(JitterWarning, match=jittered):
        _, std = made.predict(X_NEW, return_std=True)
    assert np.all(std >= 0)
    with_weights(made, made.weights_, -3.0 * np.eye(3))
    indefinite = r"covariance of the 36 readings .*not positive definite.*Check for duplicated"
    with pytest.raises(NumericalError, match=indefinite):
        made.predict(X_NEW)


@pytest.mark.parametrize("make", [EMGPR, EMGPR.paper])
def test_step_1_keeps_the_best_point_if_the_likelihood_cannot_be_evaluated(make, monkeypatch):
    """From the second evaluation on, the likelihood is NaN."""
    calls = iter(range(10**6))
    original = maximum_likelihood.negative_log_likelihood

    def broken(*arguments, **settings):
        loss = original(*arguments, **settings)

        def faulty(params, which):
            value, gradient = loss(params, which)
            return (value if next(calls) < 1 else np.full_like(value, np.nan)), gradient

        return faulty

    monkeypatch.setattr(maximum_likelihood, "negative_log_likelihood", broken)
    monkeypatch.setattr(starts, "SUBSAMPLE_ITERATIONS", 1)  # which leaves something to search for
    with pytest.warns(ConvergenceWarning, match=r"Step 1 of output '\d'.*could not be evaluated"):
        model = make(random_state=0).fit(X, Y)
    assert np.isfinite(model.predict(X_NEW)).all()
    assert not model.converged_


def test_refinement_keeps_the_best_point_if_the_likelihood_cannot_be_evaluated(monkeypatch):
    """Beyond the first three points, the likelihood is NaN."""
    original, sound = joint.EnsembleLikelihood.evaluate, []

    def faulty(self, x, W, *prior):
        values, gradient = original(self, x, W, *prior)
        if len(sound) < 3:
            sound.append(x.copy())
        known = any(np.array_equal(x, point) for point in sound)
        return (values if known else np.full_like(values, np.nan)), gradient

    monkeypatch.setattr(joint.EnsembleLikelihood, "evaluate", faulty)
    with pytest.warns(ConvergenceWarning, match="Refinement: .*could not be evaluated near"):
        model = ICM(n_neighbours=None, random_state=0).fit(X, Y)
    assert np.isfinite(model.predict(X_NEW)).all()
