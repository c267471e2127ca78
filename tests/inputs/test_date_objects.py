"""Dates and durations among Python objects are refused; numbers are not."""

from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from emgpr.inputs.date_objects import check_no_dates


@pytest.mark.parametrize(
    "value",
    [date(2024, 1, 31), datetime(2024, 1, 31), pd.Timestamp("2024-01-31"), pd.NaT],
    ids=repr,
)
def test_dates_are_refused_with_their_place(value):
    table = np.array([[1.0, 2.0], [3.0, value]], dtype=object)
    with pytest.raises(ValueError, match=r"X contains the date .* in row 1, column 1 .*"):
        check_no_dates(table, "X")
    with pytest.raises(ValueError, match=r"y contains the date .* in row 1, column 0 .*"):
        check_no_dates(table[:, 1], "y")


@pytest.mark.parametrize("value", [timedelta(3), pd.Timedelta(days=3)], ids=repr)
def test_durations_are_refused(value):
    with pytest.raises(ValueError, match="y contains the duration"):
        check_no_dates(np.array([value], dtype=object), "y")


def test_numbers_and_text_pass():
    check_no_dates(np.array([[1, 2.5], [None, "3"]], dtype=object), "X")
    check_no_dates(np.empty((0, 2), dtype=object), "X")
