"""Detection of dates and durations among the numbers of an array of Python objects.

NumPy would convert them to numbers in units that differ from value to value, and NaT to −9.2e18.
"""

from datetime import date, timedelta

import numpy as np
import pandas as pd

from emgpr.observations import first_true

DATES, DURATIONS = (np.datetime64, date, type(pd.NaT)), (np.timedelta64, timedelta)


def check_no_dates(array: np.ndarray, what: str) -> None:
    """Raise if an array of objects contains dates or durations, and say how to convert them.

    >>> check_no_dates(np.array([1.5, np.timedelta64(3, "D")], dtype=object), "y")
    Traceback (most recent call last):
        ...
    ValueError: y contains the duration np.timedelta64(3,'D') in row 1, column 0 (both counted from
    0), not a number. Convert durations to days first: pd.to_timedelta(column) /
    pd.Timedelta(days=1).
    """
    objects = array.reshape(len(array), -1) if array.size else array
    found = [isinstance(value, DATES + DURATIONS) for value in objects.flat]
    if not any(found):
        return
    row, column = first_true(np.reshape(found, objects.shape))
    value = objects[row, column]
    name, remedy = "date", "(pd.to_datetime(column) - pd.Timestamp(2000, 1, 1))"
    if isinstance(value, DURATIONS):
        name, remedy = "duration", "pd.to_timedelta(column)"
    raise ValueError(
        f"{what} contains the {name} {value!r} in row {row}, column {column} (both counted from "
        f"0), not a number. Convert {name}s to days first: {remedy} / pd.Timedelta(days=1)."
    )
