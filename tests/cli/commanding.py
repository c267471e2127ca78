"""The command line as tests call it, and Jura's table with something the matter."""

import pandas as pd
from typer.testing import CliRunner

from emgpr.cli import app

COLUMNS = ("-x", "Xloc,Yloc", "-y", "Cd,Ni,Zn")
QUICK = (*COLUMNS, "--log", "--paper")


def says(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="emgpr")


def done(*arguments):
    result = says(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def changed(change, name="messy.csv", **how):
    """The Jura table with something the matter, as a file."""
    table = change(pd.read_csv("jura.csv"))
    table.to_csv(name, **({"index": False} | how))
    return name


def replaced(column, rows, value):
    def change(table):
        table[column] = table[column].astype(object)
        table.loc[rows, column] = value
        return table

    return change
