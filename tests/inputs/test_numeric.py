"""Text and dates in pandas tables become numbers."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from emgpr.inputs import read_training_table, validate_observed
from emgpr.inputs.numeric import (
    check_no_date_numbers,
    date_columns,
    date_number_columns,
    days_from_numbers,
    numeric_columns,
    to_days,
)
from emgpr.inputs.validate import validate_inputs, validate_outputs

DAYS = pd.to_datetime(["1970-01-02", "1970-02-01", "1971-01-01"])
NUMBERS = [1.0, 31.0, 365.0]
DATES = {
    "datetime64": DAYS,
    "time zone": DAYS.tz_localize("UTC"),
    "text": DAYS.strftime("%Y-%m-%d"),
    "objects": pd.Series(DAYS.to_pydatetime(), dtype=object),
    "numbers": [19700102, 19700201, 19710101],
}


@pytest.mark.filterwarnings("ignore:Input column 'day' contains dates written as numbers")
@pytest.mark.parametrize("kind", DATES)
def test_dates_in_inputs_are_days_since_1970(kind):
    X = pd.DataFrame({"day": DATES[kind], "x": [1.0, 2.0, 3.0]})
    assert_array_equal(validate_inputs(X, "EMGPR")[:, 0], NUMBERS)
    assert_array_equal(validate_inputs(X[1:], "EMGPR")[:, 0], NUMBERS[1:])  # the same origin
    assert date_columns(X) == (0,)
    table = read_training_table(X, [1.0, 2.0, 4.0], estimator="EMGPR")
    assert table.dates == (0,)
    assert_array_equal(table.x[:, 0], NUMBERS)


def test_dates_written_as_numbers_are_told_and_never_used_as_numbers():
    X = np.array([[20240131.0, 1.0], [20240229.0, 2.0]])
    with pytest.warns(UserWarning, match=r"'day' contains dates .*\(20240131 to 20240229\).*days"):
        days = days_from_numbers(X, ["day", "x"])
    assert_array_equal(np.diff(days, axis=0), [[29, 1]])
    assert X[0, 0] == 20240131
    X = np.vstack([np.tile(X, (10, 1)), [[20240230, 1]]])
    with pytest.raises(ValueError, match=r"but 20240230 in row 20 .* is not a date. Correct it"):
        days_from_numbers(X, ["day", "x"])


@pytest.mark.parametrize(
    "numbers",
    [
        [20_301_231.0, 20_455_555.0, 20_512_345.0],  # eastings with the number of their zone
        [20240131.5, 20240229.5],
        [2024.0, 2025.0],
        [18991231.0, 20240131.0],
        [np.nan, np.nan],
    ],
)
def test_other_numbers_are_not_taken_for_dates(numbers):
    assert date_number_columns(np.array(numbers)[:, None]) == []


def test_dates_as_outputs_are_refused():
    with pytest.raises(ValueError, match=r"Output 'day' contains dates .*such as 20240131"):
        check_no_date_numbers(np.array([[20240131.0], [20240229.0]]), ["day"])
    with pytest.raises(ValueError, match="Y contains datetime64"):
        validate_outputs(pd.DataFrame({"day": DAYS}), 3)
    with pytest.raises(ValueError, match=r"'1970-01-02' in row 0 .*"):
        validate_outputs(pd.DataFrame({"day": DATES["text"]}), 3)


@pytest.mark.parametrize("dtype", [object, "str"])
def test_text_in_outputs_is_read_as_in_files(dtype):
    Y = pd.DataFrame({"Cd": ["<0,5", "0,7", "n.d."]}, dtype=dtype)
    with (
        pytest.warns(UserWarning, match=r"Y: Column 'Cd' has 1 of 3 values below a detection"),
        pytest.warns(
            UserWarning, match=r"Y: Some cells .* missing: 'n.d.' in column 'Cd' \(1 of 3"
        ),
    ):
        values, names, _ = validate_outputs(Y, 3)
    assert_array_equal(values, [[0.25], [0.7], [np.nan]])
    assert names == ("Cd",)
    with pytest.warns(UserWarning, match="observed: Column 'Cd' has 1 of 2 values below"):
        observed = validate_observed(Y[:2], 2, ("Cd", "Zn"), one_dimensional=False)
    assert_array_equal(observed[:, 0], [0.25, 0.7])


def test_a_series_keeps_its_name_and_index():
    column = pd.Series(["1", "2,5"], name="Cd", index=["a", "b"])
    converted = numeric_columns(column, "y", "Encode it.")
    assert converted.tolist() == [1, 2.5]
    assert (converted.name, list(converted.index)) == ("Cd", ["a", "b"])
    array = np.array(["1"])
    assert numeric_columns(array, "y", "Encode it.") is array


def test_the_wrong_cell_is_named_with_its_remedy():
    with pytest.raises(ValueError, match=r"'>9' in row 2 .* to float. It is above a limit"):
        numeric_columns(pd.DataFrame({"Cd": ["1", "<2", ">9"]}), "Y", "Encode it.")


def test_a_code_for_a_missing_value_is_refused_in_inputs():
    table = pd.DataFrame({"east": ["1", " n.a.", "2"]})
    with pytest.raises(ValueError, match=r"'east' of X .*'n.a.' in row 1 .* to float. Encode it."):
        numeric_columns(table, "X", "Encode it.", are_inputs=True)


def test_a_missing_date_is_nan():
    assert_array_equal(to_days(pd.Series([pd.Timestamp("1970-01-01T12"), pd.NaT])), [0.5, np.nan])
