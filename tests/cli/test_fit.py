"""`emgpr fit`: from a table to a model file."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import emgpr
from emgpr.cli import fit as fit_function

from .commands import COLUMNS, QUICK, changed, invoke, refuse, succeed

pytestmark = pytest.mark.slow


def predictions(*files):
    new = pd.read_csv("new.csv")[["Xloc", "Yloc"]]
    return [emgpr.load(file).predict(new) for file in files]


def test_the_model_is_that_of_python(here):
    jura, new = (pd.read_csv(file) for file in ("jura.csv", "new.csv"))
    model = emgpr.EMGPR.paper(output_transform="log", random_state=0)
    model.fit(jura[["Xloc", "Yloc"]], jura[["Cd", "Ni", "Zn"]])
    expected = model.predict(new[["Xloc", "Yloc"]])
    assert_allclose(predictions("jura.emgpr")[0], expected, rtol=1e-9)


def test_units_are_stored_and_used_by_other_commands(here):
    def change(table):
        return table.rename(columns={"Zn": "Zn (ppm)"})

    columns = ("-x", "Xloc,Yloc", "-y", "Cd,Zn (ppm)", "--log", "--paper")
    units = ("--units", "Cd=mg/kg,Xloc=km,Yloc=km")
    succeed("fit", changed(change), *columns, *units, "-o", "units.emgpr")
    stored = {"Cd": "mg/kg", "Zn (ppm)": "ppm", "Xloc": "km", "Yloc": "km"}
    assert emgpr.load("units.emgpr").units_ == stored
    pytest.importorskip("h5netcdf")
    succeed("predict", "units.emgpr", "--at", "new.csv", "-o", "p.nc")
    with pytest.importorskip("xarray").open_dataset("p.nc", engine="h5netcdf") as found:
        units = {name: found[name].attrs.get("units") for name in found.variables}
    assert units["Cd"] == units["Cd_std"] == "mg/kg"
    assert units["Xloc"] == "km"


def test_units_of_unknown_columns_are_refused(here):
    options = (*COLUMNS, "--units", "Pb=g", "-o", "m.emgpr")
    assert "--units contains 'Pb'; expected one of Cd" in refuse(2, "fit", "jura.csv", *options)


def test_semicolons_and_decimal_commas_make_the_same_model(here):
    succeed("fit", changed(lambda t: t, sep=";", decimal=","), *QUICK, "-o", "semi.emgpr")
    assert_array_equal(*predictions("semi.emgpr", "jura.emgpr"))


def test_check_summarises_the_table_and_fits_nothing(here):
    def change(table):
        table.loc[5:9, "Cd"] = np.nan
        table = pd.concat([table, table.iloc[:3], table.iloc[10:12].assign(Cd=1.0)])
        return pd.concat([table, pd.DataFrame({"Xloc": [1.0], "Yloc": [2.0]})])

    files = set(here.iterdir())
    result = succeed("fit", changed(change), *COLUMNS, "--check")
    assert "93 rows, 92 used" in result.stdout
    assert "\nCd        87        6 " in result.stdout
    assert " in 1 of 93 rows" in result.stderr
    assert "This takes" not in result.stdout
    assert set(here.iterdir()) - files == {here / "changed.csv"}


def test_plan_shows_the_steps_and_fits_nothing(here, monkeypatch):
    monkeypatch.setattr(emgpr.EMGPR, "fit", None)
    result = succeed("fit", "jura.csv", *COLUMNS, "--plan", "-o", "jura.emgpr")
    assert "within a factor of 2." in result.stdout
    assert result.stdout.count(" of 261 × 261 ") >= 1  # all readings at once


def test_a_model_that_is_approximate_says_how_to_measure_that(here):
    result = succeed("fit", "jura.csv", *QUICK, "-o", "paper.emgpr")
    assert "9 batches of 10 sites" in result.stdout
    assert result.stdout.endswith("emgpr validate paper.emgpr --exact\n")


def test_options_of_the_computation_are_parameters_of_the_estimator(here, monkeypatch):
    pytest.importorskip("pyproj")
    seen = {}

    def stop(model, X, Y):
        seen.update(model.get_params(deep=False))
        raise KeyboardInterrupt

    monkeypatch.setattr(emgpr.EMGPR, "fit", stop)
    options = ("--crs", "EPSG:32632", "--checkpoint", "c.fit", "--jobs", "2")
    assert invoke("fit", "jura.csv", *COLUMNS, *options, "-o", "m.emgpr").exit_code == 130
    assert str(seen["checkpoint"]) == "c.fit"
    assert (seen["crs"], seen["n_jobs"], seen["device"]) == ("EPSG:32632", 2, "cpu")


def test_an_interrupted_fit_resumes_from_its_checkpoint(here, monkeypatch):
    arguments = ("fit", "jura.csv", *QUICK, "--checkpoint", "c.fit", "-o", "resumed.emgpr")

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("emgpr.fitting.fit.fit_weights", interrupt)
        result = invoke(*arguments)
    assert result.exit_code == 130
    assert "c.fit" in result.stderr
    assert (here / "c.fit").exists()
    succeed(*arguments)
    assert_array_equal(*predictions("resumed.emgpr", "jura.emgpr"))


def test_a_model_that_cannot_be_written_is_saved_elsewhere(here, monkeypatch):
    folder = here / "elsewhere"
    folder.mkdir()
    monkeypatch.setitem(fit_function.__globals__, "gettempdir", lambda: str(folder))
    save = emgpr.EMGPR.save

    def full(model, path):
        if folder not in path.parents:
            raise OSError(28, "No space left on device")
        save(model, path)

    monkeypatch.setattr(emgpr.EMGPR, "save", full)
    result = invoke("fit", "jura.csv", *QUICK, "-o", "full.emgpr")
    assert result.exit_code == 3
    (saved,) = folder.iterdir()
    assert f"(No space left on device); the model was written to {saved}." in result.stderr
    emgpr.load(saved)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (COLUMNS, "No file is given for the model. Add an option such as -o"),
        ((*COLUMNS, "--checkpoint", "m.emgpr", "-o", "m.emgpr"), "are the same file"),
        (("-y", "Cd", "--check"), "No columns are given. Give the inputs with -x"),
        ((*COLUMNS, "--kernel", "cubic"), "'matern32'"),
        ((*COLUMNS, "--jobs", "0"), "one per core"),
        ((*COLUMNS, "--device", "moon", "--check"), "--device moon; expected"),
        ((*COLUMNS, "--device", "cuda:99", "--check"), "--device cuda:99"),
    ],
)
def test_wrong_usage(here, arguments, text):
    assert text in refuse(2, "fit", "jura.csv", *arguments)
