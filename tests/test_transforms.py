"""Outputs to standardised ones, and beliefs back on the user's scale."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.transforms import OutputScale

NAMES = ["Cd", "Zn"]


@pytest.fixture
def Y(rng):
    Y = np.exp(rng.normal(size=(30, 2))) * [1.0, 1e4]
    Y[3, 0] = np.nan
    return Y


@pytest.mark.parametrize("log", [False, True])
def test_what_the_model_sees_has_mean_zero_and_variance_one(Y, log):
    seen = OutputScale.learned(Y, log=log, normalize=True).forward(Y)
    assert_allclose(np.nanmean(seen, axis=0), 0, atol=1e-12)
    assert_allclose(np.nanstd(seen, axis=0), 1)
    assert np.isnan(seen[3, 0])


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
def test_a_certain_belief_comes_back_as_the_value_itself(Y, log, normalize):
    scale = OutputScale.learned(Y, log=log, normalize=normalize)
    median, cov = scale.back(scale.forward(Y), np.zeros((30, 2, 2)))
    assert_allclose(median, Y)
    assert_allclose(np.nan_to_num(cov), 0)


def test_without_normalising_the_outputs_pass_unchanged(Y):
    assert_allclose(OutputScale.learned(Y, log=False, normalize=False).forward(Y), Y)


def test_without_a_log_the_covariance_is_scaled_by_both_outputs(Y):
    scale = OutputScale.learned(Y, log=False, normalize=True)
    cov = np.array([[[1.0, 0.5], [0.5, 2.0]]])
    s = np.nanstd(Y, axis=0)
    assert_allclose(scale.back(np.zeros((1, 2)), cov)[1][0], cov[0] * np.outer(s, s))


def test_through_the_log_median_and_covariance_are_the_lognormals(rng):
    """Against 400,000 draws: within 4 standard errors, a false alarm in some ten thousand."""
    scale = OutputScale(True, np.array([0.3, -1.0]), np.array([0.5, 0.4]))
    mean, cov = np.array([[0.2, -0.7]]), np.array([[[0.8, -0.4], [-0.4, 0.6]]])
    draws = np.exp(
        rng.multivariate_normal(mean[0], cov[0], size=400_000) * scale.scale + scale.shift
    )
    median, spread = (part[0] for part in scale.back(mean, cov))
    assert_allclose((draws < median).mean(axis=0), 0.5, atol=4 * 0.5 / np.sqrt(len(draws)))
    apart = draws - draws.mean(axis=0)
    products = apart[:, :, None] * apart[:, None, :]
    error = products.std(axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(products.mean(axis=0) - spread) < 4 * error)


@pytest.mark.parametrize("constant", [0.0, 0.1, 7.3, -1e9])
def test_a_constant_output_is_only_shifted(constant):
    Y = np.full((7, 1), constant)
    scale = OutputScale.learned(Y, log=False, normalize=True)
    assert_allclose(scale.scale, 1.0)
    assert_allclose(scale.forward(Y), 0.0, atol=1e-15 * max(1.0, abs(constant)))


def test_a_small_spread_about_zero_is_still_a_spread(rng):
    Y = 1e-30 * rng.normal(size=(20, 1))
    assert_allclose(OutputScale.learned(Y, log=False, normalize=True).forward(Y).std(), 1.0)


@pytest.mark.parametrize("bad", [0.0, -2.0])
def test_values_that_have_no_log_are_refused_by_output_and_row(Y, bad):
    Y[[5, 9], 1] = bad
    with pytest.raises(ValueError, match=r"output 'Zn' has 2 .*rows \[5, 9\].*detection limit"):
        OutputScale.learned(Y, log=True, normalize=True, names=NAMES)
    scale = OutputScale.learned(Y[:3], log=True, normalize=True)
    with pytest.raises(ValueError, match=r"'Zn'.*\[5, 9\]"):
        scale.forward(Y, NAMES)
