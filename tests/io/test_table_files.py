"""Tables from and to files."""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest

from emgpr.io import read_table, without_codes, write_table


@pytest.fixture
def table():
    return pd.DataFrame({"lon": [1.25, 2.5, 3.0], "Cd": [0.1, np.nan, 1 / 3], "n": [1, 2, 3]})


@pytest.mark.parametrize("end", ["csv", "csv.gz", "tsv", "parquet", "nc"])
def test_there_and_back(table, tmp_path, end):
    if end == "parquet":
        pytest.importorskip("pyarrow")
    if end == "nc":
        pytest.importorskip("xarray")
    write_table(table, tmp_path / f"t.{end}")
    again = read_table(tmp_path / f"t.{end}")
    pd.testing.assert_frame_equal(again, table, check_dtype=False)
    assert list(tmp_path.iterdir()) == [tmp_path / f"t.{end}"]  # nothing half-written beside it


@pytest.mark.parametrize(
    "text",
    [
        "x;Cd;of\n1,5;2,25;a,b\n",
        "x;Cd;of\n1.5;2.25;a,b\n",
        "x;Cd;of\n1.5;2,25;a,b\n",
        "x\tCd\tof\n1,5\t2,25\ta,b\n",
        "  x   Cd of\n 1,5  2,25 a,b\n",
        "x,Cd,of\n1.5,2.25,'a,b'\n".replace("'", '"'),
        "\ufeffx;Cd;of\n1,5;2,25;a,b\n",
    ],
)
def test_separators_and_decimal_commas(tmp_path, text):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    table = read_table(tmp_path / "t.csv")
    assert table.columns.tolist() == ["x", "Cd", "of"]
    assert table.iloc[0].tolist() == [1.5, 2.25, "a,b"]


@pytest.mark.parametrize(
    "text",
    [
        "x, Cd , of\n1.5, 2.25, a\n",
        "x,Cd,of\n1.5,2.25,a,\n",  # a separator at the end of rows alone
        'x,"\nCd",of\n1.5,2.25,a\n',
        "# from the lab\n#\nx,Cd,of\n1.5,2.25,a\n",
        '"x" "Cd" "of"\n"1" 1.5 2.25 "a"\n',  # R's write.table
        '"x","Cd","of"\n"7",1.5,2.25,"a"\n',
    ],
)
@pytest.mark.parametrize("how", ["utf-8", "utf-16", "gzip"])
def test_as_spreadsheets_loggers_and_r_write_it(tmp_path, text, how):
    content = gzip.compress(text.encode()) if how == "gzip" else text.encode(how)
    (tmp_path / "t.csv").write_bytes(content)
    table = read_table(tmp_path / "t.csv", ["x", "Cd", "of"])
    assert table.to_numpy().tolist() == [[1.5, 2.25, "a"]]


@pytest.mark.parametrize("text", ["# x y\n1 2\n3 4\n", "#x,y\n1,2\n3,4\n"])
def test_names_behind_the_mark_of_a_comment(tmp_path, text):
    (tmp_path / "t.txt").write_text(text)
    assert read_table(tmp_path / "t.txt", ["x", "y"]).to_numpy().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x,y\n1,5,2,5\n1,6,2,7\n", r"2 names in its header and 4 fields in its rows.*decimals"),
        ("x,y\n0,5,2\n1,6,3\n", r"2 names in its header and 3 fields"),
        ("x,y,x\n1,2,3\n", r"has several columns 'x'; give each another name"),
        ("Survey of 2024,\n,\nx,y\n1,2\n", r"has its names in line 3, .* delete the lines above"),
    ],
)
def test_no_column_is_taken_for_another(tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        read_table(tmp_path / "t.csv", ["x", "y"])


def test_a_spreadsheet_is_told_how_to_be_a_table(tmp_path):
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"expected \.csv.*Save the sheet as 'CSV UTF-8'"):
        read_table(tmp_path / "t.xlsx")


