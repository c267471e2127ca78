"""What is wrong with files and options: one line, the remedy, the code, and nothing lost."""

import pandas as pd
import pytest
from commanding import COLUMNS, changed, done, replaced, says

from emgpr.io import read_table, write_table

LIMITS = ("fit", "limits.csv", *COLUMNS, "--check")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("fit", "jura.csv", "-x", "Xloc,Yloc", "-y", "Cd,NI", "--check"), 3, "is 'Ni' meant?"),
        (("fit", "jura.csv", "-x", "Xloc,Yloc", "-y", "Cd,Rock", "--check"), 3, "'Sequanian'"),
        (LIMITS, 3, "holds text in 1 of 259 rows ('<0.2'). Write numbers there; or add --missing"),
        (("fit", "units.csv", *COLUMNS, "--check"), 3, "add --missing 'km,mg/kg', and it is left"),
        (("fit", "marks.csv", *COLUMNS, "--check"), 3, "'1,200.5', with marks between the thousa"),
        (("fit", "dates.csv", *COLUMNS, "--check"), 3, "days since the first"),
        (
            ("fit", "limits.csv", *COLUMNS, "--missing", "-1", "--check"),
            3,
            "--missing '-1,<0.2'",
        ),
        (("fit", "jura.csv", *COLUMNS, "-o", "jura.csv", "--force"), 2, "named as a table is"),
        (
            ("fit", "jura.csv", *COLUMNS, "--checkpoint", "jura.csv", "-o", "m.emgpr"),
            2,
            "named as a table is",
        ),
        (
            ("fit", "jura.csv", *COLUMNS, "--checkpoint", "m.emgpr", "-o", "m.emgpr"),
            2,
            "the same file",
        ),
        (("fit", "jura.csv", "-x", "Xloc", "-y", "Cd,Xloc", "--check"), 2, "in -x and in -y"),
        (("fit", "jura.csv", "-x", "Xloc,Yloc", "-y", "Cd,", "--check"), 2, "as A,B,C"),
        (("fit", "jura.csv", "-y", "Cd", "--check"), 2, "name the columns: -x"),
        (("fit", "jur.csv", *COLUMNS, "--check"), 3, "There is jura.csv"),
        (("fit", "empty.csv", *COLUMNS, "--check"), 3, "is empty"),
        (("fit", "header.csv", "-x", "x", "-y", "Cd", "--check"), 3, "no row with a place: x."),
        (("fit", "latin.csv", *COLUMNS, "--check"), 3, "Save it as UTF-8"),
        (("fit", "jura.csv", *COLUMNS), 2, "name the file for the model: -o"),
        (("fit", "jura.csv", *COLUMNS, "-o", "nowhere/m.emgpr"), 2, "no folder nowhere"),
        (("fit", "jura.csv", *COLUMNS, "-o", "."), 2, "is a folder"),
        (("fit", "jura.csv", *COLUMNS, "-o", "jura.emgpr"), 2, "is there already"),
        (("fit", "jura.csv", *COLUMNS, "--checkpoint", "no/c", "-o", "m.emgpr"), 2, "no folder no"),
        (("fit", "jura.csv", *COLUMNS, "--transform", "lg", "--check"), 2, "expected auto, none"),
        (("fit", "jura.csv", *COLUMNS, "--transform", "Pb=log", "--check"), 2, "not in -y"),
        (("fit", "jura.csv", *COLUMNS, "--log", "--transform", "log"), 2, "one of the two"),
        (("fit", "jura.csv", *COLUMNS, "--kernel", "cubic"), 2, "'matern32'"),
        (("fit", "jura.csv", *COLUMNS, "--jobs", "0"), 2, "one a core"),
        (("fit", "jura.csv", *COLUMNS, "--device", "moon", "--check"), 2, "device='moon'"),
        (("fit", "negative.csv", *COLUMNS, "--log", "--check"), 3, "needs positive values"),
        (("predict", "jura.csv", "--at", "new.csv", "-o", "p.csv"), 3, "not a file written by"),
        (("predict", "jur.emgpr", "--at", "new.csv", "-o", "p.csv"), 3, "There is jura.emgpr"),
        (("predict", "jura.emgpr", "--at", "amsua.csv", "-o", "p.csv"), 3, "no columns 'Xloc'"),
        (("predict", "jura.emgpr", "--at", "header.csv", "-o", "p.csv"), 3, "no columns 'Xloc'"),
        (("predict", "jura.emgpr", "--at", "places.csv", "-o", "p.csv"), 3, "no row with a place"),
        (("predict", "jura.emgpr", "--at", "new.csv", "-o", "jura.csv"), 2, "is there already"),
        (("predict", "jura.emgpr", "--at", "new.csv", "-o", "p.xlsx"), 2, "expected .csv"),
        (
            ("predict", "jura.emgpr", "--at", "new.csv", "--known", "Pb", "-o", "p.csv"),
            2,
            "--known names 'Pb'; the model has Cd, Ni, Zn.",
        ),
        (
            ("predict", "jura.emgpr", "--at", "new.csv", "--known", "Cd", "-o", "p.csv"),
            3,
            "no column 'Cd'",
        ),
        (
            ("predict", "jura.emgpr", "--at", "coded.csv", "--known", "Ni", "-o", "p.csv"),
            3,
            "Here: --missing -9999; or --missing none",
        ),
        (
            ("predict", "jura.emgpr", "--at", "new.csv", "--above", "Pb=1", "-o", "p.csv"),
            2,
            "--above names 'Pb'",
        ),
        (
            ("predict", "jura.emgpr", "--at", "new.csv", "--above", "Cd=much", "-o", "p.csv"),
            2,
            "'much' is no number",
        ),
        (
            ("predict", "jura.emgpr", "--at", "new.csv", "--quantiles", "5,95", "-o", "p.csv"),
            2,
            "between 0 and 1",
        ),
        (("grid", "jura.emgpr", "--spacing", "0", "-o", "g.nc"), 2, "above 0"),
        (("grid", "jura.emgpr", "--spacing", "inf", "-o", "g.nc"), 2, "'inf' is no number"),
        (
            ("predict", "jura.emgpr", "--at", "new.csv", "--above", "Cd=nan", "-o", "p.csv"),
            2,
            "'nan' is no number",
        ),
        (("grid", "jura.emgpr", "--spacing", "1", "--bounds", "1,2", "-o", "g.nc"), 2, "west"),
        (("grid", "jura.emgpr", "--spacing", "1", "-o", "g.png"), 2, "expected .nc"),
        (("grid", "jura.emgpr", "--spacing", "1", "--units", "Pb=g", "-o", "g.nc"), 2, "'Pb'"),
        (("grid", "jura.emgpr", "--spacing", "1e-6", "-o", "g.nc"), 3, "Check the spacing"),
        (("grid", "jura.emgpr", "--spacing", "1", "--inside", "n", "-o", "g.nc"), 3, "no file n"),
        (
            ("grid", "jura.emgpr", "--spacing", "1", "--quantiles", "0.5", "-o", "g.tif"),
            2,
            "into NetCDF only",
        ),
        (("plot", "jura.emgpr", "map", "-o", "g.png"), 2, "'maps'"),
        (("plot", "jura.emgpr", "maps", "-o", "g.gif"), 2, "expected .png"),
        (("plot", "jura.emgpr", "maps", "--outputs", "Pb", "-o", "g.png"), 2, "'Pb'"),
        (("validate", "jura.csv"), 2, "name its columns with -x and -y"),
        (("validate", "jura.emgpr", "--log"), 2, "keeps its settings"),
        (("validate", "jura.emgpr", "--folds", "3"), 2, "keeps its settings"),
        (("report", "jura.emgpr", "--units", "Pb=g", "-o", "r.html"), 2, "--units names 'Pb'"),
        (("validate", "jura.csv", *COLUMNS, "--folds", "1"), 2, "--folds"),
        (("example",), 2, "jura.csv is there already"),
    ],
)
def test_what_is_wrong_is_one_line_with_its_code_and_nothing_is_lost(here, arguments, code, words):
    changed(replaced("Cd", 4, "<0.2"), "limits.csv")
    changed(replaced("Cd", 4, -0.1), "negative.csv")
    changed(lambda t: t.rename(columns={"Pb": "Pb µg"}), "latin.csv", encoding="latin-1")
    changed(lambda t: t.assign(Xloc="1,200.5"), "marks.csv")
    changed(lambda t: t.assign(Xloc="2024-05-01"), "dates.csv")
    units = pd.DataFrame(
        {"Xloc": ["km"], "Yloc": "km", "Cd": "mg/kg", "Ni": "mg/kg", "Zn": "mg/kg"}
    )
    changed(lambda t: pd.concat([units, t]), "units.csv")
    new = read_table("new.csv")
    write_table(new.assign(Ni=new["Ni"].where(new.index != 3, -9999.0)), "coded.csv")
    (here / "empty.csv").touch()
    (here / "header.csv").write_text("x,Cd\n")
    (here / "places.csv").write_text("Xloc,Yloc\n1,\n,2\n")
    if arguments == ("example",):
        (here / "jura.csv").write_text("mine\n")
    if arguments[0] == "grid":
        pytest.importorskip("rasterio")
    before = {file.name: file.read_bytes() for file in here.iterdir()}
    result = says(*arguments)
    assert result.exit_code == code, (result.output, result.exception)
    last = result.stderr.splitlines()[-1]
    assert last.startswith("emgpr: ")
    assert words in last
    lines = [line for line in result.stderr.splitlines() if "warning" not in line]
    assert len(lines) == 1
    assert {file.name: file.read_bytes() for file in here.iterdir()} == before


def test_force_replaces(here):
    done("predict", "jura.emgpr", "--at", "new.csv", "-o", "new.csv", "--force")
    assert "Cd_std" in read_table("new.csv")
    done("example", "--force")
    assert list(read_table("new.csv")) == ["Xloc", "Yloc", "Ni", "Zn"]
    assert done("example").stdout.split() == ["jura.csv", "new.csv", "region.geojson", "amsua.csv"]


def test_names_with_commas_are_put_in_quotes(here):
    changed(lambda t: t.rename(columns={"Zn": "Zn, total"}))
    assert (
        "Zn, total"
        in done("fit", "messy.csv", "-x", "Xloc,Yloc", "-y", 'Cd,"Zn, total"', "--check").stdout
    )
