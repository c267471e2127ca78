"""Matching of the rows of two pandas tables by their index."""

from typing import Any

import pandas as pd

from emgpr.user_warnings import warn


def match_rows(X: Any, table: Any, what: str) -> Any:
    """Put the rows of a table into the order of the rows of X if both have an index of their own.

    An index of its own is one other than the default, 0 to N-1. If the labels are the same in
    another order, the rows are reordered with a warning; if they differ, an error is raised.
    If only one table has an index of its own, the rows stay as they are, with a warning if the
    labels are 0 to N-1 in another order.

    >>> X = pd.DataFrame({"east": [1.0, 2.0]}, index=["a", "b"])
    >>> match_rows(X, pd.Series([3.0, 4.0], index=["a", "b"]), "y").tolist()
    [3.0, 4.0]
    """
    pandas_types = pd.DataFrame | pd.Series
    if not (isinstance(X, pandas_types) and isinstance(table, pandas_types)):
        return table
    wanted, given = X.index, table.index
    if len(wanted) != len(given) or wanted.equals(given):
        return table
    same_labels = wanted.is_unique and given.is_unique and not len(wanted.difference(given))
    if _is_default(wanted) or _is_default(given):
        if same_labels:
            warn(
                f"Either X or {what} has the default index, and the other has the same labels in "
                "another order; the rows are matched by position. To match by label, pass "
                f"{what}.loc[X.index]."
            )
        return table
    if same_labels:
        warn(
            f"The rows of {what} are in another order than the rows of X; they are matched by "
            f"the labels of the index. To match by position, pass {what}.reset_index(drop=True)."
        )
        return table.loc[wanted]
    raise ValueError(_difference_message(wanted, given, what))


def _is_default(index: pd.Index) -> bool:
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def _difference_message(wanted: pd.Index, given: pd.Index, what: str) -> str:
    absent = wanted.difference(given)
    reason = f"has no row {absent[0]!r}" if len(absent) else "has labels that occur several times"
    return (
        f"X and {what} have different index labels: {what} {reason}. Each row of {what} must have "
        f"the label of its row of X. To match by position, pass {what}.reset_index(drop=True)."
    )
