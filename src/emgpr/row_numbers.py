"""Numbers of rows in messages. In Python, all messages count rows from 0, and say so.

A step of a computation may work on some rows of the user's table, and number them differently.
Messages must have the numbers of the table, so they are renumbered.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # The command line imports this module, and must not wait for NumPy.
    import numpy as np

Rows: TypeAlias = "Sequence[int] | np.ndarray"

MAX_SHOWN = 5  # rows in a message
_ROWS = re.compile(r"\brows? (\d+(?:, \d+)*) \(counted from 0\)")


def rows_from_zero(rows: Rows) -> str:
    """Name the first of these rows in a message.

    >>> rows_from_zero([3]), rows_from_zero([3, 8])
    ('row 3 (counted from 0)', 'rows 3, 8 (counted from 0)')
    """
    shown = ", ".join(str(int(row)) for row in rows[:MAX_SHOWN])
    return f"row{'s' * (len(rows) > 1)} {shown} (counted from 0)"


def replace_rows(text: str, describe: Callable[[list[int]], str]) -> str:
    """Replace all row numbers in a message; `describe` returns the words for some rows.

    >>> replace_rows("Cd is 0 in row 3 (counted from 0).", lambda rows: f"line {rows[0] + 2}")
    'Cd is 0 in line 5.'
    """
    return _ROWS.sub(lambda found: describe([int(row) for row in found[1].split(", ")]), text)


@contextmanager
def rows_of_table(numbers: Rows) -> Iterator[None]:
    """Renumber rows in messages of ValueError: row i is row `numbers[i]` of the user's table."""
    try:
        yield
    except ValueError as error:
        if error.args and isinstance(error.args[0], str):
            text = replace_rows(
                error.args[0], lambda rows: rows_from_zero([numbers[i] for i in rows])
            )
            error.args = (text, *error.args[1:])
        raise
