"""Text in the cells of tables."""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from emgpr.io.cells import MISSING, is_text_type, read_cells, read_text_columns

NAN = np.nan


def cells(*values, **options):
    return read_cells(pd.Series(list(values), dtype=object), **options)


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        (("1.5", " 2 ", "-3e2", ".5"), (1.5, 2, -300, 0.5)),
        (("1,5", "2", "-3e2"), (1.5, 2, -300)),
        (("1,500", "2,25"), (1.5, 2.25)),
        (("−1.5", "+2"), (-1.5, 2)),
        ((1, 2.5, Decimal("0.5"), True, None, "3"), (1, 2.5, 0.5, 1, NAN, 3)),
        (("<0.5", "2"), (0.25, 2)),
        (("<= 0,5", "2,5"), (0.25, 2.5)),
        (("<LOQ", "BDL", "<0.1", "2"), (0.05, 0.05, 0.05, 2)),
        (("", "  ", "2"), (NAN, NAN, 2)),
    ],
)
def test_numbers_in_text_are_read(given, numbers):
    assert_array_equal(cells(*given).values, numbers)


@pytest.mark.parametrize("code", sorted(MISSING))
def test_codes_are_missing_and_counted(code):
    read = cells("1", code, code.upper(), f" {code} ")
    assert_array_equal(read.values, (1, NAN, NAN, NAN))
    assert sum(read.missing.values()) == 3


@pytest.mark.parametrize(
    ("given", "row", "kind"),
    [
        (("n.d.", "<0.5", "1", "high"), 3, "text"),
        (("1,234", "2,345"), 0, "comma"),
        (("1,234", "much"), 1, "text"),
        (("1.5", "2.5", "3,5"), 2, "mark"),
        (("1", "<0,5", "2.5", "3.5"), 1, "mark"),
        (("1", ">5"), 1, "above"),
        (("1 200,5", "3,5"), 0, "thousands"),
        (("1", "<-5"), 1, "text"),
        (("1", "5 %"), 1, "unit"),
        (("7°30'",), 0, "degrees"),
        (("31.01.2024",), 0, "date"),
        (("2024-01-31", "31.01.2024"), 1, "date"),
        (("1", "2024-01-31"), 1, "text"),
        (("2024-02-31",), 0, "text"),
        (("2024-01-31T25:00",), 0, "text"),
        (("<LOD", ""), 0, "below"),
        ((1, np.timedelta64(1, "D")), 1, "text"),
        ((1, 1j), 1, "text"),
    ],
)
def test_the_cell_that_is_wrong_is_found(given, row, kind):
    read = cells(*given)
    assert read.values is None
    assert (read.wrong.row, read.wrong.kind) == (row, kind)
    assert read.wrong.remedy.endswith(".")


@pytest.mark.parametrize(
    ("given", "decimal", "numbers"),
    [
        (("1,234", "2"), ".", (1234, 2)),
        (("1,234", "2"), ",", (1.234, 2)),
        (("1.234,5", "2 000"), ",", (1234.5, 2000)),
        (("1'234.5", "12,345,678"), ".", (1234.5, 12345678)),
    ],
)
def test_a_given_decimal_mark_leaves_the_other_to_thousands(given, decimal, numbers):
    assert_array_equal(cells(*given, decimal=decimal).values, numbers)
    assert cells("1,23", decimal=".").wrong.kind == "mark"


def test_a_comma_is_a_decimal_mark_where_this_is_assumed():
    assert_array_equal(cells("1,234", "2,345", assume=True).values, (1.234, 2.345))


def test_dates_are_read_in_utc():
    moments = ("2024-01-31", "2024-02", "2024-01-31T12:00+02:00", date(2024, 3, 1), "NA")
    read = cells(*moments, datetime(2024, 3, 1, 6), np.datetime64("2024-03-02"))
    expected = [
        "2024-01-31", "2024-02-01", "2024-01-31T10", "2024-03-01", "NaT", "2024-03-01T06",
        "2024-03-02",
    ]  # fmt: skip
    assert_array_equal(read.values, np.array(expected, dtype="datetime64[us]"))
    assert read.missing == {"NA": 1}


def test_a_table_keeps_its_text_and_tells_what_became_missing():
    table = pd.DataFrame(
        {"Cd": ["1", "NA"], "soil": ["clay", "NA"], "n": [1, 2], "Zn": ["<4", "nd"]}
    )
    read, messages = read_text_columns(table)
    assert_array_equal(read[["Cd", "Zn"]], [[1, 2], [NAN, NAN]])
    assert read["soil"].tolist() == ["clay", "NA"]
    assert table["Cd"].tolist() == ["1", "NA"]
    assert len(messages) == 2
    assert "'Zn' has 1 of 2 values below a detection limit" in messages[0]
    assert messages[1].startswith("Some cells are read as missing: 'NA' in column 'Cd' (1 of 2 ")
    assert "cells); 'nd' in" in messages[1]
    assert "If 'nd' means that a value was below the detection limit" in messages[1]


def test_text_columns_are_those_of_objects_and_strings():
    assert is_text_type(np.dtype(object))
    assert is_text_type(pd.StringDtype())
    assert not is_text_type(np.dtype(float))
    assert not is_text_type(pd.CategoricalDtype(["a"]))
