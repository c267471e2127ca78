"""Regressions in a model file: stored, read, and refused if they are invalid."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from emgpr.conditional import FittedRegression, RegressionKernel, RegressionSet
from emgpr.model_files.conditional_state import (
    regressions_from_state,
    regressions_state,
    regressions_with,
    settings_state,
)
from emgpr.persistence import ModelFileError

KERNEL = RegressionKernel()


@pytest.fixture
def state(rng):
    members = tuple(
        FittedRegression(rng.normal(size=6), rng.normal(size=(4, 6)), converged, -0.5)
        for converged in (False, True, True, True)
    )
    return regressions_state(RegressionSet(9, fitted={(1, (0, 2)): members}))


def test_regressions_are_read_as_they_were_stored(state):
    ((question, members),) = regressions_from_state(state, KERNEL, 3).items()
    assert question == (1, (0, 2))
    for fitted, stored in zip(members, state[0]["members"], strict=True):
        assert_array_equal(fitted.theta, stored["theta"])
        assert_array_equal(fitted.directions, stored["directions"])
    assert [fitted.converged for fitted in members] == [False, True, True, True]
    assert [fitted.left_out for fitted in members] == 4 * [-0.5]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"output": 3}, "an output that does not exist"),
        ({"output": True}, "an output that does not exist"),
        ({"output": 0}, "known outputs of a regression are invalid"),
        ({"known": np.array([2, 0])}, "known outputs of a regression are invalid"),
        ({"known": np.array([], int)}, "known outputs of a regression are invalid"),
        ({"known": np.array([0, 7])}, "not distinct integers"),
        ({"known": [0, 2]}, "not an array"),
        ({"members": 3}, "not a list"),
        ({"members": []}, "lacks the parameters of a member"),
        ({"members": [1, 2, 3, 4]}, "not a dict"),
        ({"more": 1}, "missing or unknown"),
    ],
)
def test_invalid_regressions_are_refused(state, change, message):
    with pytest.raises(ModelFileError, match=message):
        regressions_from_state([state[0] | change], KERNEL, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"theta": np.zeros(5)}, "'theta' has shape"),
        ({"theta": np.full(6, np.nan)}, "NaN"),
        ({"theta": np.full(6, 99.0)}, "too large"),
        ({"directions": np.zeros((2, 7))}, "'directions' has shape"),
        ({"converged": 1}, "neither true nor false"),
        ({"left_out": np.inf}, "not a finite number"),
        ({"left_out": "-1"}, "not a finite number"),
        ({"more": 1}, "missing or unknown"),
    ],
)
def test_invalid_parameters_are_refused(state, change, message):
    state[0]["members"][1] |= change
    with pytest.raises(ModelFileError, match=message):
        regressions_from_state(state, KERNEL, 3)


@pytest.mark.parametrize("wrong", [None, {}, [3]])
def test_anything_else_is_refused(wrong):
    with pytest.raises(ModelFileError, match="'regressions'"):
        regressions_from_state(wrong, KERNEL, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"residual_kernel": "cubic"}, "not a known kernel"),
        ({"varying_coefficients": 1}, "neither true nor false"),
        ({"max_iter": 0}, "not a positive integer"),
    ],
)
def test_invalid_settings_are_refused(change, message):
    regressions = RegressionSet(9)
    settings = settings_state(regressions)
    assert regressions_with(settings, regressions) == regressions
    with pytest.raises(ModelFileError, match=message):
        regressions_with(settings | change, regressions)
