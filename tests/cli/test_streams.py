"""Tables from stdin."""

import os

import pandas as pd
import pytest

from .commands import COLUMNS, invoke


def test_training_data_from_stdin(here):
    table = (here / "jura.csv").read_bytes()
    result = invoke("fit", "-", *COLUMNS, "--check", input=table)
    assert result.exit_code == 0
    assert "87 rows; 87 locations" in result.stdout
    empty = invoke("validate", "-", *COLUMNS, input=b"")
    assert empty.exit_code == 3
    assert empty.stderr == "emgpr: stdin is empty (0 bytes). Download or create it again.\n"


def test_a_workbook_from_stdin_is_recognised(here):
    pytest.importorskip("openpyxl")
    pd.read_csv("jura.csv").to_excel("t.xlsx", index=False)
    content = (here / "t.xlsx").read_bytes()
    (here / "t.csv").write_bytes(content)
    for source, given in (("-", content), ("t.csv", None)):
        result = invoke("fit", source, *COLUMNS, "--check", input=given)
        assert result.exit_code == 3
        assert "is not a text file, but an Excel workbook (.xlsx)" in result.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_not_a_file(here):
    os.mkfifo("pipe.csv")
    result = invoke("fit", "pipe.csv", *COLUMNS, "--check")
    assert result.exit_code == 3
    assert "pipe.csv is a pipe or a device, not a file. Write its content" in result.stderr
