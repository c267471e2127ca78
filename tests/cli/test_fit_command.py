"""From a table as people have it to a model in a file."""

import sys

import numpy as np
import pandas as pd
import pytest
from commanding import COLUMNS, QUICK, changed, done, replaced, says
from numpy.testing import assert_allclose, assert_array_equal

import emgpr
from emgpr.datasets import load_jura
from emgpr.estimators import cost
from emgpr.io import read_table


def test_the_model_is_that_of_python(made):
    jura = load_jura().train
    model = emgpr.EMGPR.paper(transform="log", random_state=0)
    model.fit(jura[["Xloc", "Yloc"]], jura[["Cd", "Ni", "Zn"]])
    new = load_jura().test[["Xloc", "Yloc"]]
    assert_allclose(emgpr.load(made / "jura.emgpr").predict(new), model.predict(new), rtol=1e-9)


def test_semicolons_and_decimal_commas_make_the_same_model(here):
    done("fit", changed(lambda t: t, sep=";", decimal=","), *QUICK, "-o", "semi.emgpr")
    new = read_table("new.csv", ["Xloc", "Yloc"])
    models = [emgpr.load(name) for name in ("semi.emgpr", "jura.emgpr")]
    assert_array_equal(*(model.predict(new) for model in models))


def test_the_table_is_told_of_before_anything_starts(here):
    def change(table):
        table.loc[5:9, "Cd"] = np.nan
        again = pd.concat([table, table.iloc[:3], table.iloc[10:12].assign(Cd=1.0)])
        return pd.concat([again, pd.DataFrame({"Xloc": [1.0], "Yloc": [2.0]})])

    result = done("fit", changed(change), *COLUMNS, "--check")
    assert "265 rows, 264 used: nothing was read in 1" in result.stdout
    assert "259 places, of which 5 have several rows, 10 in all" in result.stdout
    assert "3 rows repeat another one" in result.stdout
    assert "\nCd       259        6 " in result.stdout
    assert "log (first guess)" in result.stdout
    assert "Nothing was read in 1 of 265 rows" in result.stderr
    assert "This takes" not in result.stdout
    assert {file.name for file in here.glob("*.emgpr")} == {"jura.emgpr", "small.emgpr"}


def test_a_plan_is_shown_and_nothing_learned(here, monkeypatch):
    monkeypatch.setattr(emgpr.EMGPR, "fit", None)
    result = done("fit", "jura.csv", *COLUMNS, "--plan")
    assert "joint ascent   777 " in result.stdout
    assert "within a factor of 3." in result.stdout
    assert result.stdout.endswith("Nothing is approximated.\n")


def test_a_fit_that_is_approximated_says_where_its_cost_is_told(here):
    result = done("fit", "jura.csv", *QUICK, "-o", "paper.emgpr")
    assert "\n  weights: learned from 28 batches of 10 sites, " in result.stdout
    assert result.stdout.endswith("What that costs: emgpr validate paper.emgpr --exact\n")


def test_memory_that_is_not_there_is_told_of(here, monkeypatch):
    def far_too_much(*_):
        step = cost.Step("joint ascent", "dense", 9, 1, 9, 9, 1.0, 1e18)
        return cost.Plan(9, 1, 9, "cpu", 1, (step,), step)

    monkeypatch.setattr(emgpr.EMGPR, "plan", far_too_much)
    monkeypatch.setattr(emgpr.EMGPR, "fit", lambda *_: pytest.fail("not now"))
    result = says("fit", "jura.csv", *COLUMNS, "-o", "large.emgpr")
    assert "1000000000 GB are needed, and this machine has" in result.stderr


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ((), {"kernel": "auto", "transform": "auto", "refine": "auto", "random_state": 0}),
        (("--paper",), {"kernel": None, "transform": None, "refine": 0}),
        (("--log", "--seed", "3"), {"transform": "log", "random_state": 3}),
        (("--transform", "Cd=none"), {"transform": {"Cd": None, "Ni": "auto", "Zn": "auto"}}),
        (("--kernel", "matern32", "--jobs", "2"), {"n_jobs": 2}),
        (("--crs", "EPSG:32632", "--checkpoint", "c.fit"), {"crs": "EPSG:32632"}),
    ],
)
def test_options_are_the_estimators_settings(here, monkeypatch, options, settings):
    if "--crs" in options:
        pytest.importorskip("pyproj")
    seen = {}

    def stop(model, X, Y):
        seen.update(model.get_params(deep=False))
        raise KeyboardInterrupt

    monkeypatch.setattr(emgpr.EMGPR, "fit", stop)
    result = says("fit", "jura.csv", *COLUMNS, *options, "-o", "m.emgpr")
    assert result.exit_code == 130
    assert {name: seen[name] for name in settings} == settings
    if "--kernel" in options:
        assert seen["kernel"].nu == 1.5
    assert (seen["checkpoint"] is None) == ("--checkpoint" not in options)