def test_what_cannot_be_written_names_the_file_and_leaves_nothing(table, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(OSError, match=r"t\.csv could not be written \(No space left"):
        write_table(table, tmp_path / "t.csv")
    assert not list(tmp_path.iterdir())


def test_an_empty_file(tmp_path):
    (tmp_path / "t.csv").touch()
    with pytest.raises(ValueError, match=r"t\.csv is empty: 0 bytes"):
        read_table(tmp_path / "t.csv")


def test_text_in_another_encoding_is_told_with_the_remedy(tmp_path):
    (tmp_path / "t.csv").write_bytes("x,As µg/g\n1,2\n".encode("cp1252"))
    with pytest.raises(ValueError, match=r"not text in UTF-8: .* 0xb5 \('µ' .*'CSV UTF-8'"):
        read_table(tmp_path / "t.csv")


def test_codes_for_missing_values():
    table = pd.DataFrame({"x": [1, 2, -9999], "Cd": ["<0.2", "0.5", " n.a."], "of": ["a", "-", ""]})
    clean = without_codes(table, ["-9999", "<0.2", "n.a.", "-"])
    assert clean["x"].isna().tolist() == [False, False, True]
    assert clean["Cd"].isna().tolist() == [True, False, True]
    assert clean.loc[1, "Cd"] == 0.5
    assert clean["of"].isna().tolist() == [False, True, False]
    assert table.loc[2, "x"] == -9999


def test_a_grid_becomes_rows_and_keeps_units(tmp_path):
    xarray = pytest.importorskip("xarray")
    values = np.array([[1.0, np.nan], [3.0, 4.0]])
    data = xarray.Dataset(
        {"Cd": (("y", "x"), values, {"units": "mg/kg"}), "crs": ((), 0)},
        coords={"y": [10.0, 20.0], "x": [1.0, 2.0]},
    )
    data.to_netcdf(tmp_path / "g.nc", engine="h5netcdf")
    table = read_table(tmp_path / "g.nc", ["x", "y", "Cd"])
    assert table.to_numpy().tolist() == [[1, 10, 1], [1, 20, 3], [2, 20, 4]]
    assert read_table(tmp_path / "g.nc").attrs["units"] == {"Cd": "mg/kg"}


def test_columns_that_are_not_there(table, tmp_path):
    write_table(table, tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"t\.csv has no columns 'Lon' \(is 'lon' meant\?\), 'Zn'"):
        read_table(tmp_path / "t.csv", ["Lon", "Zn"])


def test_files_that_are_not_there(table, tmp_path):
    write_table(table, tmp_path / "sites.csv")
    with pytest.raises(FileNotFoundError, match=r"no file .*site\.csv.*There is sites\.csv"):
        read_table(tmp_path / "site.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(FileNotFoundError, match=r"is a folder"):
        read_table(tmp_path / "d.csv")
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere to write"):
        write_table(table, tmp_path / "nowhere" / "t.csv")


@pytest.mark.parametrize(
    ("end", "what", "module"),
    [("csv", "CSV", "pandas"), ("parquet", "Parquet", "pyarrow"), ("nc", "NetCDF", "h5netcdf")],
)
def test_files_that_are_something_else(tmp_path, end, what, module):
    pytest.importorskip(module)
    (tmp_path / f"t.{end}").write_bytes(b"\n")
    with pytest.raises(ValueError, match=rf"t\.{end} cannot be read as {what}.*fetch it again"):
        read_table(tmp_path / f"t.{end}")


def test_an_ending_that_says_nothing(table, tmp_path):
    with pytest.raises(ValueError, match=r"told by the ending; expected \.csv"):
        write_table(table, tmp_path / "t.doc")


@pytest.mark.parametrize(
    ("end", "module", "extra"), [("parquet", "pyarrow", "parquet"), ("nc", "xarray", "geo")]
)
def test_without_the_extra_the_error_names_it(table, tmp_path, monkeypatch, end, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / f"t.{end}").write_bytes(b"1")
    for work in (lambda f: write_table(table, f), read_table):
        with pytest.raises(ImportError, match=rf"needs {module}: pip install 'emgpr\[{extra}\]'"):
            work(tmp_path / f"t.{end}")
