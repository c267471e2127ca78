"""The rows of a regression: scaling of the known outputs, and selection of rows."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.regression import RegressionRows
from tests.regression.written_out import simulated_rows


def test_the_squared_length_of_known_outputs_is_their_mean_square(rng):
    known = rng.normal(size=(6, 4))
    rows = RegressionRows.build(np.zeros((6, 1)), known)
    assert_allclose((rows.z**2).sum(axis=1), (known**2).mean(axis=1))
    assert_array_equal(rows.imputed, 0.0)


def test_the_variance_of_imputed_values_is_averaged_over_the_known_outputs():
    variances = np.array([[0.0, 0.0], [0.4, 0.0]])
    rows = RegressionRows.build(np.zeros((2, 1)), np.zeros((2, 2)), variances)
    assert_allclose(rows.imputed, [0.0, 0.2])


def test_rows_are_selected_by_number_by_mask_and_in_batches(rng):
    rows = simulated_rows(rng, n=5, imputed=True)
    some = rows.at(np.array([3, 1]))
    assert len(some) == 2
    assert_array_equal(some.x, rows.x[[3, 1]])
    assert_array_equal(rows.at(np.arange(5) > 2).z, rows.z[3:])
    batch = rows.at(np.array([[0, 1], [1, 4]]))
    assert (len(batch), batch.z.shape, batch.imputed.shape) == (2, (2, 2, 3), (2, 2))
    each = rows.each()
    assert (len(each), each.x.shape) == (1, (5, 1, 2))
    assert_array_equal(each.imputed[:, 0], rows.imputed)
