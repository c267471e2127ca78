"""Scores of predictive distributions at readings, in original units."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import lognorm, norm

from emgpr.cross_validation import score_predictions
from emgpr.prediction import GaussianMixture
from emgpr.transforms import OutputScaler


@pytest.fixture
def scaler(rng):
    """Of a positive output by its log and of one without a transform."""
    Y = np.column_stack([rng.lognormal(size=50), rng.normal(3.0, 2.0, size=50)])
    return OutputScaler.fit(Y, ["log", None], names=("Cd", "pH"))


@pytest.fixture
def predicted(rng):
    """One Gaussian at five locations."""
    cov = np.broadcast_to(np.diag([0.3, 0.5]) + 0.1, (1, 5, 2, 2)).copy()
    return GaussianMixture(rng.normal(size=(1, 5, 2)), cov)


def test_scores_are_those_of_the_distributions_in_original_units(scaler, predicted, rng):
    z = rng.normal(size=(5, 2))
    truth = scaler.to_original(z)
    scores = score_predictions(scaler, predicted, truth)
    std = np.sqrt([0.4, 0.6])
    mean = predicted.mean[0]
    assert_allclose(scores["standardized"], (z - mean) / std, rtol=1e-6)
    assert_allclose(scores["pit"], norm.cdf(z, mean, std), rtol=1e-6)
    assert_allclose(scores["prediction"], scaler.to_original(mean))
    for name, q in (("lower", 0.025), ("upper", 0.975)):
        assert_allclose(scores[name], scaler.to_original(mean + norm.ppf(q) * std))
    log = lognorm(std[0] * scaler.scale[0], scale=scores["prediction"][:, 0])
    assert_allclose(scores["nlpd"][:, 0], -log.logpdf(truth[:, 0]))
    assert_allclose(scores["std"][:, 0], log.std())
    plain = norm(scores["prediction"][:, 1], std[1] * scaler.scale[1])
    assert_allclose(scores["nlpd"][:, 1], -plain.logpdf(truth[:, 1]))


def test_readings_may_be_given_on_the_standardised_scale_too(scaler, predicted, rng):
    z = rng.normal(size=(5, 2))
    truth = scaler.to_original(z)
    first, second = (score_predictions(scaler, predicted, truth, given) for given in (None, z))
    assert_allclose(first["standardized"], second["standardized"], rtol=1e-6)


def test_a_reading_that_is_impossible_has_no_density(scaler, predicted):
    truth = np.tile([-1.0, 2.0], (5, 1))
    scores = score_predictions(scaler, predicted, truth)
    assert np.isposinf(scores["nlpd"][:, 0]).all()
    assert not np.isfinite(scores["standardized"][:, 0]).any()
    assert np.isfinite(scores["nlpd"][:, 1]).all()
    assert_allclose(scores["pit"][:, 0], 0.0)
