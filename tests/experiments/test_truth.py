"""Tables drawn from the model: their covariance, the rows of fits to them, and the table."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.experiments import truth

pytestmark = pytest.mark.slow

QUICK = {"estimator": "EMGPR.paper", "max_iter": 3, "n_restarts": 1}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    path = tmp_path_factory.mktemp("truth") / "rows.jsonl"
    return truth.reproduce(path, draws=2, sites=30, settings=QUICK)


def test_readings_have_the_covariance_that_the_table_compares_with():
    """The first of 4 sites of 1200 draws: 4 standard errors, a false alarm in 1000 runs."""
    draws = np.array(
        [truth.draw_table(np.random.default_rng(seed), 4)[1][0] for seed in range(1200)]
    )
    true = truth.W.T @ truth.W + truth.NOISE
    error = np.sqrt((np.outer(np.diag(true), np.diag(true)) + true**2) / len(draws))
    assert np.all(np.abs(draws.T @ draws / len(draws) - true) < 4 * error)


def test_a_row_holds_noise_covariance_and_coverage(rows):
    assert [row["draw"] for row in rows] == [0, 1]
    for row in rows:
        assert np.shape(row["noise"]) == np.shape(row["covariance"]) == (4, 4)
        assert_allclose(row["covariance"], np.transpose(row["covariance"]), atol=1e-9)
        assert np.all(np.linalg.eigvalsh(row["noise"]) > 0)
        assert all(0 <= share <= 1 for share in row["coverage"])


def test_the_table_is_relative_to_the_truth():
    covariance = truth.W.T @ truth.W
    row = {
        "noise": (1.1 * truth.NOISE).tolist(),
        "covariance": (0.8 * covariance).tolist(),
        "coverage": [0.9, 0.95, 0.96, 0.97],
    }
    line = truth.text([row, row]).splitlines()[-1]
    assert "1.10-1.10 ± 0.00" in line
    assert "0.80-0.80 ± 0.00" in line
    assert "20%" in line
    assert "0.900-0.970 ± 0.000" in line
