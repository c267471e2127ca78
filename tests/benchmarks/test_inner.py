"""The inner measurements and the comparison with plans run with the present internals."""

from unittest import mock

import numpy as np
import pytest

from benchmarks import gpu, inner, planned
from benchmarks.data import simulated

pytestmark = pytest.mark.slow


def test_an_evaluation_is_relative_to_the_linear_algebra_of_its_size():
    measured = inner.evaluation(80)
    assert len(measured) == 3
    assert all(value > 0 for value in measured.values())


def test_the_low_rank_likelihood_is_that_of_the_dense_form():
    measured = inner.low_rank_against_dense(200, 8)
    assert measured["difference_of_log_likelihoods"] < 1e-4
    assert 0 < measured["columns_of_the_low-rank_factor"] < 1600


def test_the_constants_of_the_stopping_rule_exist():
    with mock.patch.multiple("emgpr.weights.fit", low_rank_table=None, **inner.CONVERGED):
        pass


def test_a_measurement_that_fails_does_not_stop_the_others():
    def fails():
        raise ValueError("singular")

    measurements = {"first": fails, "second": lambda: {"seconds": 1.0}}
    with (
        mock.patch.object(inner, "MEASUREMENTS", measurements),
        mock.patch("os.sched_setaffinity", create=True),
    ):
        measured = inner.measure(0, lambda text: None)
    assert measured == {"first": {"failed": "ValueError: singular"}, "second": {"seconds": 1.0}}


def test_a_plan_is_compared_with_its_fit_and_prediction():
    fit, predict = planned.measure("IndependentGP", {}, 60, 3)
    assert len(fit) == len(predict) == 4
    assert all(np.isfinite(value) and value > 0 for value in (*fit, *predict))


def test_measurements_of_a_gpu_run_on_the_cpu():
    pytest.importorskip("torch")
    problem = simulated(20, 2, M=5)
    assert gpu.two_step(problem, "cpu")["mse"] > 0
    assert gpu.evaluation(problem, "cpu")["seconds"] > 0
