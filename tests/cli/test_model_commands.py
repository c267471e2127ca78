"""From a model in a file to predictions, maps, pictures, and what it is worth."""

import warnings

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
from commanding import COLUMNS, done, says
from numpy.testing import assert_allclose, assert_array_equal

import emgpr
from emgpr.datasets import load_jura
from emgpr.io import read_table, write_table


@pytest.mark.parametrize("end", ["csv", "tsv", "parquet", "nc"])
def test_predictions_in_every_format_are_those_of_the_model(here, end):
    if end == "parquet":
        pytest.importorskip("pyarrow")
    if end == "nc":
        pytest.importorskip("xarray")
    write_table(read_table("new.csv"), f"places.{end}")
    done("predict", "jura.emgpr", "--at", f"places.{end}", "-o", f"p.{end}")
    told, new = read_table(f"p.{end}"), read_table("new.csv")
    assert list(told) == ["Xloc", "Yloc", "Cd", "Cd_std", "Ni", "Ni_std", "Zn", "Zn_std"]
    assert_allclose(told[["Xloc", "Yloc"]], new[["Xloc", "Yloc"]])
    expected = emgpr.load("jura.emgpr").predict(new[["Xloc", "Yloc"]])
    assert_allclose(told[["Cd", "Ni", "Zn"]], expected, rtol=1e-12)


def test_what_is_known_there_is_used_and_rows_stay_in_their_place(here):
    new = read_table("new.csv")
    new.loc[3, "Ni"] = np.nan
    new.loc[8, "Xloc"] = np.nan
    write_table(new, "some.csv")
    asked = ("--known", "Ni,Zn", "--quantiles", "0.05,0.95", "--above", "Cd=0.8")
    result = done("predict", "jura.emgpr", "--at", "some.csv", *asked, "-o", "p.csv")
    assert "1 of 100 rows have no place (row 9); nothing is predicted there." in result.stderr
    told = read_table("p.csv")
    whole = new["Xloc"].notna()
    model = emgpr.load("jura.emgpr")
    places, known = new.loc[whole, ["Xloc", "Yloc"]], new.loc[whole, ["Ni", "Zn"]]
    expected = model.predict_frame(places, observed=known)
    assert_allclose(told.loc[whole, "Cd"], expected["Cd"], rtol=1e-9)
    assert told.loc[~whole].drop(columns=["Xloc", "Yloc"]).isna().all(axis=None)
    assert {"Cd_q0.05", "Zn_q0.95", "Cd_above_0.8"} <= set(told)
    assert "Ni_above_0.8" not in told


def test_maps_are_those_of_the_model(here):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    asked = ("--spacing", "0.5", "--inside", "region.geojson", "--units", "mg/kg")
    result = done("grid", "small.emgpr", *asked, "--above", "Cd=0.8", "-o", "m.nc")
    model = emgpr.load("small.emgpr")
    expected = model.predict_grid(
        0.5, inside="region.geojson", units="mg/kg", exceedance={"Cd": 0.8}
    )
    with xarray.open_dataset("m.nc", engine="h5netcdf") as told:
        assert set(told.data_vars) == set(expected.data_vars)
        assert_array_equal(told["Cd"], expected["Cd"])
        assert told["Zn_std"].attrs["units"] == "mg/kg"
    rows, columns = expected["Cd"].shape
    inside = int(expected["Cd"].count())
    assert f"3 outputs on {rows} × {columns} cells, {inside} of them inside: m.nc" in result.stdout


PICTURES = (
    "maps", "latents", "weights", "coregionalization", "variograms", "shares", "predictions",
    "calibration",
)  # fmt: skip


@pytest.mark.parametrize("what", PICTURES)
def test_every_picture_is_drawn(here, what):
    result = done("plot", "small.emgpr", what, "--units", "mg/kg", "--dpi", "40", "-o", "p.png")
    assert result.stdout == f"{what} of Cd, Ni, Zn: p.png\n"
    image = matplotlib.image.imread("p.png")
    assert min(image.shape[:2]) > 60
    assert len(np.unique(image.reshape(-1, image.shape[-1]), axis=0)) > 20
    assert {file.name for file in here.glob(".*")} == set()


