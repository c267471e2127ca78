"""Validation of inputs and outputs, and what a fitted model expects of its inputs."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from emgpr.inputs import InputSpec, is_plain, order_outputs, validate_observed, validate_outputs
from emgpr.inputs.validate import column_names, float_spacing, string_names, validate_inputs

NAMES = ("Cd", "Zn")
X = np.arange(6.0).reshape(3, 2)
FRAME = pd.DataFrame(X, columns=["east", "north"])


def spec(names=("east", "north"), crs=None):
    return InputSpec("EMGPR", names, 2, crs, pd.RangeIndex(3), np.arange(3))


# --- new inputs of a fitted model


def test_new_inputs_are_read_as_numbers():
    assert_array_equal(spec().read(FRAME), X)
    assert_array_equal(spec(None).read(X.tolist()), X)
    assert_array_equal(spec(None).read(FRAME.to_numpy(dtype=np.float32)), X)


def test_inputs_in_degrees_become_points_on_the_sphere_and_are_converted_back():
    pytest.importorskip("pyproj")
    degrees = pd.DataFrame({"lon": [0.0, 90.0], "lat": [0.0, 45.0]})
    sphere = spec(("lon", "lat"), "EPSG:4326")
    points = sphere.read(degrees)
    assert points.shape == (2, 3)
    assert_allclose(np.linalg.norm(points, axis=1), 6371, rtol=1e-3)
    assert_allclose(sphere.to_user(points), degrees, atol=1e-9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (FRAME[["north", "east"]], "must be in the same order"),
        (FRAME[["east"]], "seen at fit time, yet now missing:\n- north"),
        (FRAME.rename(columns={"north": "up"}), "unseen at fit time:\n- up\n"),
        (
            pd.DataFrame(np.ones((3, 8)), columns=list("abcdefgh")),
            "unseen at fit time:\n- a\n- b\n- c\n- d\n- e\n- ...\n",
        ),
    ],
)
def test_other_names_than_at_fit_are_refused(given, message):
    with pytest.raises(ValueError, match=f"(?s)feature names should match.*{message}"):
        spec().read(given)


def test_names_on_one_side_only_give_a_warning():
    with pytest.warns(UserWarning, match="X does not have valid feature names, but EMGPR was"):
        spec().read(X)
    with pytest.warns(UserWarning, match="X has feature names, but EMGPR was fitted without"):
        spec(None).read(FRAME)


def test_another_number_of_columns_is_refused():
    with pytest.raises(ValueError, match="X has 1 features, but EMGPR is expecting 2 features"):
        spec(None).read(X[:, :1])


def test_inputs_are_named_if_the_training_inputs_were():
    pd.testing.assert_frame_equal(spec().named(X), FRAME)
    assert spec(None).named(X) is X
    assert spec(None).names == ["0", "1"]


def test_names_that_are_partly_strings_are_refused():
    with pytest.raises(TypeError, match=r"\['int', 'str'\].*X.columns.astype\(str\)"):
        string_names(FRAME.set_axis(["east", 1], axis=1))
    assert string_names(FRAME.set_axis([0, 1], axis=1)) is None
    assert string_names(FRAME) == ("east", "north")


# --- inputs and outputs


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "X is None; pass one row for each site"),
        (X[:0], r"0 sample\(s\) \(shape=\(0, 2\)\) while a minimum of 1 is required by EMGPR"),
        (np.where(X == 3, np.nan, X), "X contains NaN: input column '1', row 1 .*Drop"),
        (FRAME.replace(4.0, np.inf), "X contains infinity.*'east', row 2"),
        (FRAME.assign(east="near"), r"Column 'east' of X .*'near' in row 0 .* .*Encode"),
        (X + 1j, "Complex data not supported: X is complex128"),
        (X.astype("M8[D]"), r"X contains datetime64.* values, not numbers. Pass dates as a column"),
        (pd.date_range("2024-01-01", periods=3), r"X contains datetime64.*X = index.to_frame\(\)"),
        (X.astype("m8[D]"), "X contains timedelta64.* values, not numbers"),
        (FRAME[[]], r"X has \d+ rows but no columns; .*pass X.index.to_frame\(\)"),
        (X * 1e200, r"Input column '0' reaches 4e\+200.*too large.*Choose another unit"),
        (X[:, 0], "Expected 2D array"),
    ],
)
def test_inputs_that_are_not_numbers_are_refused(given, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        validate_inputs(given, "EMGPR")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (3.0, "y is a single number, 3; pass one row for each site"),
        (X[:2], "X has 3 rows and Y has 2; .*Write NaN"),
        (X[:, :0], "Y has no columns; pass at least one output"),
        (FRAME[[]], "Y has no columns; pass at least one output"),
        (np.where(X == 3, -np.inf, X), "y contains infinity.*output '1', row 1 .*Write NaN"),
        (FRAME.set_axis(["Cd", "Cd"], axis=1), r"Y has several columns named \['Cd'\]"),
        (
            np.array([["1", "2"], ["<3", "4"], ["5", "6"]]),
            "Y contains text.*'<3' in row 1, column 0",
        ),
        (X * 1e-200, "Output '0' reaches .*too small"),
    ],
)
def test_outputs_that_are_not_numbers_are_refused(given, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        validate_outputs(given, 3)


def test_outputs_keep_missing_readings_names_and_dimension():
    gaps = np.where(X == 3, np.nan, X)
    table, names, one_dimensional = validate_outputs(gaps, 3)
    assert_array_equal(table, gaps)
    assert (names, one_dimensional) == (("0", "1"), False)
    table, names, one_dimensional = validate_outputs(FRAME["north"], 3)
    assert_array_equal(table, X[:, 1:])
    assert (names, one_dimensional) == (("north",), True)


def test_observed_outputs_may_be_some_of_the_outputs_by_name():
    some = validate_observed(pd.DataFrame({"Zn": [1.0, np.nan]}), 2, NAMES, False)
    assert_array_equal(some, [[np.nan, 1.0], [np.nan, np.nan]])
    vector = validate_observed([1.0, 2.0], 2, ("Cd",), True)
    assert_array_equal(vector, [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("observed", "message"),
    [
        (
            pd.DataFrame({"Pb": [1.0, 2.0]}),
            r"columns \['Pb'\].*expected columns from \['Cd', 'Zn'\]",
        ),
        (np.ones((2, 1)), r"observed has shape \(2, 1\); expected \(2, 2\).*NaN where unknown"),
        (np.ones(2), r"observed has shape \(2,\)"),
        (pd.DataFrame({"Zn": ["1", "low"]}), r"'Zn' of observed .*'low' in row 1 .*"),
        (pd.DataFrame({"Zn": [1.0, np.inf]}), "observed contains infinity.*'Zn', row 1"),
    ],
)
def test_observed_outputs_that_do_not_fit_the_model_are_refused(observed, message):
    with pytest.raises(ValueError, match=message):
        validate_observed(observed, 2, NAMES, False)


def test_outputs_are_ordered_as_at_fit_if_they_are_the_same():
    frame = pd.DataFrame([[1.0, 2.0]], columns=["Zn", "Cd"])
    assert list(order_outputs(frame, NAMES)) == ["Cd", "Zn"]
    other = frame.assign(Pb=3.0)
    assert order_outputs(other, NAMES) is other
    assert order_outputs(X, NAMES) is X


def test_columns_without_names_are_numbered():
    assert column_names(X, 2) == ("0", "1")
    assert column_names(FRAME.set_axis([3, 4], axis=1), 2) == ("3", "4")
    assert column_names(pd.Series([1.0]), 1) == ("0",)


def test_the_spacing_of_numbers_is_that_of_their_type():
    frame = FRAME.astype({"east": "float32", "north": "float16"}).assign(depth=1)
    assert_allclose(float_spacing(frame, 3), [2.0**-23, 2.0**-10, 2.0**-52])
    assert_allclose(float_spacing(frame["east"], 1), [2.0**-23])
    assert_allclose(float_spacing(X.tolist(), 2), [2.0**-52] * 2)
    assert_allclose(float_spacing(FRAME.astype("Float32"), 2), [2.0**-23] * 2)


def test_plain_tables_need_no_conversion():
    assert is_plain(X)
    assert is_plain(FRAME.assign(forest=True))
    for table in (X.astype(object), np.ma.array(X), FRAME.astype("Float64"), X.tolist()):
        assert not is_plain(table)
