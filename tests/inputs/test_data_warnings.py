"""Warnings about tables that can be used, but may not contain what their users think."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, ICM
from emgpr.datasets import load_amsua, load_jura
from emgpr.inputs import read_training_table
from emgpr.inputs.data_warnings import input_warnings, output_warnings
from tests.simulated import paper, smooth_table

RNG = np.random.default_rng(29)
X, Y = smooth_table(RNG, N=18)
LOCATIONS = RNG.uniform(size=(4, 2))
SITES = pd.DataFrame({"lon": 10 * X[:, 0], "lat": 10 * X[:, 1]})


def fit(X, Y, estimator=paper, **params):
    """A model that is hardly optimised, and the warnings of its fit."""
    params = {"kernel": RBF(0.4, "fixed"), "max_iter": 2, "random_state": 0} | params
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator(**params).fit(X, Y)
    assert {warning.filename for warning in caught} <= {__file__}  # it points at the user's line
    return model, [str(w.message) for w in caught if "converge" not in str(w.message)]


def first(column, n=1, table=Y):
    """Mark the first values of a column."""
    where = np.zeros(table.shape, bool)
    where[:n, column] = True
    return where


def with_second_column(values):
    """Repeat these values in a second column."""
    return np.column_stack([X[:, 0], np.resize(values, 18)])


WEST = np.where(X[:, 0] < 0.5, -180 + X[:, 0], 178 + X[:, 0])
SUSPICIOUS = {
    "-9999 in many readings": (
        X,
        np.where(first(1, 4), -9999, Y),
        ["Output '1' contains -9999 (4 of 18 values), far from the others (* to *): * Write NaN*"],
    ),
    "many readings at a detection limit": (
        X,
        np.maximum(Y[:, :1] - Y[:, 0].min(), np.sort(Y[:, 0] - Y[:, 0].min())[7]) + 0.1,
        ["Output '0' has its smallest value, *, in 8 of 18 readings. If it stands for values*"],
    ),
    "zeros": (
        X,
        np.maximum(Y[:, :1] - np.sort(Y[:, 0])[8], 0.0),
        ["Output '0' has its smallest value, 0, in 9 of 18 readings. If these are not true*"],
    ),
    "soil types": (
        X,
        with_second_column([1.0, 2.0, 3.0]),
        ["Output '1' has only the values 1, 2, 3 in 18 readings. If these are codes of classes*"],
    ),
    "-999 in two readings": (X, np.where(first(0, 2), -999, Y), ["Output '0' contains -999 (2*"]),
    "-99 once": (X, np.where(first(2), -99, Y), ["Output '2' contains -99 (1 of 18 values)*"]),
    "-32768 once": (X, np.where(first(0), -32768, Y), ["Output '0' contains -32768 (1*"]),
    "1e20, as numerical models write": (
        X,
        np.where(first(0, 3), 1e20, Y),
        ["Output '0' contains 1e+20 (3*"],
    ),
    "netCDF's fill value in 32 bits": (
        X,
        np.where(first(0, 3), np.float32(9.96921e36), Y),
        ["Output '0' contains 9.96921e+36 (3 of 18 values)*"],
    ),
    "two codes in one output": (
        X,
        np.where(first(0, 4), np.array([[-999.0], [-9999.0]] * 9), Y),
        ["Output '0' contains -999 (2*", "Output '0' contains -9999 (2*"],
    ),
    "-99 among percentages": (
        X,
        np.where(first(0, 3, X), -99, 100 * X),
        ["Output '0' contains -99 (3 of 18*"],
    ),
    "-999 among heights": (
        X,
        np.where(first(0, 3, X), -999, 3000 * X),
        ["Output '0' contains -999*"],
    ),
    "9999 beside one value": (
        X,
        with_second_column([1.0, 9999.0]),
        ["Output '1' contains 9999 (9 of*"],
    ),
    "9999 in an input": (
        np.where(first(1, 2, X), 9999, X),
        Y,
        ["Input column '1' contains 9999 (2 of 18 values)*Drop these rows, or insert the values."],
    ),
    "codes in frames": (
        SITES.set_axis(["x", "y"], axis=1).assign(y=np.r_[-999.0, SITES["lat"][1:]]),
        pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"]).replace(Y[0, 2], -999),
        ["Input column 'y' contains -999 (1*", "Output 'Zn' contains -999 (1 of 18 values)*"],
    ),
    "rows without a reading": (
        X,
        np.where(np.isin(np.arange(18), [3, 7, 8])[:, None], np.nan, Y),
        ["Nothing was measured in 3 of 18 rows, which are ignored: rows 3, 7, 8 (*"],
    ),
    "a constant output": (
        X,
        np.column_stack([Y[:, 0], np.full(18, 7.3)]),
        ["Output '1' has one value only (18 readings of 7.3), which is predicted everywhere*"],
    ),
    "an output that is constant up to rounding": (
        X,
        np.column_stack([Y[:, 0], np.where(X[:, 0] < 0.5, 0.3, 0.1 + 0.2)]),
        ["*'1' spans 5.6e-17*digits were lost*", "Output '1' has one value only (18*"],
    ),
    "several constant outputs": (
        X,
        np.column_stack([np.full(18, 1.0), Y[:, 0], np.full(18, -2.0)]),
        ["Outputs '0', '2' have one value only (18 readings of 1, 18 readings of -2)*"],
    ),
    "one site": (X[:1], Y[:1], ["Outputs '0', '1', '2' have one value only (1 reading of*"]),
    "an output measured once": (
        X,
        np.column_stack([Y[:, 0], np.r_[5.0, np.full(17, np.nan)]]),
        ["Output '1' has one value only (1 reading of 5)*"],
    ),
    "an output measured rarely": (
        X,
        np.column_stack([Y[:, 0], np.r_[Y[:6, 1], np.full(12, np.nan)]]),
        ["Output '1' was measured only 6 times, others up to 18*"],
    ),
    "inputs with more digits than 64 bits hold": (
        X + np.array([1e13, 0]),
        Y,
        ["Input column '0' spans * around 1e+13, where its floating-point numbers are 0.002 a*"],
    ),
    "outputs with more digits than 64 bits hold": (
        X,
        Y + np.array([0, 0, 1e11]),
        ["Output '2' spans * around 1e+11*"],
    ),
    "northings in 32 bits": (
        (30 * X + [0, 5e6]).astype(np.float32),
        Y,
        ["Input column '1' spans 2* around 5e+06, where its floating-point numbers are 0.6 apart*"],
    ),
    "16 bits": (
        X.astype(np.float16),
        Y,
        ["Input column '0' spans *numbers are 0.0* apart*", "Input column '1' spans *"],
    ),
    "unnamed longitudes across the date line": (
        np.column_stack([WEST, 50 + X[:, 1]]),
        Y,
        ["Input column '0' contains longitudes from -179.* to 178.*emgpr.on_sphere(longitude, l*"],
    ),
    "named longitudes across the date line": (
        SITES.assign(lon=np.where(WEST < 0, WEST, WEST - 10)),
        Y,
        ["Input column 'lon' contains longitudes*are treated as 34* degrees apart*"],
    ),
    "longitudes across Greenwich, from 0 to 360": (
        SITES.assign(lon=np.where(X[:, 0] < 0.5, 2 * X[:, 0], 357 + X[:, 0])),
        Y,
        ["Input column 'lon' contains longitudes from 0* to 357.*of 0)*"],
    ),
    "longitudes of one continent as coordinates of a plane": (
        SITES.assign(lon=-100 + 60 * X[:, 0]),
        Y,
        ["Columns 'lon' and 'lat' seem to be longitude and latitude*crs='EPSG:4326'*"],
    ),
    "longitudes all the way round": (
        SITES.assign(lon=np.linspace(-179, 179, 18)),
        Y,
        ["Input column 'lon' contains longitudes from -179 to 179*"],
    ),
    "readings of a site in several rows": (
        np.repeat(X, 2, axis=0),
        np.where(
            np.tile(np.eye(2, dtype=bool), (len(X), 1)), np.repeat(Y[:, :2], 2, axis=0), np.nan
        ),
        ["36 of 36 rows have the same location as another row*in one row, for example*groupby*"],
    ),
}


def matches(text, pattern):
    """Tell whether a text matches a pattern in which stars stand for anything."""
    expression = ".*".join(re.escape(part) for part in pattern.split("*"))
    return re.fullmatch(expression, text, re.DOTALL) is not None


@pytest.mark.parametrize("case", SUSPICIOUS)
def test_suspicious_data_are_warned_of_once(case):
    X, Y, expected = SUSPICIOUS[case]
    found = read_training_table(X, Y, estimator="EMGPR").warnings
    assert len(found) == len(expected), found
    for text, pattern in zip(found, expected, strict=True):
        assert matches(text, pattern), text


def test_warnings_tell_their_kind_and_code():
    X, Y, _ = SUSPICIOUS["two codes in one output"]
    found = read_training_table(X, Y, estimator="EMGPR").warnings
    assert [(one.kind, one.code) for one in found] == [("code", -999.0), ("code", -9999.0)]
    for case in ("named longitudes across the date line", "longitudes of one continent"):
        X, Y, _ = next(values for name, values in SUSPICIOUS.items() if name.startswith(case))
        (one,) = read_training_table(X, Y, estimator="EMGPR").warnings
        assert (one.kind, one.code) == ("degrees", None)


JURA, METALS = load_jura(), ["Cd", "Cu", "Pb", "Co", "Cr", "Ni", "Zn"]
USUAL = {
    "all metals of Jura": (JURA.train[["Xloc", "Yloc"]], JURA.train[METALS]),
    "codes inside the range": (X, np.where(first(0, 3), -99, 200 * Y)),
    "readings cut at 999": (X, np.minimum(900 + 60 * Y[:, :1], 999)),
    "99 among percentages": (X, np.round(50 + 49 * np.sin(Y[:, :1]))),
    "northings in metres": (1e3 * X + [4e5, 5e6], Y),
    "32 bits": (X.astype(np.float32), Y.astype(np.float32)),
    "two clusters of an experiment": (
        np.column_stack([np.where(X[:, 0] < 0.5, 5.0, 350.0) + X[:, 1], X[:, 1]]),
        Y,
    ),
    "a name that begins with long": (pd.DataFrame({"longest": 300 * X[:, 0], "b": X[:, 1]}), Y),
    "a grid of longitudes from -99": (with_second_column(np.arange(-99.0, -95.0)), Y),
    "whole pressures from 999": (X, with_second_column(np.arange(999.0, 1004.0))),
    "years of nines": (X, with_second_column([9997.0, 9998.0, 9999.0])),
    "two pressures": (X, with_second_column([999.0, 1000.0])),
    "many counts, two of them 999": (
        X,
        np.column_stack([Y[:, 0], np.r_[np.linspace(0, 800, 16).round(), 999, 999]]),
    ),
    "rounded readings": (X, np.round(2 * Y[:, :1] / Y[:, 0].std()) / 2 + 0.25),
    "ranks": (X, with_second_column(np.arange(1.0, 7.0))),
    "whole numbers": ((100 * X).astype(int), np.round(100 * Y)),
    "replicates, some without an output": (
        np.repeat(X, 2, axis=0),
        np.where(first(1, 9, np.zeros((36, 2))), np.nan, np.repeat(Y[:, :2], 2, axis=0)),
    ),
    "a few sites in two rows": (
        np.concatenate([X, X[:2]]),
        np.concatenate([np.where(first(1, 2, Y), np.nan, Y), np.where([1, 0, 1], np.nan, Y[:2])]),
    ),
    "truth values": (X, np.column_stack([X[:, 0] > 0.5, X[:, 1] > 0.4])),
}


@pytest.mark.parametrize("case", USUAL)
def test_usual_data_are_not_warned_of(case):
    assert read_training_table(*USUAL[case], estimator="EMGPR").warnings == ()


def test_the_swath_of_a_sounder_is_not_warned_of():
    swath = load_amsua()
    X, Y = (table.to_numpy() for table in (swath.X, swath.Y))
    assert list(input_warnings(X, list(swath.X), np.full(2, 2.0**-23), "EPSG:4326")) == []
    assert list(output_warnings(Y, list(swath.Y), np.full(14, 2.0**-23))) == []


@pytest.mark.parametrize("estimator", [EMGPR, ICM])
def test_a_constant_output_is_warned_of_once_by_fit(estimator):
    """Its search, which may end at a bound or not converge, is not warned of in addition."""
    both = np.column_stack([Y[:, 0], np.full(18, 7.3)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator(kernel=RBF(), random_state=0).fit(X, both)
    about_constant = [str(w.message) for w in caught if "'1'" in str(w.message)]
    assert len(about_constant) == 1, about_constant
    assert about_constant[0].startswith("Output '1' has one value only")


def test_rows_without_readings_are_counted_and_change_nothing():
    empty = np.insert(Y, [2, 9], np.nan, axis=0)
    model, _ = fit(np.insert(X, [2, 9], X[:2], axis=0), empty)
    plain, _ = fit(X, Y)
    assert (model.n_rows_ignored_, plain.n_rows_ignored_) == (2, 0)
    assert_array_equal(model.predict(LOCATIONS), plain.predict(LOCATIONS))
    assert 2 not in np.concatenate(model.batches_)


CONSTANT_PARAMS = {"output_transform": None, "transfer": "full", "max_iter": 100}


@pytest.fixture(scope="module")
def without_constant():
    return fit(X, Y[:, 0], EMGPR, **CONSTANT_PARAMS)[0]


@pytest.mark.parametrize("constant", [7.3, 0.0, 1e150])
def test_a_constant_is_predicted_exactly_and_does_not_change_others(constant, without_constant):
    model, _ = fit(X, np.column_stack([Y[:, 0], np.full(18, constant)]), EMGPR, **CONSTANT_PARAMS)
    locations = np.vstack([LOCATIONS, [[50.0, -50.0]]])
    mean, std = model.predict(locations, return_std=True)
    assert_array_equal(mean[:, 1], constant)
    assert np.all(std > 0)
    # The optimisation ends within a tolerance that is relative to the number of readings.
    assert np.all(np.abs(mean[:, 0] - without_constant.predict(locations)) < 1e-2 * std[:, 0])


def test_with_a_prior_mean_of_0_a_constant_is_a_signal_like_any_other():
    both = np.column_stack([Y[:, 0], np.full(18, 7.3)])
    model, (message,) = fit(X, both, normalize_y=False)
    assert matches(message, "Output '1' has one value only (18 readings of 7.3): the data do not*")
    assert_allclose(model.predict([[50.0, -50.0]])[0, 1], 0.0, atol=1e-9)


def test_a_code_among_observed_outputs_is_warned_of():
    model, _ = fit(X, pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"]))
    with pytest.warns(UserWarning, match=r"observed 'Ni' contains -9999 \(1 of 4 values\)"):
        model.predict(LOCATIONS, observed=pd.DataFrame({"Ni": [500.0, -9999.0, 510.0, 520.0]}))
    model.predict(LOCATIONS, observed=pd.DataFrame({"Ni": Y[:4, 1]}))
