"""Outputs that were already measured where others are predicted, through an estimator."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from tests.simulated import known_model, posterior, reading_posterior, world


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


def test_observed_outputs_are_readings_of_the_same_sample(made, x_new, observed):
    """Against the joint distribution of all readings; unread outputs share the noise."""
    later = replace(made, X=np.vstack([made.X, x_new]), Y=np.vstack([made.Y, observed]))
    model = known_model(made)
    signals = model.predict(x_new, return_cov=True, observed=observed, include_noise=False)
    readings = model.predict(x_new, return_cov=True, observed=observed)
    expected = reading_posterior(later, x_new, len(made.X) + np.arange(5))
    for ours, theirs in ((signals, posterior(later, x_new)), (readings, expected)):
        assert_allclose(ours[0], theirs[0], atol=1e-8)
        assert_allclose(ours[1], theirs[1], atol=1e-8)


def test_they_inform_other_outputs_at_and_around_their_location(made, x_new):
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
def test_at_a_training_site_without_noise_they_add_nothing(rng, x_new, correlated):
    made = world(rng, k=1, noise=1e-9, correlated=correlated)
    model = known_model(made)
    x = np.vstack([made.X[:4], x_new])
    observed = np.vstack([made.Y[:4], np.full((5, 3), np.nan)])
    mean, std = model.predict(x, return_std=True)
    again, their_std = model.predict(x, return_std=True, observed=observed)
    assert_allclose(again, mean, atol=1e-4)
    assert_allclose(their_std, std, atol=1e-4)


def test_a_frame_may_hold_some_outputs_in_any_order(made, x_new, observed):
    model = known_model(made)
    frame = pd.DataFrame(observed, columns=["0", "1", "2"])[["2", "1"]]
    assert_allclose(model.predict(x_new, observed=frame), model.predict(x_new, observed=observed))
