"""Rows are named as a person finds them: the line that is named contains the row."""

import gzip

import pytest

from emgpr.io import read_table
from emgpr.io.row_names import rows_in_file

TEXTS = {
    "plain": "x,Cd\n1,0.5\n2,777\n3,0.9\n",
    "comments and empty lines": "# Jura\n\nx,Cd\n1,0.5\n\n  \n2,777\n",
    "GeoEAS": "Jura\n2\nx\nCd\n1 0.5\n2 777\n",
    "names in a comment": "# x Cd\n1 0.5\n2 777\n",
    "spaces": "  x   Cd\n  1   0.5\n\n  2   777\n",
    "semicolons and decimal commas": "x;Cd\n1;0,5\n2;777\n",
    "Windows line ends": "x,Cd\r\n1,0.5\r\n\r\n2,777\r\n",
    "line breaks in quotes": 'x,"Cd\n(mg/kg)"\n1,"0.5"\n2,"777"\n',
    "a separator line": "sep=;\nx;Cd\n1;0.5\n2;777\n",
    "empty rows": "x,Cd\n1,0.5\n,\n2,777\n",
    "no line break at the end": "x,Cd\n1,0.5\n2,777",
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("name", TEXTS)
def test_the_line_that_is_named_contains_the_row(tmp_path, name, encoding):
    file = tmp_path / "t.csv"
    file.write_bytes(TEXTS[name].encode(encoding))
    row = int((read_table(file).iloc[:, 1] == 777).to_numpy().argmax())
    word, _, number = rows_in_file(file, [row]).partition(" ")
    assert word == "line"
    assert "777" in TEXTS[name].replace("\r\n", "\n").split("\n")[int(number) - 1]


def test_a_compressed_file_has_lines_too(tmp_path):
    file = tmp_path / "t.csv.gz"
    file.write_bytes(gzip.compress(TEXTS["comments and empty lines"].encode()))
    assert rows_in_file(file, [1]) == "line 7"


def test_a_given_separator_and_encoding_are_used(tmp_path):
    file = tmp_path / "t.csv"
    file.write_bytes("x|é\n1|0.5\n2|777\n".encode("latin-1"))
    assert rows_in_file(file, [0, 1], separator="|", encoding="latin-1") == "lines 2, 3"


def test_rows_of_other_files_are_counted_from_one(tmp_path):
    pytest.importorskip("pyarrow")
    read_table(_write(tmp_path)).to_parquet(tmp_path / "t.parquet")
    assert rows_in_file(tmp_path / "t.parquet", [0, 2]) == "rows 1, 3 (counted from 1)"


def test_rows_of_a_sheet_follow_the_header(tmp_path):
    pytest.importorskip("openpyxl")
    read_table(_write(tmp_path)).to_excel(tmp_path / "t.xlsx", index=False)
    assert rows_in_file(tmp_path / "t.xlsx", [0, 2]) == "rows 2, 4 of the sheet"


def _write(folder):
    file = folder / "t.csv"
    file.write_text(TEXTS["plain"])
    return file
