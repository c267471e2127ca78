"""Errors, calibration, paired differences, and metrics over readings; NaN truths are left out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import norm
from sklearn import metrics as theirs

from emgpr.metrics import (
    PairedDifference,
    central_coverage,
    coverage,
    crps,
    mean_absolute_error,
    mean_squared_error,
    negative_log_density,
    over_readings,
    paired_difference,
    standardised_mean_squared_error,
)

ERRORS = (mean_absolute_error, mean_squared_error, standardised_mean_squared_error)


@pytest.fixture
def predictions(rng):
    truth, mean = rng.normal(size=(2, 50, 3))
    return truth, mean, rng.uniform(0.5, 2.0, size=(50, 3))


def test_errors_are_scikit_learns_for_each_output(predictions):
    truth, mean, _ = predictions
    raw = {"multioutput": "raw_values"}
    assert_allclose(
        mean_absolute_error(truth, mean), theirs.mean_absolute_error(truth, mean, **raw)
    )
    assert_allclose(mean_squared_error(truth, mean), theirs.mean_squared_error(truth, mean, **raw))


def test_negative_log_density_is_that_of_the_gaussian(predictions):
    truth, mean, std = predictions
    z = (truth - mean) / std
    expected = (0.5 * z**2 + np.log(std) + 0.5 * np.log(2 * np.pi)).mean(axis=0)
    assert_allclose(negative_log_density(truth, mean, std), expected)


def test_standardised_error_is_one_for_the_mean_and_does_not_depend_on_units(predictions):
    truth, mean, _ = predictions
    ours = standardised_mean_squared_error(truth, mean)
    assert_allclose(ours, 1 - theirs.r2_score(truth, mean, multioutput="raw_values"))
    assert_allclose(standardised_mean_squared_error(1e3 * truth + 5, 1e3 * mean + 5), ours)
    centre = np.broadcast_to(truth.mean(axis=0), truth.shape)
    assert_allclose(standardised_mean_squared_error(truth, centre), 1.0)


def test_crps_is_the_integral_that_defines_it(predictions):
    truth, mean, std = (part[:3] for part in predictions)

    def integral(y, m, s):
        below, _ = quad(lambda t: norm.cdf(t, m, s) ** 2, m - 40, y)
        above, _ = quad(lambda t: norm.sf(t, m, s) ** 2, y, m + 40)
        return below + above

    expected = np.vectorize(integral)(truth, mean, std).mean(axis=0)
    assert_allclose(crps(truth, mean, std), expected, rtol=1e-6)


def test_crps_of_a_certain_prediction_is_the_absolute_error(predictions):
    truth, mean, _ = predictions
    expected = mean_absolute_error(truth, mean)
    assert_allclose(crps(truth, mean, np.zeros_like(mean)), expected)
    assert_allclose(crps(truth, mean, np.full_like(mean, 1e-9)), expected, rtol=1e-6)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_coverage_counts_readings_inside_the_central_interval(level):
    edge = norm.ppf(0.5 + level / 2)
    truth = np.array([[0.0], [0.99 * edge], [-0.99 * edge], [1.01 * edge], [-1.01 * edge]])
    inside = coverage(2 * truth + 7, np.full((5, 1), 7.0), np.full((5, 1), 2.0), level)
    assert_allclose(inside, 3 / 5)


@pytest.mark.parametrize("metric", [*ERRORS, negative_log_density, crps, coverage])
def test_missing_readings_do_not_count(metric, predictions):
    truth, *prediction = predictions
    if metric in ERRORS:
        prediction = prediction[:1]
    gaps = truth.copy()
    gaps[10:, 1] = np.nan
    score = metric(gaps, *prediction)
    assert score.shape == (3,)
    assert_allclose(score[1], metric(truth[:10], *(part[:10] for part in prediction))[1])
    assert_allclose(score[[0, 2]], metric(truth, *prediction)[[0, 2]])


def test_a_single_output_may_come_as_a_vector(predictions):
    truth, mean, _ = predictions
    assert_allclose(
        mean_absolute_error(truth[:, 0], mean[:, 0]), mean_absolute_error(truth, mean)[0]
    )


def test_a_paired_difference_has_the_standard_error_of_the_pairs(rng):
    """Losses that share most of their variation differ far more clearly than they vary."""
    shared, gain = rng.normal(size=400), rng.normal(0.1, 0.2, size=400)
    ours, others = np.append(shared - gain, np.nan), np.append(shared, 1.0)
    found = paired_difference(ours, others)
    assert found.n == 400
    assert_allclose(found.mean, -gain.mean())
    assert_allclose(found.standard_error, gain.std(ddof=1) / 20)


def test_one_pair_has_no_standard_error():
    single = paired_difference(np.array([1.0]), np.array([3.0]))
    assert single.mean == -2.0
    assert np.isnan(single.standard_error)


def test_the_sign_of_a_difference_allows_for_the_number_compared():
    """2.2 standard errors of 400 pairs differ from zero if they are the only comparison."""
    clear = PairedDifference(mean=-2.2, standard_error=1.0, n=400)
    assert (clear.sign(), clear.sign(n_compared=10)) == (-1, 0)
    assert PairedDifference(1.9, 1.0, 400).sign() == 0
    assert PairedDifference(2.2, 1.0, 5).sign() == 0  # Student's limit is wider
    assert PairedDifference(4.0, 1.0, 400).sign(n_compared=10) == 1


def test_a_metric_over_readings_is_the_mean_over_outputs(predictions):
    truth, mean, std = predictions
    truth[:10, 1] = np.nan
    truth[1:, 2] = np.nan
    metric = over_readings(theirs.mean_absolute_error, least=2)
    assert_allclose(metric(truth, mean), mean_absolute_error(truth, mean)[:2].mean())
    weighted = metric(truth, mean, sample_weight=std[:, 0])
    seen = ~np.isnan(truth[:, 1])
    errors = np.abs(truth - mean)
    expected = [
        np.average(errors[:, 0], weights=std[:, 0]),
        np.average(errors[seen, 1], weights=std[seen, 0]),
    ]
    assert_allclose(weighted, np.mean(expected))
    assert np.isnan(metric(np.full((4, 3), np.nan), mean[:4]))


def test_a_metric_over_readings_rejects_tables_of_different_shapes(predictions):
    truth, mean, _ = predictions
    with pytest.raises(ValueError, match=r"shape \(50, 3\) and y_pred \(50, 2\)"):
        over_readings(theirs.r2_score)(truth, mean[:, :2])


def test_coverage_of_every_level_follows_from_the_pit(predictions):
    truth, mean, std = predictions
    truth[3, 1] = np.nan
    levels = np.array([0.5, 0.8, 0.95])
    expected = [coverage(truth, mean, std, level) for level in levels]
    assert_allclose(central_coverage(norm.cdf(truth, mean, std), levels), expected)
