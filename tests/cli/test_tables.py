"""Tables with something wrong: one line says what, where and what to do."""

import pandas as pd
import pytest

from .commands import COLUMNS, changed, refuse, replaced, succeed

CHECK = (*COLUMNS, "--check")


def with_units(table):
    units = {"Xloc": ["km"], "Yloc": "km", "Cd": "mg/kg", "Ni": "mg/kg", "Zn": "mg/kg"}
    return pd.concat([pd.DataFrame(units), table])


@pytest.mark.parametrize(
    ("change", "options", "text"),
    [
        (replaced("Cd", 4, "low"), (), "contains text in 1 of 87 rows ('low'); the first is 'low'"),
        (replaced("Cd", 4, "low"), ("--missing", "-1"), "or add --missing '-1,low'"),
        (with_units, (), "apparently units. Delete that row, or add --missing 'km,mg/kg'"),
        (lambda t: t.assign(Xloc="1,200.5"), (), "'1,200.5' in line 2. It has thousands"),
        (lambda t: t.assign(Cd="2024-05-01"), (), "contains dates (2024-05-01), which can only be"),
        (lambda t: t.assign(Cd=20240501), (), "Output 'Cd' contains dates written as numbers"),
        (replaced("Cd", 4, -0.1), ("--log",), "needs positive values"),
        (lambda t: t.assign(Xloc=None), (), "has all coordinates (Xloc, Yloc)"),
    ],
)
def test_values_that_cannot_be_used(here, change, options, text):
    assert text in refuse(3, "fit", changed(change), *CHECK, *options)


def test_files_and_columns_that_cannot_be_read(here):
    (here / "empty.csv").touch()
    (here / "header.csv").write_text("Xloc,Yloc,Cd,Ni,Zn\n")
    assert "is empty" in refuse(3, "fit", "empty.csv", *CHECK)
    assert "has all coordinates" in refuse(3, "fit", "header.csv", *CHECK)
    assert "jura.csv" in refuse(3, "fit", "jur.csv", *CHECK)
    inputs = ("fit", "jura.csv", "-x", "Xloc,Yloc", "--check", "-y")
    assert "did you mean 'Ni'?" in refuse(3, *inputs, "Cd,NI")
    assert "'Sequanian'" in refuse(3, *inputs, "Cd,Rock")


def test_codes_for_missing_values_are_refused_unless_missing_says_what_they_are(here):
    def with_codes(table):
        table.loc[[3, 9, 20], "Zn"] = -9999
        table.loc[[4, 5], "Cd"] = 1e30
        return table

    file = changed(with_codes)
    line = refuse(3, "fit", file, *CHECK)
    assert "'Cd' contains 1e+30 (2 of 87 values)" in line
    assert "Leave these cells empty, or add --missing 1e+30,-9999. If these are" in line
    removed = succeed("fit", file, *CHECK, "--missing", "-9999,1e30")
    assert removed.stderr == ""
    assert "\nZn        84        3 " in removed.stdout
    kept = succeed("fit", file, *CHECK, "--missing", "none")
    assert "emgpr: warning: Output 'Zn' contains -9999" in kept.stderr


def test_rows_without_coordinates_are_left_out_with_a_warning(here):
    rows = [7, 9, 20, 30, 40, 50]
    result = succeed("fit", changed(lambda t: t.assign(Xloc=t["Xloc"].drop(rows))), *CHECK)
    assert "81 rows; 81 locations" in result.stdout
    assert (
        "6 of 87 rows (lines 9, 11, 22, 32, 42, …) have no coordinates; they are ignored."
        in result.stderr
    )


def test_a_warning_with_the_option_to_add_is_not_repeated_by_the_fit(here):
    file = changed(lambda t: t.rename(columns={"Xloc": "lon", "Yloc": "lat"}))
    columns = ("-x", "lon,lat", "-y", "Cd,Ni,Zn", "--log", "--paper")
    result = succeed("fit", file, *columns, "-o", "flat.emgpr")
    (line,) = result.stderr.splitlines()
    assert "used as plane coordinates" in line
    assert line.endswith("Add --crs EPSG:4326.")


def test_names_that_contain_commas_are_quoted(here):
    file = changed(lambda t: t.rename(columns={"Zn": "Zn, total"}))
    columns = ("-x", "Xloc,Yloc", "-y", 'Cd,"Zn, total"')
    assert "Zn, total" in succeed("fit", file, *columns, "--check").stdout


def test_messages_name_lines_of_the_file(here):
    def change(table):
        table.loc[2, ["Cd", "Ni", "Zn"]] = None
        table.loc[5, "Xloc"] = None
        table.loc[[7, 9], "Cd"] = 0.0
        return table

    table = (here / changed(change)).read_text().splitlines()
    (here / "t.csv").write_text("\n".join(["# Jura", *table[:4], "", *table[4:]]) + "\n")
    checked = succeed("fit", "t.csv", *CHECK).stderr
    assert "1 of 87 rows (line 9) have no coordinates" in checked
    assert "Nothing was measured in 1 of 86 rows, which are ignored: line 5." in checked
    for command in (("fit", "t.csv", *CHECK), ("validate", "t.csv", *COLUMNS, "--folds", "2")):
        line = refuse(3, *command, "--log")
        assert "the first of them in lines 11, 13" in line
        assert "counted" not in line


def test_messages_name_rows_of_a_sheet(here):
    pytest.importorskip("openpyxl")
    frame = pd.read_csv("jura.csv").astype({"Cd": object})
    frame.loc[4, "Cd"] = "low"
    frame.to_excel("t.xlsx", index=False)
    assert "the first is 'low' in row 6 of the sheet." in refuse(3, "fit", "t.xlsx", *CHECK)


def test_messages_count_rows_of_other_files_from_one(here):
    pytest.importorskip("pyarrow")
    pd.read_csv("jura.csv").assign(Xloc=lambda t: t["Xloc"].drop([4])).to_parquet("t.parquet")
    stderr = succeed("fit", "t.parquet", *CHECK).stderr
    assert "rows (row 5 (counted from 1)) have no coordinates" in stderr


def test_a_table_without_column_names(here):
    lines = (here / "jura.csv").read_text().splitlines()[1:]
    (here / "t.csv").write_text("\n".join(",".join(line.split(",")[:2]) for line in lines))
    line = refuse(3, "fit", "t.csv", *CHECK)
    assert line.endswith("If these are values, insert a line with column names above them.")
