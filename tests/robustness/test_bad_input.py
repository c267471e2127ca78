"""Data that cannot be used raise errors that name the column, the row and the remedy."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR, IndependentGP
from tests.simulated import smooth_table

RNG = np.random.default_rng(13)
X, Y = smooth_table(RNG, N=12)
SITES = pd.DataFrame(X, columns=["east", "north"])
METALS = pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"])


def with_value(frame, column, row, value):
    changed = frame.astype(object) if isinstance(value, str) else frame.copy()
    changed.loc[row, column] = value
    return changed


def with_object(array, value):
    changed = array.astype(object)
    changed[3, 1] = value
    return changed


@pytest.fixture(scope="module")
def model():
    return IndependentGP(RBF(0.4, "fixed"), random_state=0).fit(SITES, METALS)


FIT_ERRORS = {
    "NaN in X": (
        with_value(SITES, "north", 7, np.nan),
        METALS,
        "NaN: input column 'north', row 7.*Drop",
    ),
    "infinity in X": (
        with_value(SITES, "east", 2, np.inf),
        METALS,
        "infinity.*'east', row 2.*Drop",
    ),
    "NaN in an array": (np.where(np.isin(X, X[4, 1]), np.nan, X), Y, "input column '1', row 4"),
    "infinity in Y": (
        SITES,
        with_value(METALS, "Ni", 5, -np.inf),
        "infinity.*'Ni', row 5.*Write NaN",
    ),
    "an output never measured": (
        SITES,
        METALS.assign(Ni=np.nan),
        "'Ni' was never measured.*12.*Leave",
    ),
    "nothing ever measured": (SITES, METALS * np.nan, "'Cd' was never measured"),
    "fewer rows of Y": (SITES, METALS[:9], "X has 12 rows and Y has 9.*Write NaN"),
    "text in X": (
        with_value(SITES, "north", 3, "3 km"),
        METALS,
        "'north' of X.*'3 km' in row 3 .*without its unit",
    ),
    "text in Y": (
        SITES,
        with_value(METALS, "Zn", 6, "low"),
        "'Zn' of Y.*'low' in row 6 .*write NaN",
    ),
    "durations in X": (
        SITES.assign(day=pd.to_timedelta(range(12), unit="D")),
        METALS,
        "'day' of X.*timedelta",
    ),
    "categories in X": (
        SITES.assign(rock=pd.Categorical(["chalk"] * 12)),
        METALS,
        "'rock' of X.*category",
    ),
    "no rows": (SITES[:0], METALS[:0], "0 sample.*minimum of 1.*filter or the file"),
    "no columns in Y": (SITES, METALS[[]], "[Nn]o columns|0 feature"),
    "no y": (SITES, None, "y is None.*one column for each output"),
    "two columns of one name in X": (SITES.set_axis(["east"] * 2, axis=1), METALS, "east"),
    "two columns of one name in Y": (SITES, METALS.set_axis(["Cd", "Ni", "Cd"], axis=1), "Cd"),
    "columns 1 and '1' in Y": (
        SITES,
        METALS.set_axis(pd.Index(["Cd", 1, "1"], dtype=object), axis=1),
        r"Y has several columns named \['1'\]; rename",
    ),
    "columns 1 and '1' in X": (
        SITES.set_axis(pd.Index([1, "1"], dtype=object), axis=1),
        METALS,
        r"X has several columns named \['1'\]; rename",
    ),
    "three axes in Y": (X, Y[:, :, None], "dim"),
    "one axis in X": (X[:, 0], Y, "2D array"),
}


@pytest.mark.parametrize("case", FIT_ERRORS)
def test_fit_raises_an_error_that_names_the_fault(case):
    X, Y, message = FIT_ERRORS[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        EMGPR(random_state=0).fit(X, Y)


PREDICT_ERRORS = {
    "columns in another order": (SITES[["north", "east"]], "feature names.*same order"),
    "a column missing": (SITES[["east"]], "missing.*north"),
    "a column unknown": (SITES.rename(columns={"north": "up"}), "unseen.*up.*missing.*north"),
    "NaN": (with_value(SITES, "north", 1, np.nan), "'north', row 1"),
    "text": (with_value(SITES, "east", 0, "?"), "'east' of X"),
    "no rows": (SITES[:0], "0 sample.*minimum of 1"),
}


@pytest.mark.parametrize("case", PREDICT_ERRORS)
def test_predict_raises_an_error_that_names_the_fault(model, case):
    sites, message = PREDICT_ERRORS[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        model.predict(sites)


def test_predict_raises_an_error_for_another_number_of_columns():
    model = IndependentGP(RBF(0.4, "fixed"), random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"1 features.*expecting 2"):
        model.predict(X[:, :1])


OBSERVED_ERRORS = {
    "an unknown output": (
        pd.DataFrame({"Pb": [1.0, 2.0]}),
        r"\['Pb'\].*columns from \['Cd', 'Ni', 'Zn'\]",
    ),
    "too few columns": (np.ones((2, 2)), r"\(2, 2\); expected \(2, 3\).*NaN where unknown"),
    "a vector": (np.ones(2), r"\(2,\); expected \(2, 3\)"),
    "too many rows": (pd.DataFrame({"Cd": [1.0, 2.0, 3.0]}), "observed.*3"),
    "text": (pd.DataFrame({"Ni": ["1", "low"]}), "'Ni'.*'low' in row 1 "),
    "infinity": (pd.DataFrame({"Zn": [1.0, np.inf]}), "'Zn', row 1"),
    "an output twice": (pd.DataFrame([[1.0, 2.0]] * 2, columns=["Cd", "Cd"]), "observed.*Cd"),
}


@pytest.mark.parametrize("case", OBSERVED_ERRORS)
def test_observed_outputs_raise_an_error_that_names_the_fault(model, case):
    observed, message = OBSERVED_ERRORS[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        model.predict(SITES[:2], observed=observed)


def test_a_log_of_values_that_are_not_positive_raises_an_error_with_output_and_rows():
    positive = METALS.abs() + 1
    model = IndependentGP(RBF(0.4, "fixed"), output_transform="log", random_state=0)
    bad = with_value(with_value(positive, "Ni", 4, 0.0), "Ni", 9, -1.0)
    with pytest.raises(ValueError, match=r"'Ni' has 2.*rows 4, 9 .*detection limit"):
        model.fit(SITES, bad)
    model.fit(SITES, positive)
    with pytest.raises(ValueError, match=r"'Zn' has 1.*row 1 "):
        model.predict(SITES[:2], observed=pd.DataFrame({"Zn": [1.0, -3.0]}))


def test_a_kernel_without_signal_raises_an_error():
    with pytest.raises(ValueError, match=r"only noise.*such as RBF"):
        EMGPR(WhiteKernel()).fit(X, Y)


ARRAY_ERRORS = {
    "no X": (None, Y, "X is None; pass one row for each site"),
    "a mask in X": (np.ma.masked_less(X, 0.2), Y, "X contains NaN: input column '0', row .*Drop"),
    "NA among objects in X": (
        SITES.astype(object).mask(X > 0.9, pd.NA),
        METALS,
        "X contains NaN: input column 'east'",
    ),
    "complex X": (X + 1j, Y, "Complex data not supported: X is complex128"),
    "complex Y": (X, Y + 1j, "Complex data not supported: Y is complex128"),
    "dates in an array": (
        X,
        np.full((12, 1), "2024-01-01", "M8[D]"),
        r"Y contains datetime64\[D\] values, not numbers.*must be numbers",
    ),
    "a date among numbers in X": (
        with_object(X, np.datetime64("2024-01-31")),
        Y,
        r"X contains the date .*2024-01-31.* in row 3, column 1 .*, not a number.*pd.to_datetime",
    ),
    "NaT among numbers in Y": (
        X,
        with_object(Y, np.datetime64("NaT")),
        r"Y contains the date .*NaT.* in row 3, column 1 .*, not a number.*pd.to_datetime",
    ),
    "a date in a list of lists": (
        with_object(X, np.datetime64("2024-01-31")).tolist(),
        Y,
        "X contains the date .*2024-01-31",
    ),
    "a list of dates": ([[np.datetime64("2024-01-31")]] * 12, Y, "X contains datetime64"),
    "a duration among numbers in Y": (
        X,
        with_object(Y[:, :2], np.timedelta64(3, "D")),
        "Y contains the duration .*timedelta64.* pd.to_timedelta",
    ),
    "a Timestamp among numbers in Y": (X, with_object(Y, pd.Timestamp("2024")), "Y contains the"),
    "durations in an array": (np.ones((12, 2), "m8[s]"), Y, "X contains timedelta64.*Encode"),
    "text in an array": (X, np.where(Y > 500, "<0.5", Y.astype(str)), "Y contains text.*'<0.5'"),
    "a Y of 1e200": (
        X,
        Y * [1, 1e200, 1],
        r"Output '1' reaches .*e\+202, whose square is too large.*Choose another unit",
    ),
    "a Y of 1e-200": (X, Y * [1, 1, 1e-200], "Output '2' reaches .*e-200.*too small.*another unit"),
    "an X of 1e200": (X * [1e200, 1], Y, r"Input column '0' reaches .*e\+199.*too large"),
    "an X of 1e-200": (X * [1, 1e-200], Y, "Input column '1' reaches .*too small"),
    "a number for X": (3.0, Y, "Expected 2D array, got scalar"),
    "a number for Y": (X, 3.0, "y is a single number, 3; pass one row for each site"),
    "more rows of Y": (X[:9], Y, "X has 9 rows and Y has 12.*Write NaN"),
    "dicts in X": ([{"east": 1.0}] * 12, Y, "dict|number"),
    "minus infinity in X": (np.where(X > 0.9, -np.inf, X), Y, "X contains infinity.*Drop"),
}


@pytest.mark.parametrize("make", [EMGPR, EMGPR.paper])
@pytest.mark.parametrize("case", ARRAY_ERRORS)
def test_fit_to_arrays_raises_an_error_that_names_the_fault(case, make):
    X, Y, message = ARRAY_ERRORS[case]
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
        make(random_state=0).fit(X, Y)


def test_the_remedies_for_dates_and_durations_work():
    for column, expected in [
        (
            np.array([np.datetime64("2000-01-03"), np.datetime64("NaT")], dtype=object),
            [2.0, np.nan],
        ),
        (np.array([np.timedelta64(36, "h"), np.timedelta64(1, "D")], dtype=object), [1.5, 1.0]),
    ]:
        with pytest.raises(ValueError, match="days first: ") as error:
            EMGPR().fit(X[:2], column)
        remedy = str(error.value).split("days first: ")[1].rstrip(".")
        np.testing.assert_array_equal(eval(remedy, {"pd": pd, "column": column}), expected)


def test_the_error_for_a_sparse_matrix_says_how_to_convert_it():
    with pytest.raises(TypeError, match=r"Sparse data .*toarray"):
        EMGPR().fit(csr_matrix(X), Y)


def test_the_error_for_text_in_a_polars_frame_names_its_column():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"east": ["near"] * 12, "north": X[:, 1]})
    with pytest.raises(ValueError, match=r"Column 'east' of X.*could not convert 'near' in row 0 "):
        EMGPR().fit(frame, Y)


@pytest.mark.parametrize(
    ("locations", "message"),
    [
        (np.empty((0, 2)), "0 sample.*minimum of 1.*filter or the file"),
        ([[1e300, 0.0]], r"Input column '0' reaches 1e\+300"),
        ([[np.nan, 0.0]], "X contains NaN: input column"),
        (None, "X is None"),
        (np.ma.array([[1.0, 2.0]], mask=[[True, False]]), "X contains NaN: input column"),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_predict_at_arrays_raises_an_error_that_names_the_fault(model, locations, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        model.predict(locations)


def test_a_fit_that_raises_an_error_does_not_modify_its_arguments():
    X, Y = np.where(SITES > 0.9, np.nan, SITES), METALS.to_numpy(copy=True)
    before = X.copy(), Y.copy()
    with pytest.raises(ValueError, match="contains NaN"):
        EMGPR().fit(X, Y)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Y, before[1])
