"""Columns that are copied from one table to another."""

from emgpr.io.verbatim import read_columns_to_copy


def test_text_is_copied_as_it_is(tmp_path):
    path = tmp_path / "sites.csv"
    path.write_text("id,x,Cd\n007,1.50,0.2\n008,2.25,n.d.\n")
    copied = read_columns_to_copy(path, as_text=True)
    assert copied.to_numpy().tolist() == [["007", "1.50", "0.2"], ["008", "2.25", "n.d."]]


def test_a_table_has_one_decimal_mark(tmp_path):
    """Numbers with decimal commas get points, in columns with codes and limits, too."""
    path = tmp_path / "sites.csv"
    path.write_text("id;x;Cd;note\n007;1,50;0,2;a, b\n008;2,25;n.d.;\n009;3,00;<0,5;c\n")
    copied = read_columns_to_copy(path, as_text=True)
    assert copied["id"].tolist() == ["007", "008", "009"]
    assert copied["x"].tolist() == [1.5, 2.25, 3.0]
    assert copied["Cd"].tolist()[:2] == ["0.2", "n.d."]
    assert copied["note"].tolist()[0] == "a, b"