def test_a_fitted_model_validated_prints_what_python_says(here):
    told = done("validate", "small.emgpr", "--by", "block", "-o", "rows.csv").stdout
    model = emgpr.load("small.emgpr")
    assert repr(model.cross_validate("block")) in told
    assert repr(model.transfer_report("block")) in told
    rows = read_table("rows.csv")
    assert len(rows) == 3 * 259
    errors = (rows["truth"] - rows["prediction"]).abs().groupby(rows["output"]).mean()
    assert_allclose(errors, model.cross_validate("block").summary()["mae"], rtol=1e-9)


def test_what_approximations_cost_is_printed_as_python_says(here):
    told = done("validate", "small.emgpr", "--exact", "-o", "rows.csv").stdout
    report = emgpr.load("small.emgpr").approximation_report()
    assert repr(report) in told
    assert len(read_table("rows.csv")) == 3 * report.table["n"].xs("mae", level="loss").sum()
    refused = says("validate", "jura.csv", *COLUMNS, "--exact")
    assert refused.exit_code == 2
    assert "--exact is of a fitted model" in refused.stderr


def test_of_a_model_that_is_exact_there_are_no_rows(here):
    jura = load_jura().train
    model = emgpr.IndependentGP(random_state=0).fit(jura[["Xloc", "Yloc"]], jura[["Cd"]])
    model.save("exact.emgpr")
    told = done("validate", "exact.emgpr", "--exact", "-o", "none.csv").stdout
    assert told.startswith("Nothing is approximated")
    assert told.endswith("No rows, and none written.\n")
    assert not (here / "none.csv").exists()


def test_a_table_is_validated_against_no_transfer_and_icm(here, monkeypatch):
    asked = {}
    compare = emgpr.estimators.compare

    def quick(models, X, Y, **settings):
        asked.update(models)
        few = {name: model.set_params(max_iter=2) for name, model in models.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compare(few, X.iloc[:60], Y.iloc[:60], **settings)

    monkeypatch.setattr(emgpr.estimators, "compare", quick)
    options = ("--log", "--paper", "--by", "output", "--folds", "2", "-o", "rows.parquet")
    pytest.importorskip("pyarrow")
    result = done("validate", "jura.csv", *COLUMNS, *options)
    assert [type(model).__name__ for model in asked.values()] == ["EMGPR", "IndependentGP", "ICM"]
    assert {model.get_params()["transform"] for model in asked.values()} == {"log"}
    assert "Cross-validation by output, 2 fits of each model" in result.stdout
    assert "EMGPR against no transfer:" in result.stdout
    assert "EMGPR against ICM:" in result.stdout
    assert "warning: in " in result.stderr  # two iterations do not converge, and that is said
    assert len(read_table("rows.parquet")) == 3 * 3 * 60


def test_predictions_need_the_names_of_columns(here):
    jura = load_jura().train
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = emgpr.EMGPR.paper(max_iter=2).fit(
            jura[["Xloc", "Yloc"]].to_numpy(), jura[["Cd"]].to_numpy()
        )
    model.save("nameless.emgpr")
    result = says("predict", "nameless.emgpr", "--at", "new.csv", "-o", "p.csv")
    assert result.exit_code == 3
    assert "fitted to arrays, whose columns have no names" in result.stderr


def test_a_model_without_readings_predicts_and_is_refused_where_they_are_needed(here):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(0, 5, (150, 2)), columns=["Xloc", "Yloc"])
    Y = pd.DataFrame({"Cd": np.sin(X["Xloc"]) + 0.1 * rng.normal(size=150)})
    emgpr.OnePassGP(n_functions=100, random_state=0).fit(X, Y).save("once.emgpr")
    done("predict", "once.emgpr", "--at", "new.csv", "-o", "p.csv")
    assert read_table("p.csv")["Cd"].notna().all()
    for asked in (["validate"], ["plot", "shares", "-o", "s.png"], ["report", "-o", "r.html"]):
        command, *others = asked
        result = says(command, "once.emgpr", *others)
        assert result.exit_code == 3, (result.output, result.exception)
        assert "OnePassGP, which keeps no readings" in result.stderr
