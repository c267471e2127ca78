"""Commands as tests run them, and tables with something wrong."""

from pathlib import Path

import pandas as pd
from typer.testing import CliRunner

from emgpr.cli import app

COLUMNS = ("-x", "Xloc,Yloc", "-y", "Cd,Ni,Zn")
QUICK = (*COLUMNS, "--log", "--paper")


def invoke(*arguments, **options):
    arguments = [str(argument) for argument in arguments]
    return CliRunner().invoke(app, arguments, prog_name="emgpr", **options)


def succeed(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def refuse(code, *arguments):
    """Return the one line with which a command ends, after checking that no file changed."""
    before = contents()
    result = invoke(*arguments)
    assert result.exit_code == code, (result.output, result.exception)
    (line,) = [line for line in result.stderr.splitlines() if "emgpr: warning" not in line]
    assert line.startswith("emgpr: ")
    assert contents() == before
    return line


def contents():
    return {file.name: file.read_bytes() for file in Path().iterdir() if file.is_file()}


def changed(change, name="changed.csv", **how):
    """Write the Jura table after a change, and return the name of the file."""
    change(pd.read_csv("jura.csv")).to_csv(name, **({"index": False} | how))
    return name


def replaced(column, rows, value):
    def change(table):
        table[column] = table[column].astype(object)
        table.loc[rows, column] = value
        return table

    return change
