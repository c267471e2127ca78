"""Tables from and to files of all formats."""

import sys

import numpy as np
import pandas as pd
import pytest

from emgpr.io import read_table, without_codes, write_table


@pytest.fixture
def table():
    return pd.DataFrame({"lon": [1.25, 2.5, 3.0], "Cd": [0.1, np.nan, 1 / 3], "n": [1, 2, 3]})


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet", "nc"])
def test_a_table_is_read_as_it_was_written(table, tmp_path, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    if ending == "nc":
        pytest.importorskip("xarray")
    file = tmp_path / f"t.{ending}"
    write_table(table, file)
    pd.testing.assert_frame_equal(read_table(file), table, check_dtype=False)
    assert list(tmp_path.iterdir()) == [file]  # no partial file is left


def test_the_ending_determines_separator_and_compression(table, tmp_path):
    for ending, start in ((".csv", b"lon,Cd"), (".tsv", b"lon\tCd"), (".csv.gz", b"\x1f\x8b")):
        write_table(table, tmp_path / f"t{ending}")
        assert (tmp_path / f"t{ending}").read_bytes().startswith(start)


def test_a_failed_write_names_the_file_and_leaves_the_old_one(table, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    write_table(table, tmp_path / "t.csv")
    monkeypatch.setattr(pd.DataFrame, "to_csv", full)
    with pytest.raises(OSError, match=r"t\.csv could not be written \(No space left"):
        write_table(table[:1], tmp_path / "t.csv")
    assert len(read_table(tmp_path / "t.csv")) == 3
    assert list(tmp_path.iterdir()) == [tmp_path / "t.csv"]


def test_codes_for_missing_values_become_nan():
    table = pd.DataFrame({"x": [1, 2, -9999], "Cd": ["<0.2", "0.5", " n.a."], "of": ["a", "-", ""]})
    clean = without_codes(table, ["-9999", "<0.2", "n.a.", "-"])
    assert clean["x"].isna().tolist() == [False, False, True]
    assert clean["Cd"].isna().tolist() == [True, False, True]
    assert clean.loc[1, "Cd"] == 0.5
    assert clean["of"].isna().tolist() == [False, True, False]
    assert table.loc[2, "x"] == -9999


def test_given_codes_come_before_all_other_interpretations(tmp_path):
    (tmp_path / "t.csv").write_text("x;Cd;Zn\n1;<0,5;-9,99\n2;0,7;1,5\n3;-9,99;2,5\n")
    table = read_table(tmp_path / "t.csv", missing=["<0,5", "-9,99"])
    assert table["Cd"].isna().tolist() == [True, False, True]
    table = read_table(tmp_path / "t.csv", ["Zn"], missing=["-9.99"])
    assert table["Zn"].isna().tolist() == [True, False, False]


def test_a_netcdf_grid_becomes_rows_and_keeps_units(tmp_path):
    xarray = pytest.importorskip("xarray")
    values = np.array([[1.0, np.nan], [3.0, 4.0]])
    data = xarray.Dataset(
        {"Cd": (("y", "x"), values, {"units": "mg/kg"}), "crs": ((), 0)},
        coords={"y": [10.0, 20.0], "x": [1.0, 2.0]},
    )
    data.to_netcdf(tmp_path / "g.nc", engine="h5netcdf")
    table = read_table(tmp_path / "g.nc", ["x", "y", "Cd"])
    assert table.to_numpy().tolist() == [[1, 10, 1], [1, 20, 3], [2, 20, 4]]
    whole = read_table(tmp_path / "g.nc")
    assert whole.attrs["units"] == {"Cd": "mg/kg"}
    write_table(whole, tmp_path / "again.nc")
    assert read_table(tmp_path / "again.nc").attrs["units"] == {"Cd": "mg/kg"}


def test_a_file_without_columns_is_rejected(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame().to_parquet(tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=r"t\.parquet has no columns"):
        read_table(tmp_path / "t.parquet")


def test_missing_columns_are_named_with_similar_ones(table, tmp_path):
    write_table(table, tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"t\.csv has no columns 'Lon' \(did you mean 'lon'\?\),"):
        read_table(tmp_path / "t.csv", ["Lon", "Zn"])
    write_table(pd.DataFrame(np.zeros((1, 40))), tmp_path / "t.csv")
    with pytest.raises(ValueError, match=r"no column 'Zn'; its columns .* 29, … \(40 in all\)"):
        read_table(tmp_path / "t.csv", ["Zn"])


def test_missing_files_and_folders(table, tmp_path):
    write_table(table, tmp_path / "sites.csv")
    with pytest.raises(FileNotFoundError, match=r"no file .*site\.csv.*Did you mean sites\.csv"):
        read_table(tmp_path / "site.csv")
    with pytest.raises(FileNotFoundError, match=r"no file .*Check the path"):
        read_table(tmp_path / "nowhere" / "site.csv")
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(FileNotFoundError, match=r"is a folder"):
        read_table(tmp_path / "d.csv")
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere to write"):
        write_table(table, tmp_path / "nowhere" / "t.csv")


@pytest.mark.parametrize(
    ("ending", "name", "module"),
    [("csv", "CSV", "pandas"), ("parquet", "Parquet", "pyarrow"), ("nc", "NetCDF 4", "h5netcdf")],
)
def test_files_of_another_format_are_rejected(tmp_path, ending, name, module):
    pytest.importorskip(module)
    file = tmp_path / f"t.{ending}"
    file.write_bytes(b"\n")
    with pytest.raises(ValueError, match=rf"t\.{ending} cannot be read as {name}.*create it again"):
        read_table(file)
    file.write_bytes(b"")
    with pytest.raises(ValueError, match=rf"t\.{ending} is empty \(0 bytes\)"):
        read_table(file)


def test_unknown_endings_are_rejected(table, tmp_path):
    with pytest.raises(ValueError, match=r"from its ending; expected one of \.c"):
        write_table(table, tmp_path / "t.doc")
    (tmp_path / "t.ods").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"expected one of \.csv.*Save the sheet as 'CSV UTF-8'"):
        read_table(tmp_path / "t.ods")


@pytest.mark.parametrize(
    ("ending", "module", "extra"),
    [("parquet", "pyarrow", "parquet"), ("nc", "xarray", "geo"), ("xlsx", "openpyxl", "excel")],
)
def test_a_missing_package_is_named_with_its_extra(
    table, tmp_path, monkeypatch, ending, module, extra
):
    monkeypatch.setitem(sys.modules, module, None)
    file = tmp_path / f"t.{ending}"
    file.write_bytes(b"1")
    for work in (lambda: write_table(table, file), lambda: read_table(file)):
        with pytest.raises(ImportError, match=rf"needs {module}, .*pip install 'emgpr\[{extra}\]'"):
            work()


def test_slashes_in_names_are_replaced_in_netcdf(tmp_path):
    pytest.importorskip("h5netcdf")
    table = pd.DataFrame({"x": [1.0, 2.0], "Cd (mg/kg)": [0.5, 0.7], "Zn (mg/kg)": [5.0, 7.0]})
    table.attrs["units"] = {"Cd (mg/kg)": "mg/kg"}
    with pytest.warns(UserWarning, match=r"'Cd \(mg/kg\)' is written as 'Cd \(mg_kg\)' and so on"):
        write_table(table, tmp_path / "t.nc")
    read = read_table(tmp_path / "t.nc")
    assert set(read.columns) == {"x", "Cd (mg_kg)", "Zn (mg_kg)"}
    assert read["Cd (mg_kg)"].tolist() == [0.5, 0.7]
    assert read.attrs["units"] == {"Cd (mg_kg)": "mg/kg"}
    with pytest.raises(ValueError, match="Several columns would be named 'a_b'"):
        write_table(pd.DataFrame({"a/b": [1.0], "a_b": [2.0]}), tmp_path / "t.nc")
