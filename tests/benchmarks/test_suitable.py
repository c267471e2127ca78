"""Which methods are run on a problem."""

import numpy as np
import pytest

from benchmarks.data import Problem
from benchmarks.environments import Method
from benchmarks.run import is_suitable

REGRESSION = Method("least squares on known outputs", None, {}, ())
OTHER = Method("GPy, ICM", None, {}, ())


def problem(truth, **settings):
    return Problem(np.zeros((2, 1)), np.zeros((2, 2)), np.zeros((1, 1)), truth, **settings)


@pytest.mark.parametrize(("known", "suits"), [(np.nan, True), (1.0, False)])
def test_regressions_need_outputs_that_are_known_where_they_predict(known, suits):
    truth = np.array([[1.0, known]])
    assert is_suitable(REGRESSION, problem(truth)) == suits
    assert is_suitable(OTHER, problem(truth))


def test_a_problem_can_list_its_methods():
    large = problem(np.ones((1, 2)), methods=("GPBoost, Vecchia",))
    assert not is_suitable(OTHER, large)
