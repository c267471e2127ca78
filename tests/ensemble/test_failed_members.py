"""Members that failed: the others go on, if they are at least half of the ensemble."""

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from emgpr.arrays import NumericalError
from emgpr.ensemble import EnsembleWarning, drop_failed_members, warn_failed_members
from emgpr.ensemble.failed_members import FAILED_MEMBERS
from emgpr.weights import FittedWeights


def members(log_likelihood, message=""):
    L = len(log_likelihood)
    W = np.arange(L, dtype=float).reshape(L, 1, 1, 1)
    return FittedWeights(
        W, np.array(log_likelihood), np.ones(L, bool), np.arange(L), message=message
    )


def batches(n):
    return [np.array([i]) for i in range(n)]


def test_members_that_succeeded_keep_their_batches():
    kept, left = drop_failed_members(batches(4), members([-1.0, -np.inf, np.nan, -2.0], "why"), 4)
    assert [batch.tolist() for batch in kept] == [[0], [3]]
    assert_array_equal(left.W.ravel(), [0.0, 3.0])
    assert left.message == "why"


def test_without_failures_nothing_changes():
    own, fitted = batches(2), members([-1.0, -2.0])
    kept, left = drop_failed_members(own, fitted, 2)
    assert kept is own
    assert left is fitted


@pytest.mark.parametrize(
    ("log_likelihood", "n_all", "who"),
    [
        ([-1.0, -np.inf, -np.inf], 3, "The weights of 2 of 3 members"),
        ([-1.0, -1.0], 5, "The weights of 3 of 5 members"),  # others failed before
        ([-np.inf], 1, "The weights"),
    ],
)
def test_an_ensemble_of_which_most_failed_is_refused(log_likelihood, n_all, who):
    message = (
        f"{who} could not be fitted in two attempts (MemoryError: no room); at least half of the "
        "members must succeed. Try fewer processes (n_jobs) if memory is short, larger batches "
        "(batch_size), or a kernel with other bounds."
    )
    given = members(log_likelihood, "MemoryError: no room")
    with pytest.raises(NumericalError, match=f"^{re.escape(message)}$"):
        drop_failed_members(batches(len(log_likelihood)), given, n_all)


def test_a_reason_that_is_not_known_is_the_likelihood():
    with pytest.raises(NumericalError, match=r"\(the likelihood could not be evaluated\)"):
        drop_failed_members(batches(1), members([-np.inf]), 1)


@pytest.mark.parametrize(
    ("reason", "said"),
    [("MemoryError", "MemoryError"), ("", "the likelihood could not be evaluated")],
)
def test_the_warning_says_how_many_failed_and_why(reason, said):
    message = (
        f"2 of 5 members failed twice and are left out ({said}); the other 3 form the ensemble. "
        "Try fewer processes (n_jobs) if memory is short, or larger batches (batch_size)."
    )
    with pytest.warns(EnsembleWarning, match=f"^{re.escape(message)}$"):
        warn_failed_members(3, 5, reason)
    assert FAILED_MEMBERS.match(message)
