"""Outputs already measured where a prediction is asked."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from simulated import known_model, posterior, reading_posterior, world


@pytest.fixture(params=[False, True], ids=["independent", "correlated"])
def made(rng, request):
    return world(rng, k=1, missing=0.2, correlated=request.param)


@pytest.fixture
def x_new(rng):
    return rng.uniform(size=(5, 2))


@pytest.fixture
def observed(rng):
    values = rng.normal(size=(5, 3))
    values[:, 0] = values[2] = values[4, 1] = np.nan
    return values


@pytest.mark.parametrize("conditioning", ["all", 99])
def test_they_are_readings_like_any_other(made, x_new, observed, conditioning):
    later = replace(made, X=np.vstack([made.X, x_new]), Y=np.vstack([made.Y, observed]))
    mean, cov = posterior(later, x_new)
    model = known_model(made, conditioning=conditioning)
    ours = model.predict(x_new, return_cov=True, observed=observed, include_noise=False)
    assert_allclose(ours[0], mean, atol=1e-8)
    assert_allclose(ours[1], cov, atol=1e-8)


@pytest.mark.parametrize("conditioning", ["all", "batch", 99])
def test_what_was_read_there_tells_of_the_noise_of_what_was_not(
    made, x_new, observed, conditioning
):
    """The joint distribution of all readings, inverted; the unread ones are of the same sample."""
    later = replace(made, X=np.vstack([made.X, x_new]), Y=np.vstack([made.Y, observed]))
    mean, cov = reading_posterior(later, x_new, len(made.X) + np.arange(5))
    model = known_model(made, conditioning=conditioning)
    ours = model.predict(x_new, return_cov=True, observed=observed)
    assert_allclose(ours[0], mean, atol=1e-8)
    assert_allclose(ours[1], cov, atol=1e-8)


@pytest.mark.parametrize("observed_there", [False, True])
def test_noise_is_added_to_the_uncertainty_of_a_reading_alone(rng, x_new, observed, observed_there):
    """Noise that is independent: it says nothing of other outputs."""
    made = world(rng, k=1, missing=0.2)
    known = observed if observed_there else None
    model = known_model(made)
    reading, signal = (
        model.predict(x_new, return_cov=True, observed=known, include_noise=noisy)
        for noisy in (True, False)
    )
    assert_allclose(reading[0], signal[0])
    assert_allclose(reading[1] - signal[1], np.tile(made.noise, (5, 1, 1)), atol=1e-12)


def test_nothing_observed_is_no_observation(made, x_new):
    model = known_model(made)
    assert_allclose(
        model.predict(x_new, observed=np.full((5, 3), np.nan)), model.predict(x_new), rtol=1e-12
    )


def test_they_inform_other_outputs_there_and_around(made, x_new):
    observed = np.full((5, 3), np.nan)
    observed[0, 1] = 3.0
    model = known_model(made)
    mean, std = model.predict(x_new, return_std=True)
    informed, tighter = model.predict(x_new, return_std=True, observed=observed)
    assert abs(informed[0, 0] - mean[0, 0]) > 0.01
    assert abs(informed[1, 1] - mean[1, 1]) > 1e-6
    assert np.all(tighter[1:] <= std[1:] + 1e-9)
    signal, tighter = (
        model.predict(x_new, return_std=True, include_noise=False, observed=known)[1]
        for known in (None, observed)
    )
    assert np.all(tighter <= signal + 1e-9)


@pytest.mark.parametrize("correlated", [False, True])
def test_at_a_training_site_without_noise_they_change_nothing(rng, x_new, correlated):
    made = world(rng, k=1, noise=1e-9, correlated=correlated)
    model = known_model(made)
    sites = np.vstack([made.X[:4], x_new])
    observed = np.vstack([made.Y[:4], np.full((5, 3), np.nan)])
    mean, std = model.predict(sites, return_std=True)
    again, their_std = model.predict(sites, return_std=True, observed=observed)
    assert_allclose(again, mean, atol=1e-4)
    assert_allclose(their_std, std, atol=1e-4)


def test_a_frame_may_hold_some_of_the_outputs_in_any_order(made, x_new, observed):
    model = known_model(made)
    frame = pd.DataFrame(observed, columns=["0", "1", "2"])[["2", "1"]]
    assert_allclose(model.predict(x_new, observed=frame), model.predict(x_new, observed=observed))
