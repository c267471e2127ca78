"""Delimited text as spreadsheets, data loggers and R write it."""

import gzip

import pytest

from emgpr.io import read_table


@pytest.mark.parametrize(
    "text",
    [
        "x;Cd;of\n1,5;2,25;a,b\n",
        "x;Cd;of\n1.5;2,25;a,b\n",
        "x\tCd\tof\n1,5\t2,25\ta,b\n",
        "  x   Cd of\n 1,5  2,25 a,b\n",
        'x,Cd,of\n1.5,2.25,"a,b"\n',
        "\ufeffx;Cd;of\n1,5;2,25;a,b\n",
    ],
)
def test_separators_and_decimal_commas_are_found(tmp_path, text):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    table = read_table(tmp_path / "t.csv")
    assert table.columns.tolist() == ["x", "Cd", "of"]
    assert table.iloc[0].tolist() == [1.5, 2.25, "a,b"]


@pytest.mark.parametrize(
    "text",
    [
        "x, Cd , of\n1.5, 2.25, a\n",
        "x,Cd,of\n1.5,2.25,a,\n",  # rows end in a separator, the header does not
        'x,"\nCd",of\n1.5,2.25,a\n',
        "# from the lab\n#\nx,Cd,of\n1.5,2.25,a\n",
        '"x" "Cd" "of"\n"1" 1.5 2.25 "a"\n',  # R's write.table
        '"x","Cd","of"\n"7",1.5,2.25,"a"\n',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "gzip"])
def test_layouts_and_encodings_are_found(tmp_path, text, encoding):
    content = gzip.compress(text.encode()) if encoding == "gzip" else text.encode(encoding)
    (tmp_path / "t.csv").write_bytes(content)
    table = read_table(tmp_path / "t.csv", ["x", "Cd", "of"])
    assert table.to_numpy().tolist() == [[1.5, 2.25, "a"]]


@pytest.mark.parametrize("text", ["# x y\n1 2\n3 4\n", "#x,y\n1,2\n3,4\n"])
def test_the_header_may_be_a_comment(tmp_path, text):
    (tmp_path / "t.txt").write_text(text)
    assert read_table(tmp_path / "t.txt", ["x", "y"]).to_numpy().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,y\n1,5,2,5\n1,6,2,7\n", r"2 names in its header, but 4 fields in its rows.*decimal"),
        ("x,y\n0,5,2\n1,6,3\n", r"2 names in its header, but 3 fields"),
        ("x,y,x\n1,2,3\n", r"has several columns named 'x'; expected distinct names"),
        ("Survey of 2024,\n,\nx,y\n1,2\n", r"column names in line 3, .* Delete the lines above"),
    ],
)
def test_ambiguous_columns_are_rejected(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.csv", ["x", "y"])


def test_another_encoding_is_read_with_a_warning_or_as_stated(tmp_path):
    file = tmp_path / "t.csv"
    file.write_bytes("x,As µg/g\n1,2\n".encode("cp1252"))
    with pytest.warns(UserWarning, match=r"not encoded in UTF-8; .*'µ' for the byte 0xb5"):
        assert list(read_table(file)) == ["x", "As µg/g"]
    assert list(read_table(file, encoding="latin-1")) == ["x", "As µg/g"]
    with pytest.raises(ValueError, match=r"not encoded in ASCII: .* 0xb5 .*'CSV UTF-8'"):
        read_table(file, encoding="ascii")
    with pytest.raises(ValueError, match=r"encoding 'none' is unknown; expected a name such as"):
        read_table(file, encoding="none")
    file.write_bytes(b"x,y\n1,\x81\n")  # not in cp1252 either
    with pytest.raises(ValueError, match=r"not encoded in UTF-8: .* 0x81 .*encoding="):
        read_table(file)


def test_a_column_that_is_absent_is_named_in_any_encoding(tmp_path):
    (tmp_path / "t.csv").write_bytes("x,As µg/g\n1,2\n".encode("cp1252"))
    message = r"no column 'Cd'; its columns are: x, As µg"
    with (
        pytest.warns(UserWarning, match="not encoded in UTF-8"),
        pytest.raises(ValueError, match=message),
    ):
        read_table(tmp_path / "t.csv", ["x", "Cd"])


@pytest.mark.parametrize("separator", [";", "semicolon", None])
def test_a_separator_can_be_stated(tmp_path, separator):
    (tmp_path / "t.csv").write_text('"a, b, c";Cd\n1;2\n')
    assert list(read_table(tmp_path / "t.csv", separator=separator)) == ["a, b, c", "Cd"]
    assert next(iter(read_table(tmp_path / "t.csv", separator="space"))) == "a, b, c;Cd"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ";;"}, r"';;'; expected a single character, or one of comma, semicolon"),
        ({"decimal": ";"}, r"decimal mark is ';'; expected a point or a comma"),
        ({"separator": "comma", "decimal": ","}, r"the same; expected two different"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path, options, message):
    (tmp_path / "t.csv").write_text("x,Cd\n1,2\n")
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.csv", **options)


def test_quotes_that_are_not_closed_are_named(tmp_path):
    (tmp_path / "t.csv").write_text('x,of\n1,"clay\n2,sand\n')
    with pytest.raises(ValueError, match=r"Line 2 of .* has a quotation mark that is not closed"):
        read_table(tmp_path / "t.csv")


def test_a_column_of_numbers_is_not_taken_for_a_geoeas_header(tmp_path):
    (tmp_path / "t.csv").write_text("Cd\n1\n2\n3\n")
    assert read_table(tmp_path / "t.csv")["Cd"].tolist() == [1, 2, 3]
    (tmp_path / "t.dat").write_text("Soil\n2 10 10\nx\nCd (mg/kg)\n 1 0.5\n 2 -99\n")
    assert list(read_table(tmp_path / "t.dat")) == ["x", "Cd (mg/kg)"]
