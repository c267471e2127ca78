"""`emgpr predict`: predictions of a model file at the locations of a table."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import emgpr
from emgpr.io import read_table, write_table

from .commands import refuse, succeed

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("ending", "needs"), [("csv", "pandas"), ("parquet", "pyarrow"), ("nc", "h5netcdf")]
)
def test_predictions_in_every_format_are_those_of_the_model(here, ending, needs):
    pytest.importorskip(needs)
    new = read_table("new.csv")
    write_table(new, f"locations.{ending}")
    arguments = ("--at", f"locations.{ending}", "-o", f"p.{ending}")
    result = succeed("predict", "jura.emgpr", *arguments)
    assert result.stdout == f"100 locations, 3 outputs: p.{ending}\n"
    table = read_table(f"p.{ending}")
    assert list(table) == ["Xloc", "Yloc", "Cd", "Cd_std", "Ni", "Ni_std", "Zn", "Zn_std"]
    assert_allclose(table[["Xloc", "Yloc"]], new[["Xloc", "Yloc"]])
    expected = emgpr.load("jura.emgpr").predict(new[["Xloc", "Yloc"]])
    assert_allclose(table[["Cd", "Ni", "Zn"]], expected, rtol=1e-12)


def test_known_outputs_are_used_and_rows_stay_in_order(here):
    new = read_table("new.csv").iloc[:20]
    new.loc[3, "Ni"] = np.nan
    new.loc[8, "Xloc"] = np.nan
    write_table(new, "some.csv")
    options = ("--known", "Ni,Zn", "--quantiles", "0.05,0.95", "--above", "Cd=0.8")
    result = succeed("predict", "jura.emgpr", "--at", "some.csv", *options, "-o", "p.csv")
    assert "1 of 20 rows (9) have no coordinates; they get no predictions." in result.stderr
    table, complete = read_table("p.csv"), new["Xloc"].notna()
    model = emgpr.load("jura.emgpr")
    X, known = new.loc[complete, ["Xloc", "Yloc"]], new.loc[complete, ["Ni", "Zn"]]
    expected = model.predict_frame(
        X, observed=known, quantiles=[0.05, 0.95], exceedance={"Cd": 0.8}
    )
    pd.testing.assert_frame_equal(table.loc[complete, expected.columns], expected, rtol=1e-9)
    assert table.loc[~complete, expected.columns].isna().all(axis=None)


def test_a_model_without_training_data_predicts(here):
    succeed("predict", "sums.emgpr", "--at", "new.csv", "-o", "p.csv")
    assert read_table("p.csv")["Cd"].notna().all()


@pytest.mark.parametrize(
    ("code", "options", "text"),
    [
        (2, ("--known", "Pb"), "--known has 'Pb'; expected one of Cd, Ni, Zn."),
        (3, ("--known", "Cd"), "no column 'Cd'"),
        (2, ("--above", "Pb=1"), "--above has 'Pb'"),
        (2, ("--above", "Cd=much"), "has 'much'; expected a finite number"),
        (2, ("--quantiles", "5,95"), "between 0 and 1"),
        (3, ("--at", "amsua.csv"), "no columns 'Xloc'"),
        (3, ("--at", "gaps.csv"), "has all coordinates"),
    ],
)
def test_options_and_tables_that_cannot_be_used(here, code, options, text):
    (here / "gaps.csv").write_text("Xloc,Yloc\n1,\n,2\n")
    assert text in refuse(code, "predict", "jura.emgpr", "--at", "new.csv", "-o", "p.csv", *options)


def test_known_outputs_that_look_like_codes_for_missing_values(here):
    new = read_table("new.csv")
    write_table(new.assign(Ni=new["Ni"].where(new.index != 3, 9999.0)), "coded.csv")
    arguments = ("predict", "jura.emgpr", "--at", "coded.csv", "--known", "Ni", "-o", "p.csv")
    assert "Add --missing 9999, or --missing none" in refuse(3, *arguments)
    assert succeed(*arguments, "--missing", "9999").stderr == ""
    kept = succeed(*arguments, "--missing", "none", "--force")
    assert "emgpr: warning: " in kept.stderr
    assert "9999" in kept.stderr


def test_a_model_fitted_to_arrays_has_no_names_to_look_up(here):
    line = refuse(3, "predict", "nameless.emgpr", "--at", "new.csv", "-o", "p.csv")
    assert "fitted to arrays, so the names of its input columns are unknown" in line
