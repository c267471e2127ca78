"""Row numbers in messages are those of the user's table, whatever rows a step works on."""

import numpy as np
import pytest

from emgpr import EMGPR, IndependentGP, OnePassGP, compare
from emgpr.row_numbers import replace_rows, rows_from_zero, rows_of_table

X = np.linspace(0.0, 9.0, 40)[:, None]
Y = 2.0 + np.sin(X) * [1.0, -1.0]
Y[[1, 4]] = np.nan  # These rows are left out before the fit.
Y[[6, 30], 0] = -1.0
pytestmark = pytest.mark.filterwarnings("ignore:Nothing was measured in")
BAD = r"rows 6, 30 \(counted from 0\)"


def test_at_most_five_rows_are_named():
    assert rows_from_zero(np.arange(9)) == "rows 0, 1, 2, 3, 4 (counted from 0)"


def test_only_row_numbers_are_replaced():
    text = "Cd is 3 in row 3 (counted from 0); row 3 of 5"
    assert replace_rows(text, lambda rows: f"line {rows}") == "Cd is 3 in line [3]; row 3 of 5"


def test_an_error_keeps_its_class_and_what_it_contains():
    class OwnError(ValueError):
        pass

    with pytest.raises(OwnError, match=r"^row 7 \(counted from 0\) is bad$"), rows_of_table([5, 7]):
        raise OwnError(f"{rows_from_zero([1])} is bad")
    with pytest.raises(ValueError, match=r"^$"), rows_of_table([5, 7]):
        raise ValueError


@pytest.mark.parametrize(
    "work",
    [
        lambda: IndependentGP(output_transform="log").fit(X, Y),
        lambda: EMGPR(output_transform="log").first_look(X, Y),
        lambda: OnePassGP(output_transform="log").fit(X, Y),
        lambda: compare({"GP": IndependentGP(output_transform="log")}, X, Y, by="output"),
    ],
    ids=["fit", "first_look", "OnePassGP", "compare"],
)
def test_rows_are_counted_in_the_table_of_the_user(work):
    # A fold can contain one of the two rows.
    with pytest.raises(ValueError, match=rf"zero or negative.* in ({BAD}|row (6|30) )"):
        work()


def test_bounds_and_plans_count_the_same_rows():
    bounded = EMGPR(output_bounds={"0": (0, 9)})
    for work in (bounded.plan, bounded.first_look, bounded.fit):
        with pytest.raises(ValueError, match=r"-1, in row 6 \(counted from 0\)"):
            work(X, Y)


def test_later_chunks_count_their_own_rows():
    model = OnePassGP(output_transform="log", box=([0.0], [9.0])).fit(X, np.abs(Y) + 0.1)
    with pytest.raises(ValueError, match=BAD):
        model.partial_fit(X, Y)
