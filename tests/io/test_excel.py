"""Tables in Excel workbooks."""

import pandas as pd
import pytest

from emgpr.io import read_table, write_table

pytest.importorskip("openpyxl")

TABLE = pd.DataFrame(
    {
        "day": pd.to_datetime(["2024-01-31", "2024-02-01", "2024-02-03"]),
        "x": [1.5, 2.5, 3.5],
        "Cd": ["<0.5", 0.7, "n.d."],
    }
)


def test_cells_are_read_as_in_text_files(tmp_path):
    TABLE.to_excel(tmp_path / "t.xlsx", index=False)
    with (
        pytest.warns(UserWarning, match=r"'n.d.' in column 'Cd' \(1 of 3 cells\)"),
        pytest.warns(UserWarning, match=r"'<0.5' in 1 cell as 0.25"),
    ):
        table = read_table(tmp_path / "t.xlsx", ["day", "x", "Cd"])
    assert table["Cd"].iloc[:2].tolist() == [0.25, 0.7]
    assert table["day"].dtype.kind == "M"


def test_a_table_is_read_as_it_was_written(tmp_path):
    numbers = TABLE.assign(Cd=[0.25, 0.7, None])
    write_table(numbers, tmp_path / "t.xlsx")
    pd.testing.assert_frame_equal(read_table(tmp_path / "t.xlsx"), numbers, check_dtype=False)


def test_several_sheets_are_told(tmp_path):
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        for sheet in ("first", "second"):
            TABLE[["x"]].to_excel(book, sheet_name=sheet, index=False)
    with pytest.warns(UserWarning, match="has 2 sheets; only the first, 'first', is read"):
        read_table(tmp_path / "t.xlsx")


def test_repeated_names_and_options_for_text_files_are_refused(tmp_path):
    TABLE.set_axis(["Cd", "x", "Cd"], axis=1).to_excel(tmp_path / "t.xlsx", index=False)
    with pytest.raises(ValueError, match="several columns named 'Cd'"):
        read_table(tmp_path / "t.xlsx", ["Cd"])
    with pytest.raises(ValueError, match="is not a text file, so its decimal cannot be set"):
        read_table(tmp_path / "t.xlsx", decimal=",")


@pytest.mark.parametrize("above", [[["Survey", "", ""], ["", "", ""]], [["Place", "", "Metals"]]])
def test_a_header_below_other_rows_is_named(tmp_path, above):
    rows = [*above, ["day", "x", "Cd"], *TABLE.to_numpy().tolist()]
    pd.DataFrame(rows).to_excel(tmp_path / "t.xlsx", index=False, header=False)
    place = f"column names in row {len(above) + 1} of the sheet, but they must come first. "
    with pytest.raises(ValueError, match=f"{place}Delete the rows above it.$"):
        read_table(tmp_path / "t.xlsx", ["day", "x", "Cd"])
    with pytest.raises(ValueError, match="has no column 'Zn'"):
        read_table(tmp_path / "t.xlsx", ["Zn"])
