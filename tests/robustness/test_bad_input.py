"""What cannot be used is refused, and the message says which column, which row, and what to do."""

import numpy as np
import pandas as pd
import pytest
from simulated import smooth_table
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from emgpr import EMGPR, IndependentGP

RNG = np.random.default_rng(13)
X, Y = smooth_table(RNG, N=12)
SITES = pd.DataFrame(X, columns=["east", "north"])
METALS = pd.DataFrame(Y, columns=["Cd", "Ni", "Zn"])


def with_value(frame, column, row, value):
    changed = frame.astype(object) if isinstance(value, str) else frame.copy()
    changed.loc[row, column] = value
    return changed


@pytest.fixture(scope="module")
def model():
    return IndependentGP(RBF(0.4, "fixed"), random_state=0).fit(SITES, METALS)


REFUSED_IN_FIT = {
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
        "'north' of X.*'3 km' .row 3.*Encode",
    ),
    "text in Y": (
        SITES,
        with_value(METALS, "Zn", 6, "<0.5"),
        "'Zn' of Y.*'<0.5' .row 6.*write NaN",
    ),
    "dates in X": (
        SITES.assign(day=pd.date_range("2024-01-01", periods=12)),
        METALS,
        "'day' of X.*datetime",
    ),
    "categories in X": (
        SITES.assign(rock=pd.Categorical(["chalk"] * 12)),
        METALS,
        "'rock' of X.*category",
    ),
    "no rows": (SITES[:0], METALS[:0], "0 sample.*minimum of 1.*filter or the file"),
    "no columns in Y": (SITES, METALS[[]], "[Nn]o columns|0 feature"),
    "no y": (SITES, None, "y.*None.*one column an output"),
    "two columns of one name in X": (SITES.set_axis(["east"] * 2, axis=1), METALS, "east"),
    "two columns of one name in Y": (SITES, METALS.set_axis(["Cd", "Ni", "Cd"], axis=1), "Cd"),
    "three axes in Y": (X, Y[:, :, None], "dim"),
    "one axis in X": (X[:, 0], Y, "2D array"),
}


@pytest.mark.parametrize("case", REFUSED_IN_FIT)
def test_fit_refuses(case):
    X, Y, message = REFUSED_IN_FIT[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        EMGPR(random_state=0).fit(X, Y)


REFUSED_IN_PREDICT = {
    "columns in another order": (SITES[["north", "east"]], "feature names.*same order"),
    "a column missing": (SITES[["east"]], "missing.*north"),
    "a column unknown": (SITES.rename(columns={"north": "up"}), "unseen.*up.*missing.*north"),
    "NaN": (with_value(SITES, "north", 1, np.nan), "'north', row 1"),
    "text": (with_value(SITES, "east", 0, "?"), "'east' of X"),
    "no rows": (SITES[:0], "0 sample.*minimum of 1"),
}


@pytest.mark.parametrize("case", REFUSED_IN_PREDICT)
def test_predict_refuses(model, case):
    sites, message = REFUSED_IN_PREDICT[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        model.predict(sites)


def test_predict_refuses_another_number_of_columns():
    model = IndependentGP(RBF(0.4, "fixed"), random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match=r"1 features.*expecting 2"):
        model.predict(X[:, :1])


REFUSED_AS_OBSERVED = {
    "an unknown output": (
        pd.DataFrame({"Pb": [1.0, 2.0]}),
        r"\['Pb'\].*outputs are \['Cd', 'Ni', 'Zn'\]",
    ),
    "too few columns": (np.ones((2, 2)), r"\(2, 2\); expected \(2, 3\).*NaN where unknown"),
    "a vector": (np.ones(2), r"\(2,\); expected \(2, 3\)"),
    "too many rows": (pd.DataFrame({"Cd": [1.0, 2.0, 3.0]}), "observed.*3"),
    "text": (pd.DataFrame({"Ni": ["1", "low"]}), "'Ni'.*'low' .row 1"),
    "infinity": (pd.DataFrame({"Zn": [1.0, np.inf]}), "'Zn', row 1"),
    "an output twice": (pd.DataFrame([[1.0, 2.0]] * 2, columns=["Cd", "Cd"]), "observed.*Cd"),
}


@pytest.mark.parametrize("case", REFUSED_AS_OBSERVED)
def test_observed_refuses(model, case):
    observed, message = REFUSED_AS_OBSERVED[case]
    with pytest.raises(ValueError, match=f"(?s){message}"):
        model.predict(SITES[:2], observed=observed)


def test_under_a_log_what_is_not_positive_is_refused_by_output_and_row():
    positive = METALS.abs() + 1
    model = IndependentGP(RBF(0.4, "fixed"), transform="log", random_state=0)
    bad = with_value(with_value(positive, "Ni", 4, 0.0), "Ni", 9, -1.0)
    with pytest.raises(ValueError, match=r"'Ni' has 2.*rows \[4, 9\].*detection limit"):
        model.fit(SITES, bad)
    model.fit(SITES, positive)
    with pytest.raises(ValueError, match=r"'Zn' has 1.*rows \[1\]"):
        model.predict(SITES[:2], observed=pd.DataFrame({"Zn": [1.0, -3.0]}))


def test_a_kernel_of_nothing_but_noise_is_refused():
    with pytest.raises(ValueError, match=r"nothing but noise.*such as RBF"):
        EMGPR(WhiteKernel()).fit(X, Y)
