"""`emgpr predict`: predictions of a model file at the locations of a table."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import emgpr
from emgpr.io import read_table, write_table

from .commands import invoke, refuse, succeed

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
    given = ["Xloc", "Yloc", "Ni_given", "Zn_given"]
    assert list(table) == [*given, "Cd", "Cd_std", "Ni", "Ni_std", "Zn", "Zn_std"]
    assert_array_equal(table[given], new)
    expected = emgpr.load("jura.emgpr").predict(new[["Xloc", "Yloc"]])
    rounding = 5e-6 if ending == "csv" else 1e-12
    assert_allclose(table[["Cd", "Ni", "Zn"]], expected, rtol=rounding)


def test_columns_of_the_table_are_written_as_they_were(here):
    text = 'ID,Xloc,Yloc,"note, lab",NA\n007,2.50,3.100,"a ""b"", c",NA\n1e5,3.0,4.40,,\n'
    (here / "ids.csv").write_text(text)
    succeed("predict", "jura.emgpr", "--at", "ids.csv", "--outputs", "Cd", "-o", "p.csv")
    lines = (here / "p.csv").read_text().splitlines()
    assert lines[0] == text.splitlines()[0] + ",Cd,Cd_std"
    for given, written in zip(text.splitlines()[1:], lines[1:], strict=True):
        assert written.startswith(given + ",")
        assert max(map(len, written.removeprefix(given + ",").split(","))) <= 8  # 6 digits


def test_decimal_commas_become_points_beside_predictions(here):
    (here / "commas.csv").write_text("ID;Xloc;Yloc;remark\n007;2,5;3,1;a, b\n")
    succeed("predict", "jura.emgpr", "--at", "commas.csv", "--outputs", "Cd", "-o", "p.csv")
    assert '007,2.5,3.1,"a, b",' in (here / "p.csv").read_text()


def test_text_columns_in_netcdf(here):
    pytest.importorskip("h5netcdf")
    (here / "ids.csv").write_text("ID,Xloc,Yloc\na7,2.5,3.1\n,3.5,3.1\n")
    succeed("predict", "jura.emgpr", "--at", "ids.csv", "-o", "p.nc")
    assert read_table("p.nc")["ID"].tolist() == ["a7", ""]


def test_names_that_would_be_given_twice(here):
    (here / "twice.csv").write_text("Xloc,Yloc,Cd,Cd_given\n2.5,3.1,1,2\n")
    line = refuse(3, "predict", "jura.emgpr", "--at", "twice.csv", "-o", "p.csv")
    assert "Several columns of the predictions would be named 'Cd_given'. Rename" in line


def test_stdin_and_stdout(here):
    arguments = ("predict", "jura.emgpr", "--outputs", "Zn,Cd", "--at")
    succeed(*arguments, "new.csv", "-o", "p.csv")
    piped = invoke(*arguments, "-", "-o", "-", input=(here / "new.csv").read_bytes())
    assert piped.exit_code == 0
    assert piped.stdout == (here / "p.csv").read_text()
    assert piped.stderr == "100 locations, 2 outputs: stdout\n"
    wrong = invoke(*arguments, "-", "-o", "-", input=b"x,y\n1,2\n")
    assert wrong.exit_code == 3
    assert wrong.stderr.startswith("emgpr: stdin has no columns 'Xloc', 'Yloc'")


def test_tables_are_written_to_the_target_of_a_symbolic_link(here):
    (here / "data").mkdir()
    (here / "link.csv").symlink_to("data/p.csv")
    succeed("predict", "jura.emgpr", "--at", "new.csv", "-o", "link.csv")
    assert (here / "link.csv").is_symlink()
    assert "Cd_std" in (here / "data" / "p.csv").read_text()


def test_known_outputs_are_used_and_rows_stay_in_order(here):
    new = read_table("new.csv").iloc[:20]
    new.loc[3, "Ni"] = np.nan
    new.loc[8, "Xloc"] = np.nan
    write_table(new, "some.csv")
    options = ("--known", "Ni,Zn", "--quantiles", "0.05,0.95", "--above", "Cd=0.8")
    result = succeed("predict", "jura.emgpr", "--at", "some.csv", *options, "-o", "p.csv")
    assert "1 of 20 rows (line 10) have no coordinates; they get no predictions." in result.stderr
    table, complete = read_table("p.csv"), new["Xloc"].notna()
    model = emgpr.load("jura.emgpr")
    X, known = new.loc[complete, ["Xloc", "Yloc"]], new.loc[complete, ["Ni", "Zn"]]
    expected = model.predict_frame(
        X, observed=known, quantiles=[0.05, 0.95], exceedance={"Cd": 0.8}
    )
    pd.testing.assert_frame_equal(table.loc[complete, expected.columns], expected, rtol=5e-6)
    assert table.loc[~complete, expected.columns].isna().all(axis=None)


def test_a_model_without_training_data_predicts(here):
    succeed("predict", "sums.emgpr", "--at", "new.csv", "-o", "p.csv")
    assert read_table("p.csv")["Cd"].notna().all()


@pytest.mark.parametrize(
    ("code", "options", "text"),
    [
        (2, ("--outputs", "Pb"), "--outputs contains 'Pb'; expected one of Cd, Ni, Zn."),
        (2, ("--known", "Pb"), "--known contains 'Pb'; expected one of Cd, Ni, Zn."),
        (3, ("--known", "Cd"), "no column 'Cd'"),
        (2, ("--above", "Pb=1"), "--above contains 'Pb'"),
        (2, ("--above", "Cd=much"), "contains 'much'; expected a finite number"),
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
    assert "Leave these cells empty, or add --missing 9999." in refuse(3, *arguments)
    assert succeed(*arguments, "--missing", "9999").stderr == ""
    kept = succeed(*arguments, "--missing", "none", "--force")
    assert "emgpr: warning: " in kept.stderr
    assert "9999" in kept.stderr


def test_dates_have_the_same_meaning_in_fit_and_predict(here):
    days = pd.date_range("2024-03-01", periods=30)
    readings = np.sin(np.arange(30) / 4) + 2 + 0.1 * np.cos(7.0 * np.arange(30))
    table = pd.DataFrame({"day": days, "Cd": readings.round(3)})
    write_table(table, "series.csv")
    succeed("fit", "series.csv", "-x", "day", "-y", "Cd", "--paper", "-o", "series.emgpr")
    new = {"iso": "%Y-%m-%d", "number": "%Y%m%d", "clock": "%Y-%m-%dT%H:%M:%SZ"}
    predicted = []
    for name, form in new.items():
        table[["day"]].assign(day=days.strftime(form)).to_csv(f"{name}.csv", index=False)
        succeed("predict", "series.emgpr", "--at", f"{name}.csv", "-o", f"p-{name}.csv")
        predicted.append(pd.read_csv(f"p-{name}.csv")["Cd"])
    assert np.corrcoef(predicted[0], readings)[0, 1] > 0.9
    for other in predicted[1:]:
        assert_allclose(other, predicted[0])


def test_a_table_of_locations_is_read_as_the_flags_say(here):
    new = read_table("new.csv")
    new.to_csv("german.csv", sep=":", decimal=",", index=False, encoding="utf-16-le")
    flags = ("--separator", ":", "--decimal", ",", "--encoding", "utf-16-le")
    succeed("predict", "jura.emgpr", "--at", "german.csv", "-o", "p.csv", *flags)
    succeed("predict", "jura.emgpr", "--at", "new.csv", "-o", "q.csv")
    pd.testing.assert_frame_equal(read_table("p.csv"), read_table("q.csv"))


def test_a_model_fitted_to_arrays_has_no_names_to_look_up(here):
    line = refuse(3, "predict", "nameless.emgpr", "--at", "new.csv", "-o", "p.csv")
    assert "fitted to arrays, so the names of its input columns are unknown" in line
