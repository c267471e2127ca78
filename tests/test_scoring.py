"""Damped Fisher scoring: known maxima, bounds, flat directions, bad values, and resumption."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.scoring import (
    ScoringState,
    as_optimize_result,
    expected_gain,
    maximise_by_scoring,
)


def run(function, information, x0, bounds=None, **settings):
    bounds = np.tile([-np.inf, np.inf], (len(x0), 1)) if bounds is None else np.array(bounds)
    given = {"scale": 1.0, "tolerance": 1e-10, "max_iter": 200} | settings
    return maximise_by_scoring(function, information, np.array(x0), bounds=bounds, **given)


def quadratic(A, target):
    return lambda x: (-0.5 * (x - target) @ A @ (x - target), -A @ (x - target))


@pytest.fixture
def problem(rng):
    root = rng.normal(size=(5, 5))
    return root @ root.T + np.eye(5), rng.normal(size=5)


def test_with_the_curvature_a_quadratic_takes_a_few_steps(problem):
    A, target = problem
    end = run(quadratic(A, target), lambda x, i: A, np.zeros(5))
    assert end.converged
    assert_allclose(end.x, target, atol=1e-4)
    assert end.n_iter < 20


def test_a_wrong_information_is_corrected_along_previous_steps(problem):
    """As in L-BFGS, which starts from this matrix after `n_scoring` iterations."""
    A, target = problem
    wrong = np.diag(np.diagonal(A)) * 30
    slow, fast = (
        run(quadratic(A, target), lambda x, i: wrong, np.zeros(5), max_iter=60, n_scoring=n)
        for n in (60, 0)
    )
    assert_allclose(fast.x, target, atol=1e-3)
    assert np.abs(fast.x - target).max() < 0.2 * np.abs(slow.x - target).max()


def test_variables_stay_inside_their_bounds(problem):
    A, _ = problem
    bounds = [(-1.0, 0.5)] * 5
    end = run(quadratic(A, np.full(5, 2.0)), lambda x, i: A, np.zeros(5), bounds)
    assert end.converged
    assert end.x.max() == 0.5
    result = as_optimize_result(end, np.array(bounds))
    assert result.at_bound.any()
    assert result.converged.all()
    assert result.value[0] == -end.value


def test_a_flat_direction_does_not_prevent_convergence():
    A = np.diag([2.0, 0.0])
    end = run(quadratic(A, np.array([1.0, 0.0])), lambda x, i: A, [0.0, 0.3], tolerance=1e-8)
    assert end.converged
    assert_allclose(end.x, [1.0, 0.3], atol=1e-3)


def test_the_expected_gain_is_that_of_a_step(problem):
    A, target = problem
    gain = expected_gain(A @ target, A - np.eye(5))
    assert_allclose(gain, 0.5 * target @ A @ target, rtol=1e-6)
    assert expected_gain(np.zeros(5), A) == 0


def test_steps_into_regions_without_a_value_are_shortened():
    def function(x):
        if x[0] > 1.5:
            return -np.inf, np.zeros(1)
        return np.log(1.5 - x[0]) + 2 * x[0], np.array([2 - 1 / (1.5 - x[0])])

    end = run(function, lambda x, i: np.full((1, 1), 0.1), [0.0], max_iter=100)
    assert_allclose(end.x, [1.0], atol=1e-3)
    assert end.converged


@pytest.mark.parametrize("x0", [[0.0], [3.0]])
def test_a_start_without_a_value_ends_at_once(x0):
    end = run(lambda x: (np.nan, np.zeros(1)), lambda x, i: np.eye(1), x0)
    assert not end.converged
    assert end.nonfinite
    assert end.n_iter == 0


def test_a_search_that_stops_short_has_not_converged(problem):
    A, target = problem
    end = run(quadratic(A, 50 * target), lambda x, i: A, np.zeros(5), max_iter=2)
    assert end.n_iter == 2
    assert not end.converged


def test_a_resumed_search_ends_at_the_same_point(rng, problem):
    A, target = problem
    noisy = [A + 0.2 * np.diag(rng.uniform(size=5)) for _ in range(100)]
    states = []
    settings = {"max_iter": 40, "new_share": 0.5, "n_scoring": 3, "tolerance": 1e-14}
    function = quadratic(A, target)
    whole = run(function, lambda x, i: noisy[i], np.zeros(5), callback=states.append, **settings)
    resumed = run(function, lambda x, i: noisy[i], np.zeros(5), initial_state=states[4], **settings)
    assert isinstance(states[4], ScoringState)
    assert_allclose(resumed.x, whole.x, rtol=0, atol=0)
    assert resumed.n_evaluations == whole.n_evaluations


def test_without_variables_nothing_is_searched():
    end = run(lambda x: (1.0, np.zeros(0)), lambda x, i: np.zeros((0, 0)), np.zeros(0))
    assert end.converged
    assert end.value == 1.0


def test_a_search_from_the_maximum_takes_the_least_number_of_iterations(problem):
    A, target = problem
    near = target + 1e-3
    free, at_least = (
        run(quadratic(A, target), lambda x, i: A, near, tolerance=1.0, min_iter=n) for n in (0, 2)
    )
    assert (free.n_iter, at_least.n_iter) == (0, 2)
    assert at_least.converged
    assert at_least.value > free.value
