"""`emgpr validate`: cross-validation of model files and of tables."""

import warnings
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import emgpr
from emgpr.io import read_table

from .commands import COLUMNS, refuse, succeed
from .conftest import N_ROWS

pytestmark = pytest.mark.slow


def test_a_fitted_model_is_cross_validated_as_in_python(here):
    printed = succeed("validate", "jura.emgpr", "--by", "block", "-o", "rows.csv").stdout
    model = emgpr.load("jura.emgpr")
    results = model.cross_validate("block")
    assert printed == f"{results}\n\n{model.transfer_report('block')}\nWritten: rows.csv\n"
    rows = read_table("rows.csv")
    assert len(rows) == 3 * N_ROWS
    errors = (rows["truth"] - rows["prediction"]).abs().groupby(rows["output"]).mean()
    assert_allclose(errors, results.summary()["mae"], rtol=1e-9)


def test_outputs_of_a_model_and_rows_on_stdout(here):
    result = succeed("validate", "jura.emgpr", "--outputs", "Zn,Cd", "-o", "-")
    rows = pd.read_csv(StringIO(result.stdout))
    expected = emgpr.load("jura.emgpr").cross_validate().rows()
    kept = expected["output"].isin(["Cd", "Zn"])
    assert_allclose(np.sort(rows["prediction"]), np.sort(expected.loc[kept, "prediction"]))
    assert set(rows["output"]) == {"Cd", "Zn"}
    assert "174 readings of 2 outputs" in result.stderr
    assert "Ni" not in result.stderr
    assert result.stderr.endswith("Written: stdout\n")


def test_exact_measures_what_approximations_cost_as_in_python(here):
    printed = succeed("validate", "jura.emgpr", "--exact", "-o", "rows.csv").stdout
    report = emgpr.load("jura.emgpr").approximation_report()
    assert printed == f"{report}\nWritten: rows.csv\n"
    assert len(read_table("rows.csv")) == 3 * report.table["n"].xs("mae", level="loss").sum()


def test_an_exact_model_has_no_rows_to_write(here):
    printed = succeed("validate", "exact.emgpr", "--exact", "-o", "none.csv").stdout
    assert printed.startswith("Nothing is approximated")
    assert printed.endswith("There are no rows to write.\n")
    assert not (here / "none.csv").exists()


def test_a_table_compares_emgpr_with_models_of_the_same_settings(here, monkeypatch):
    fitted = {}
    compare = emgpr.estimators.compare

    def quick(models, X, Y, **settings):
        fitted.update(models)
        few = {name: model.set_params(max_iter=2) for name, model in models.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return compare(few, X.iloc[:60], Y.iloc[:60], **settings)

    monkeypatch.setattr(emgpr.estimators, "compare", quick)
    options = ("--log", "--paper", "--by", "output", "--folds", "2", "-o", "rows.csv")
    result = succeed("validate", "jura.csv", *COLUMNS, *options)
    assert [type(model).__name__ for model in fitted.values()] == ["EMGPR", "IndependentGP", "ICM"]
    assert {model.get_params()["output_transform"] for model in fitted.values()} == {"log"}
    assert "EMGPR compared with no transfer:" in result.stdout
    assert "EMGPR compared with ICM:" in result.stdout
    assert "warning: In " in result.stderr  # two iterations do not converge
    assert len(read_table("rows.csv")) == 3 * 3 * 60


def test_a_single_output_is_not_compared_with_icm(here, monkeypatch):
    def stop(models, X, Y, **settings):
        raise ValueError(", ".join(models))

    monkeypatch.setattr(emgpr.estimators, "compare", stop)
    line = refuse(3, "validate", "jura.csv", "-x", "Xloc,Yloc", "-y", "Cd")
    assert line == "emgpr: EMGPR, no transfer"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("jura.csv",), "give its columns with -x and -y"),
        (("jura.csv", "-y", "Cd"), "give its columns with -x and -y"),
        (("jura.emgpr", "--outputs", "Pb"), "--outputs contains 'Pb'; expected one of Cd, Ni, Zn."),
        (("jura.emgpr", "--exact", "--outputs", "Cd"), "--exact compares all outputs"),
        (("jura.emgpr", "--log"), "since it contains its settings and data"),
        (("jura.emgpr", "--folds", "3"), "since it contains its settings and data"),
        (("jura.csv", *COLUMNS, "--folds", "1"), "--folds"),
        (("jura.csv", *COLUMNS, "--exact"), "--exact requires a fitted model"),
    ],
)
def test_wrong_usage(here, arguments, text):
    assert text in refuse(2, "validate", *arguments)
