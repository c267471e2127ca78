"""Warnings point at the line of the user's code that called into the package."""

import inspect
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import emgpr
from emgpr import EMGPR, IndependentGP, OnePassGP
from emgpr.user_warnings import warn

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(40, 2))
    Y = np.column_stack([np.sin(5 * X[:, 0]), np.cos(5 * X[:, 1])]) + 0.1 * rng.normal(size=(40, 2))
    return X, Y


@pytest.fixture(scope="module")
def model(table):
    return EMGPR.paper(random_state=0, batch_size=None).fit(*table)


def caught_at(call):
    """The warnings of a call, and the line of this file that made it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught
    return caught


def check_line(caught, function):
    """All are attributed to a line of the function in this file."""
    lines, first = inspect.getsourcelines(function)
    for warning in caught:
        assert warning.filename == __file__, warning
        assert first <= warning.lineno < first + len(lines)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("estimator", [EMGPR.paper, IndependentGP])
def test_warnings_of_fit(table, estimator, n_jobs):
    X, Y = table
    with_code = np.where(np.arange(40)[:, None] == 3, -9999.0, Y)
    call = lambda: estimator(max_iter=1, n_jobs=n_jobs).fit(X, with_code)  # noqa: E731
    check_line(caught_at(call), call)


def test_warnings_of_a_fit_from_sums(table):
    X, Y = table
    call = lambda: OnePassGP(max_iter=1, n_start=30, random_state=0).fit(X, Y)  # noqa: E731
    check_line(caught_at(call), call)


def test_warnings_of_predictions_with_suspicious_values(model, table):
    X, Y = table
    known = np.where(np.arange(40)[:, None] == 3, -9999.0, Y) * [1, np.nan]
    for call in (
        lambda: model.predict(X, observed=known),
        lambda: model.sample_y(X, observed=known),
        lambda: model.predict_frame(X, observed=known),
    ):
        check_line(caught_at(call), call)


def test_warnings_of_cross_validation(model, monkeypatch):
    from emgpr.prediction import lmc_posterior

    def leave_out_with_a_warning(*args, **options):
        warn("something about leaving out")
        return original(*args, **options)

    original = lmc_posterior.leave_out
    monkeypatch.setattr(lmc_posterior, "leave_out", leave_out_with_a_warning)
    for call in (lambda: model.cross_validate(), lambda: model.transfer_report()):
        check_line(caught_at(call), call)


def test_a_library_between_two_of_our_frames_is_skipped(table):
    X, Y = table
    call = lambda: EMGPR.paper(conditioning=4, n_members=2).fit(X, np.where(Y > 1.1, -9999.0, Y))  # noqa: E731
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(warning.filename == __file__ for warning in caught)


def test_a_warning_outside_the_package_is_the_callers():
    with pytest.warns(UserWarning, match="hello") as caught:
        warn("hello")
    assert caught[0].filename == __file__


def test_a_script_whose_path_begins_like_that_of_the_package_is_the_users(tmp_path):
    (tmp_path / "emgpr").symlink_to(Path(emgpr.__file__).parent)
    script = tmp_path / "emgpr_study.py"
    script.write_text("from emgpr.user_warnings import warn\nwarn('here')\n")
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert f"{script}:2: UserWarning: here" in ran.stderr
