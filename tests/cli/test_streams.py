"""Tables from stdin."""

from .commands import COLUMNS, invoke


def test_training_data_from_stdin(here):
    table = (here / "jura.csv").read_bytes()
    result = invoke("fit", "-", *COLUMNS, "--check", input=table)
    assert result.exit_code == 0
    assert "87 rows; 87 locations" in result.stdout
    empty = invoke("validate", "-", *COLUMNS, input=b"")
    assert empty.exit_code == 3
    assert empty.stderr == "emgpr: stdin is empty (0 bytes). Download or create it again.\n"
