"""The drift: its features have the covariance of a Gaussian process given at a few centres."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.regression import DriftPrior, RegressionRows
from emgpr.regression.drift import MAX_CENTRES, ROWS_PER_CENTRE, Drift
from tests.regression.written_out import drift_covariance, simulated_rows


def test_the_features_have_the_covariance_of_the_drift(rng):
    rows, new, prior = simulated_rows(rng, n=30), simulated_rows(rng, n=7), DriftPrior(2.0, 0.7)
    drift = Drift.around(rows)
    scale = prior.deviations(drift)
    a, b = (drift.features(at) * scale for at in (rows, new))
    expected = drift_covariance(prior, drift.centres, rows, new)
    assert_allclose(a @ b.T, expected, rtol=1e-8)


def test_the_smooth_part_is_exact_at_the_centres(rng):
    """There, Nyström's approximation is the RBF kernel itself, up to the nugget."""
    rows = simulated_rows(rng, n=60, k=2)
    drift = Drift.around(rows)
    at = np.flatnonzero((rows.z[:, None] == drift.centres).all(axis=2).any(axis=1))
    smooth = drift.features(rows.at(at))[:, 1 + drift.n_linear :]
    distance = np.linalg.norm(rows.z[at][:, None] - rows.z[at], axis=2)
    assert_allclose(smooth @ smooth.T, np.exp(-0.5 * (distance / 1.5) ** 2), atol=1e-4)


def test_centres_are_different_rows_far_from_each_other(rng):
    rows = simulated_rows(rng, n=200, k=2)
    centres = Drift.around(rows).centres
    assert len(centres) == MAX_CENTRES == min(MAX_CENTRES, 200 // ROWS_PER_CENTRE)
    distance = np.linalg.norm(centres[:, None] - centres, axis=2)[np.triu_indices(MAX_CENTRES, 1)]
    random = rows.z[rng.permutation(200)[:MAX_CENTRES]]
    others = np.linalg.norm(random[:, None] - random, axis=2)[np.triu_indices(MAX_CENTRES, 1)]
    assert distance.min() > 2 * others.min()


@pytest.mark.parametrize("k", [1, 3])
def test_centres_do_not_depend_on_the_order_of_rows(rng, k):
    """Nor does rounding matter: with one known output, two of 40 rows are equally central."""
    rows = simulated_rows(rng, n=40, k=k)
    for _ in range(5):
        shuffled = rows.at(rng.permutation(40))
        shuffled = replace(shuffled, z=shuffled.z * (1 + 1e-15 * rng.normal(size=(40, 1))))
        assert_allclose(Drift.around(shuffled).centres, Drift.around(rows).centres, rtol=1e-12)


def test_equal_rows_or_few_rows_have_one_centre(rng):
    equal = RegressionRows.build(np.arange(30.0)[:, None], np.ones((30, 2)))
    assert Drift.around(equal).n_smooth == 1
    few = simulated_rows(rng, n=ROWS_PER_CENTRE - 1, k=2)
    drift = Drift.around(few)
    assert (drift.n_smooth, drift.n_linear) == (1, 2)
    assert drift.features(few).shape == (ROWS_PER_CENTRE - 1, 4)


def test_features_of_a_batch_are_those_of_each_set(rng):
    rows = simulated_rows(rng, n=30)
    drift, sets = Drift.around(rows), np.array([[0, 1, 2], [5, 2, 9]])
    assert_allclose(drift.features(rows.at(sets)), drift.features(rows)[sets], rtol=1e-12)


def test_an_unused_smooth_part_has_no_variance(rng):
    drift = Drift.around(simulated_rows(rng, n=30))
    deviations = DriftPrior(3.0, 0.0).deviations(drift)
    assert_array_equal(deviations[1 + drift.n_linear :], 0.0)
    assert (deviations[: 1 + drift.n_linear] > 0).all()
