"""Settings of the regressions: the covariance of their residuals, and the list of all settings."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.regression import RegressionRows, Residual
from emgpr.regression.settings import (
    IMPUTED_NOISE,
    MIN_NOISE,
    all_settings,
    drift_priors,
    residual_models,
)
from tests.regression.written_out import CORRELATIONS, residual_covariance, simulated_rows

RESIDUALS = {
    "noise only": Residual(1.0, 0.0),
    "residual process": Residual(0.2, 0.7),
    "varying coefficients": Residual(0.2, 0.7, 0.4),
    "varying coefficients and noise": Residual(1.0, 0.0, 0.4),
}
each_residual = pytest.mark.parametrize("residual", RESIDUALS.values(), ids=RESIDUALS)


@each_residual
@pytest.mark.parametrize("kernel", CORRELATIONS)
def test_the_covariance_is_the_sum_of_its_parts(kernel, residual, rng):
    a, b = simulated_rows(rng, n=6), simulated_rows(rng, n=4)
    expected = residual_covariance(kernel, residual, a, b)
    assert_allclose(residual.covariance(kernel, a, b), expected, rtol=1e-10, atol=1e-14)
    variance = np.diagonal(residual_covariance(kernel, residual, a, a))
    assert_allclose(residual.variance(a), variance, rtol=1e-12)


@each_residual
def test_a_batch_of_rows_has_the_covariance_of_each_set(residual, rng):
    rows, sets = simulated_rows(rng, n=9, imputed=True), np.array([[0, 4, 7], [1, 2, 8]])
    batch = rows.at(sets)
    cov = residual.covariance("matern32", batch, batch)
    for i, members in enumerate(sets):
        alone = rows.at(members)
        assert_allclose(cov[i], residual.covariance("matern32", alone, alone), rtol=1e-12)
        assert_allclose(residual.noise(batch)[i], residual.noise(alone))
        assert_allclose(residual.variance(batch)[i], residual.variance(alone))


def test_residual_process_and_noise_have_the_variance_one():
    rows = RegressionRows.build(np.zeros((2, 1)), np.ones((2, 1)), np.array([[0.0], [0.5]]))
    residual = Residual(0.1, 0.7)
    total = residual.variance(rows) + residual.noise(rows)
    assert_allclose(total, 1 + MIN_NOISE + IMPUTED_NOISE * np.array([0.0, 0.5]))


@pytest.mark.parametrize("varying", [False, True])
def test_candidates_are_all_combinations(varying):
    found = all_settings(varying)
    residuals, priors = residual_models(varying), drift_priors()
    assert len(set(found)) == len(found) == len(residuals) * len(priors)
    # Those of one residual process follow each other, in the order in which they are fitted.
    assert [c.residual for c in found[:: len(priors)]] == residuals
    assert [c.prior for c in found[: len(priors)]] == priors


def test_coefficients_vary_in_half_of_the_candidates_if_they_may():
    assert_array_equal([r.varying for r in residual_models(False)], 0.0)
    varying = [r.varying > 0 for r in residual_models(True)]
    assert sum(varying) == len(varying) / 2 == len(residual_models(False))
