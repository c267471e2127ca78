"""Data that can be used but may not be meant: each is told once, in words that name it."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from simulated import paper, smooth_table
from sklearn.gaussian_process.kernels import RBF

from emgpr import EMGPR, ICM, SLFM, on_sphere
from emgpr.datasets import load_amsua, load_jura
from emgpr.estimators.doubts import about_inputs, about_outputs

RNG = np.random.default_rng(29)
X, Y = smooth_table(RNG, N=18)
X_NEW = RNG.uniform(size=(4, 2))
SITES = pd.DataFrame({"lon": 10 * X[:, 0], "lat": 10 * X[:, 1]})
SOME = RNG.uniform(size=Y.shape) < 0.2
SOME[0] = False


def fitted(X, Y, Estimator=paper, **settings):
    """A model that learns little but passes the door, and what it was told there."""
    settings = {"kernel": RBF(0.4, "fixed"), "max_iter": 2, "random_state": 0} | settings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = Estimator(**settings).fit(X, Y)
    assert {warning.filename for warning in caught} <= {__file__}  # it points at the user's line
    return model, [str(w.message) for w in caught if "converge" not in str(w.message)]


def replaced(where, value, table=Y):
    return np.where(where, value, table)


def first_of(column, n=1, table=Y):
    where = np.zeros(table.shape, bool)
    where[:n, column] = True
    return where


def beside(values):
    """These, again and again, in a second column."""
    return np.column_stack([X[:, 0], np.resize(values, 18)])


WEST = np.where(X[:, 0] < 0.5, -180 + X[:, 0], 178 + X[:, 0])
TOLD = {
    "-9999 in many readings": (
        X,
        replaced(first_of(1, 4), -9999),
        ["Output '1' holds -9999 (4 of 18 values), far from its others (* to *): * Write NaN*"],
    ),
    "-999 in two readings": (X, replaced(first_of(0, 2), -999), ["Output '0' holds -999 (2 of*"]),
    "-99 once": (X, replaced(first_of(2), -99), ["Output '2' holds -99 (1 of 18 values)*"]),
    "-32768 once": (X, replaced(first_of(0), -32768), ["Output '0' holds -32768 (1*"]),
    "1e20, as models write": (X, replaced(first_of(0, 3), 1e20), ["Output '0' holds 1e+20 (3*"]),
    "netCDF's fill value in 32 bits": (
        X,
        replaced(first_of(0, 3), np.float32(9.96921e36)),
        ["Output '0' holds 9.96921e+36 (3 of 18 values)*"],
    ),
    "two codes in one output": (
        X,
        replaced(first_of(0, 4), np.array([[-999.0], [-9999.0]] * 9)),
        ["Output '0' holds -999 (2*", "Output '0' holds -9999 (2*"],
    ),
    "-99 among percentages": (
        X,
        replaced(first_of(0, 3, X), -99, 100 * X),
        ["Output '0' holds -99 (3 of 18*"],
    ),
    "-999 among heights": (
        X,
        replaced(first_of(0, 3, X), -999, 3000 * X),
        ["Output '0' holds -999*"],
    ),
    "9999 beside one value": (X, beside([1.0, 9999.0]), ["Output '1' holds 9999 (9 of*"]),
    "9999 in an input": (
        replaced(first_of(1, 2, X), 9999, X),
        Y,
        ["Input column '1' holds 9999 (2 of 18 values)*Drop those rows, or fill them in."],
    ),
    "a code in a frame": (
        SITES.set_axis(["x", "y"], axis=1).assign(y=np.r_[-999.0, SITES["lat"][1:]]),
        pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"]).replace(Y[0, 2], -999),
        ["Input column 'y' holds -999 (1*", "Output 'Zn' holds -999 (1 of 18 values)*"],
    ),
    "rows without a reading": (
        X,
        replaced(np.isin(np.arange(18), [3, 7, 8])[:, None], np.nan),
        ["Nothing was read in 3 of 18 rows (first [3, 7, 8]); they teach nothing*left out*"],
    ),
    "a constant output": (
        X,
        np.column_stack([Y[:, 0], np.full(18, 7.3)]),
        ["Output '1' has one value only (18 readings of 7.3), which is predicted everywhere*"],
    ),
    "an output constant but for rounding": (
        X,
        np.column_stack([Y[:, 0], np.where(X[:, 0] < 0.5, 0.3, 0.1 + 0.2)]),
        ["*'1' spans 5.6e-17*digits were lost*", "Output '1' has one value only (18*"],
    ),
    "several constant outputs": (
        X,
        np.column_stack([np.full(18, 1.0), Y[:, 0], np.full(18, -2.0)]),
        ["Outputs '0', '2' have one value only (18 readings of 1, 18 readings of -2)*"],
    ),
    "one site": (X[:1], Y[:1], ["Outputs '0', '1', '2' have one value only (1 readings of*"]),
    "an output read once": (
        X,
        np.column_stack([Y[:, 0], np.r_[5.0, np.full(17, np.nan)]]),
        ["Output '1' has one value only (1 readings of 5)*"],
    ),
    "an output read rarely": (
        X,
        np.column_stack([Y[:, 0], np.r_[Y[:6, 1], np.full(12, np.nan)]]),
        ["Output '1' was read 6 times only, others up to 18*"],
    ),
    "X beyond the digits of 64 bits": (
        X + np.array([1e13, 0]),
        Y,
        ["Input column '0' spans * around 1e+13, where its floating-point numbers are 0.002 a*"],
    ),
    "Y beyond the digits of 64 bits": (
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
    "longitudes across the date line": (
        np.column_stack([WEST, 50 + X[:, 1]]),
        Y,
        ["Input column '0' holds longitudes from -179.* to 178.*emgpr.on_sphere(longitude, l*"],
    ),
    "named longitudes across the date line": (
        SITES.assign(lon=np.where(WEST < 0, WEST, WEST - 10)),
        Y,
        ["Input column 'lon' holds longitudes*count as 34* degrees apart*"],
    ),
    "longitudes across Greenwich, from 0 to 360": (
        SITES.assign(lon=np.where(X[:, 0] < 0.5, 2 * X[:, 0], 357 + X[:, 0])),
        Y,
        ["Input column 'lon' holds longitudes from 0* to 357.*of 0)*"],
    ),
    "longitudes of one continent, as if degrees were lengths": (
        SITES.assign(lon=-100 + 60 * X[:, 0]),
        Y,
        ["Columns 'lon' and 'lat' seem to be longitude and latitude*crs='EPSG:4326'*"],
    ),
    "longitudes all the way round": (
        SITES.assign(lon=np.linspace(-179, 179, 18)),
        Y,
        ["Input column 'lon' holds longitudes from -179 to 179*"],
    ),
}


def says(text, words):
    """Whether a text is these words, of which stars stand for any."""
    pattern = ".*".join(re.escape(part) for part in words.split("*"))
    return re.fullmatch(pattern, text, re.DOTALL) is not None


@pytest.mark.parametrize("case", TOLD)
def test_it_is_told_once(case):
    X, Y, expected = TOLD[case]
    _, told = fitted(X, Y)
    assert len(told) == len(expected), told
    for text, words in zip(told, expected, strict=True):
        assert says(text, words), text


def test_the_default_model_says_no_more_of_a_constant_than_the_door():
    """A bound reached, or a search that went on for ever, was the constant too."""
    both = np.column_stack([Y[:, 0], np.full(18, 7.3)])
    for Estimator in (EMGPR, paper, ICM, SLFM):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Estimator(kernel=RBF(), random_state=0).fit(X, both)
        words = [str(warning.message) for warning in caught if "'1'" in str(warning.message)]
        assert len(words) == 1, words
        assert words[0].startswith("Output '1' has one value only")


JURA, METALS = load_jura(), ["Cd", "Cu", "Pb", "Co", "Cr", "Ni", "Zn"]
HONEST = {
    "all metals of Jura": (JURA.train[["Xloc", "Yloc"]], JURA.train[METALS]),
    "codes inside the range": (X, replaced(first_of(0, 3), -99, 200 * Y)),
    "readings cut at 999": (X, np.minimum(900 + 60 * Y[:, :1], 999)),
    "99 among percentages": (X, np.round(50 + 49 * np.sin(Y[:, :1]))),
    "northings in metres": (1e3 * X + [4e5, 5e6], Y),
    "32 bits": (X.astype(np.float32), Y.astype(np.float32)),
    "two clusters of an experiment": (
        np.column_stack([np.where(X[:, 0] < 0.5, 5.0, 350.0) + X[:, 1], X[:, 1]]),
        Y,
    ),
    "a column about something long": (pd.DataFrame({"longest": 300 * X[:, 0], "b": X[:, 1]}), Y),
    "a grid of longitudes from -99": (beside(np.arange(-99.0, -95.0)), Y),
    "whole pressures from 999": (X, beside(np.arange(999.0, 1004.0))),
    "years of nines": (X, beside([9997.0, 9998.0, 9999.0])),
    "two pressures": (X, beside([999.0, 1000.0])),
    "many counts, two of them 999": (
        X,
        np.column_stack([Y[:, 0], np.r_[np.linspace(0, 800, 16).round(), 999, 999]]),
    ),
    "whole numbers": ((100 * X).astype(int), np.round(100 * Y)),
    "truths": (X, np.column_stack([X[:, 0] > 0.5, X[:, 1] > 0.4])),
}


@pytest.mark.parametrize("case", HONEST)
def test_honest_data_are_not_doubted(case):
    assert fitted(*HONEST[case])[1] == []


def test_the_swath_of_a_sounder_is_not_doubted():
    swath = load_amsua()
    X, Y = (table.to_numpy() for table in (swath.X, swath.Y))
    assert list(about_inputs(X, list(swath.X), np.full(2, 2.0**-23), "EPSG:4326")) == []
    assert list(about_outputs(Y, list(swath.Y), np.full(14, 2.0**-23))) == []


def test_rows_without_readings_are_counted_and_change_nothing():
    empty = np.insert(Y, [2, 9], np.nan, axis=0)
    model, _ = fitted(np.insert(X, [2, 9], X[:2], axis=0), empty)
    plain, _ = fitted(X, Y)
    assert (model.n_rows_ignored_, plain.n_rows_ignored_) == (2, 0)
    assert_array_equal(model.predict(X_NEW), plain.predict(X_NEW))
    assert 2 not in np.concatenate(model.batches_)


@pytest.mark.parametrize("constant", [7.3, 0.1, 0.0, -1e6, 1e150])
def test_a_constant_is_predicted_exactly_and_its_neighbour_as_without_it(constant):
    settings = {"Estimator": EMGPR, "transform": None, "transfer": "full", "max_iter": 100}
    both, _ = fitted(X, np.column_stack([Y[:, 0], np.full(18, constant)]), **settings)
    alone, _ = fitted(X, Y[:, 0], **settings)
    places = np.vstack([X_NEW, [[50.0, -50.0]]])
    mean, std = both.predict(places, return_std=True)
    assert_array_equal(mean[:, 1], constant)
    assert np.all(std > 0)
    assert np.all(np.abs(mean[:, 0] - alone.predict(places)) < 1e-3 * std[:, 0])


def test_about_a_mean_of_0_a_constant_is_a_signal_and_no_more_is_promised_of_it():
    far = [[50.0, -50.0]]
    both = np.column_stack([Y[:, 0], np.full(18, 7.3)])
    model, told = fitted(X, both, normalize_y=False)
    (words,) = told
    assert says(words, "Output '1' has one value only (18 readings of 7.3): nothing says how*")
    assert_allclose(model.predict(far)[0, 1], 0.0, atol=1e-9)


def test_a_code_among_what_is_known_at_new_places_is_told():
    model, _ = fitted(X, pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"]))
    with pytest.warns(UserWarning, match=r"observed 'Ni' holds -9999 \(1 of 4 values\)"):
        model.predict(X_NEW, observed=pd.DataFrame({"Ni": [500.0, -9999.0, 510.0, 520.0]}))
    model.predict(X_NEW, observed=pd.DataFrame({"Ni": Y[:4, 1]}))


def test_the_great_circle_is_offered_and_mends_the_date_line():
    """What is predicted beside the line is what is predicted 90 degrees further, where none is."""
    east, lat = 10 * X[:, 0] - 5, 10 * X[:, 1]
    across, elsewhere = ((east + turn + 180) % 360 - 180 for turn in (180.0, 90.0))
    kernel = {"kernel": RBF(300.0, "fixed")}
    mended, told = fitted(on_sphere(across, lat), Y, **kernel)
    plain, _ = fitted(on_sphere(elsewhere, lat), Y, **kernel)
    assert told == []
    there, same = ([[turn, 3.0]] for turn in (180.0, 90.0))
    assert_allclose(
        mended.predict(on_sphere(*np.transpose(there))),
        plain.predict(on_sphere(*np.transpose(same))),
        rtol=1e-9,
    )


def test_points_on_the_sphere_keep_the_index_and_refuse_what_is_no_degree():
    rows = pd.Index(["a", "b"])
    lon, lat = pd.Series([0.0, 90.0], rows), pd.Series([0.0, 0.0], rows)
    frame = on_sphere(lon, lat)
    assert list(frame.columns) == ["x_km", "y_km", "z_km"]
    assert_allclose(frame.loc["b"], [0, 6371.0088, 0], atol=1e-9)
    with pytest.raises(ValueError, match=r"latitude holds 120 \(row 1\); expected degrees"):
        on_sphere([0.0, 50.0], [10.0, 120.0])
    with pytest.raises(ValueError, match=r"shape \(2,\) and latitude \(1,\)"):
        on_sphere([0.0, 50.0], [10.0])