def test_a_fit_that_was_stopped_goes_on(here, monkeypatch):
    asked = ("fit", "jura.csv", *QUICK, "--checkpoint", "c.fit", "-o", "whole.emgpr")
    inner = emgpr.EMGPR._learn_weights

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(emgpr.EMGPR, "_learn_weights", stop)
    result = says(*asked)
    assert result.exit_code == 130
    assert "kept in c.fit" in result.stderr
    monkeypatch.setattr(emgpr.EMGPR, "_learn_weights", inner)
    done(*asked)
    new = read_table("new.csv", ["Xloc", "Yloc"])
    models = [emgpr.load(name) for name in ("whole.emgpr", "jura.emgpr")]
    assert_array_equal(*(model.predict(new) for model in models))


def test_a_model_that_cannot_be_written_where_it_should_is_kept_elsewhere(here, monkeypatch):
    monkeypatch.setattr(sys.modules["emgpr.cli.fit"], "gettempdir", lambda: str(here / "refuge"))
    (here / "refuge").mkdir()
    save = emgpr.EMGPR.save

    def full(model, path):
        if "refuge" not in str(path):
            raise OSError(28, "No space left on device")
        save(model, path)

    monkeypatch.setattr(emgpr.EMGPR, "save", full)
    result = says("fit", "jura.csv", *QUICK, "-o", "full.emgpr")
    assert result.exit_code == 3
    (kept,) = (here / "refuge").iterdir()
    assert f"No space left on device); the model is in {kept}." in result.stderr
    emgpr.load(kept)


def test_codes_for_missing_values_are_refused_taken_or_kept(here):
    file = changed(replaced("Zn", [3, 9, 20], -9999))
    result = says("fit", file, *COLUMNS, "--check")
    assert result.exit_code == 3
    (line,) = result.stderr.splitlines()
    assert "'Zn' holds -9999 (3 of 259 values)" in line
    assert line.endswith("Here: --missing -9999; or --missing none, if it was measured.")
    taken = done("fit", file, *COLUMNS, "--check", "--missing", "-9999")
    assert taken.stderr == ""
    assert "\nZn       256        3 " in taken.stdout
    kept = done("fit", file, *COLUMNS, "--check", "--missing", "none")
    assert kept.stderr.startswith("emgpr: warning: Output 'Zn' holds -9999")


def test_what_was_told_of_the_table_is_not_told_again(here):
    file = changed(lambda t: t.rename(columns={"Xloc": "lon", "Yloc": "lat"}))
    columns = ("-x", "lon,lat", "-y", "Cd,Ni,Zn", "--log", "--paper")
    result = done("fit", file, *columns, "-o", "flat.emgpr")
    (line,) = result.stderr.splitlines()
    assert "as if degrees were lengths" in line
    assert line.endswith("Here: --crs EPSG:4326.")


def rows_without_a_place(table):
    return table.assign(Xloc=table["Xloc"].mask(table.index == 7))


def test_rows_without_a_place_are_left_out_and_told(here):
    result = done("fit", changed(rows_without_a_place), *COLUMNS, "--check")
    assert "258 rows; 258 places" in result.stdout
    assert "1 of 259 rows have no place (row 8); they are left out." in result.stderr
