"""A table is summarised as `fit` would see it, with the warnings that `fit` would issue."""

import warnings

import numpy as np
import pandas as pd
import pytest

from emgpr import EMGPR, IndependentGP


@pytest.fixture
def messy():
    X = pd.DataFrame({"lon": [1.0, 1.0, 2.0, 3.0, 4.0, 5.0], "lat": [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]})
    Y = pd.DataFrame({"Cd": [1.0, 1.0, 2.5, -9999.0, np.nan, 2.0], "Zn": [5.0, 5.0, np.nan] * 2})
    Y.loc[4] = np.nan
    return X, Y


def test_rows_places_and_readings_are_counted(messy):
    summary = EMGPR().first_look(*messy)
    assert (summary.n_rows, summary.n_used, summary.n_places) == (6, 5, 4)
    assert (summary.n_shared, summary.n_copies) == (2, 1)
    assert summary.outputs["readings"].to_dict() == {"Cd": 5, "Zn": 3}
    assert summary.outputs["missing"].to_dict() == {"Cd": 1, "Zn": 3}
    kinds = {(warning.kind, warning.code) for warning in summary.warnings}
    assert kinds >= {("code", -9999.0), ("degrees", None)}
    text = str(summary)
    assert "6 rows, 5 used: 1 without a reading; 4 locations, 1 of them with several" in text
    assert "1 rows are identical to another row" in text


def test_dates_are_shown_as_dates(messy):
    days = pd.date_range("2024-01-30", periods=6)
    summary = EMGPR().first_look(messy[0].assign(day=days), messy[1])
    assert summary.dates == ("day",)
    assert "day 2024-01-30 to 2024-02-04" in str(summary)


def test_the_warnings_are_those_of_fit(messy):
    model = EMGPR.paper(max_iter=2, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(*messy)
    summary = model.first_look(*messy)
    assert set(summary.warnings) <= {str(warning.message) for warning in caught}


def test_coordinates_on_the_sphere_are_shown_as_they_were_given(messy):
    pytest.importorskip("pyproj")
    summary = IndependentGP(crs="EPSG:4326").first_look(*messy)
    assert summary.inputs.round(9).to_dict("list") == {"least": [1.0, 0.0], "greatest": [5.0, 2.0]}
    assert {warning.kind for warning in summary.warnings} == {"code", ""}


def test_transforms_that_are_set_are_checked_and_others_guessed(big):
    X, Y = big(30)
    Y = np.abs(Y) + 0.1
    Y[:, 2] -= 5
    transforms = {"0": "normal-score", "1": "auto", "2": "auto"}
    summary = EMGPR(output_transform=transforms).first_look(X, Y)
    assert summary.outputs["transform"].tolist() == [
        "normal-score",
        "softplus (first guess)",
        "none (first guess)",
    ]
    with pytest.raises(ValueError, match="needs positive values, but output '2'"):
        EMGPR(output_transform="log").first_look(X, Y)


def test_nothing_is_fitted_and_what_fit_refuses_is_refused(small):
    X, Y = small
    model = EMGPR()
    model.first_look(X, Y)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(ValueError, match="contains NaN: input column"):
        model.first_look(np.where(X > 0.9, np.nan, X), Y)
    with pytest.raises(ValueError, match="batch_size"):
        EMGPR(batch_size=0).first_look(X, Y)
