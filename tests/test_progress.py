"""Progress of work of known size, and of optimisations."""

import numpy as np
import pytest

from emgpr.progress import (
    describe_time_left,
    iteration_progress,
    progress_counter,
    with_progress,
)


def test_a_counter_shows_how_far_work_has_come(capsys):
    with progress_counter(7, "Refining", verbose=0) as count:
        count()
    assert capsys.readouterr().err == ""
    with progress_counter(7, "Refining", verbose=1) as count:
        for _ in range(3):
            count()
    shown = capsys.readouterr()
    assert "Refining" in shown.err
    assert "3/7" in shown.err
    assert shown.out == ""


def test_work_of_size_zero_shows_nothing(capsys):
    with progress_counter(0, "Refining", verbose=1):
        pass
    assert list(with_progress([], 0, "Letters")) == []
    assert capsys.readouterr().err == ""


def test_an_error_passes_through_a_counter():
    for verbose in (0, 1):
        with pytest.raises(KeyError), progress_counter(7, "Refining", verbose=verbose):
            raise KeyError


@pytest.mark.parametrize("verbose", [0, 1])
def test_items_under_a_progress_bar_stay_as_they_are(verbose, capsys):
    assert list(with_progress(iter("abc"), 3, "Letters", verbose)) == ["a", "b", "c"]
    assert ("3/3" in capsys.readouterr().err) == bool(verbose)


def test_an_optimisation_shows_its_iteration_gain_and_time_left(capsys):
    values = np.cumsum([0.0, *(0.5 ** np.arange(20))])
    for verbose in (0, 1):
        with iteration_progress("Joint optimisation", 250, 1e-9, verbose) as show:
            for n in range(2, len(values) + 1):
                show(values[:n].tolist())
        shown = capsys.readouterr()
        assert shown.out == ""
        line = "Joint optimisation, iteration 20, gain 1.9e-06, about 0.1 s left"
        assert (line in shown.err) == bool(verbose)


@pytest.mark.parametrize(
    ("gains", "left"),
    [
        (0.8 ** np.arange(10), "about 22 s left"),  # 0.8^31 is a thousandth
        (100 * 0.8 ** np.arange(10), "about 43 s left"),
        (0.8 ** np.arange(9), "at most 50 s left"),  # too few
        (np.ones(10), "at most 50 s left"),  # not decreasing
        (np.zeros(10), "at most 50 s left"),
        (1e4 * 0.99 ** np.arange(10), "at most 50 s left"),  # max_iter comes first
        (1e-9 * 0.8 ** np.arange(10), "about 1 s left"),
    ],
)
def test_the_time_left_is_extrapolated_from_the_gains(gains, left):
    assert describe_time_left(gains, 1e-3, max_left=50, seconds=1.0) == left
