"""The command-line program `emgpr`. Each command has its own file.

Commands import large packages only when they run, so that `emgpr --help` does not load SciPy.
"""

from typing import Annotated

import typer

from emgpr.cli.demo import demo
from emgpr.cli.errors import CommandGroup
from emgpr.cli.example import example
from emgpr.cli.fit import fit
from emgpr.cli.grid import grid
from emgpr.cli.options import expand_groups
from emgpr.cli.plot import plot
from emgpr.cli.predict import predict
from emgpr.cli.report import report
from emgpr.cli.reproduce import reproduce
from emgpr.cli.swath import swath
from emgpr.cli.validate import validate

__all__ = ["app"]

app = typer.Typer(
    name="emgpr",
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(example)
for command in (fit, predict, grid, validate, plot, report, swath):
    app.command(no_args_is_help=True)(expand_groups(command))
app.command()(demo)
app.add_typer(reproduce, name="reproduce")


def _print_version(requested: bool) -> None:
    if requested:
        from emgpr import __version__

        typer.echo(f"emgpr {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    traceback: Annotated[
        bool,
        typer.Option(
            "--traceback", envvar="EMGPR_TRACEBACK", help="Show the traceback of an error."
        ),
    ] = False,
) -> None:
    """Multi-output Gaussian process regression with calibrated uncertainty.

    \b
    Examples:
      emgpr example          write jura.csv and the other files that these examples use
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn -o jura.emgpr
      emgpr predict jura.emgpr --at new.csv -o predicted.csv
      emgpr grid jura.emgpr --spacing 0.1 --inside region.geojson -o region.nc
      emgpr validate jura.emgpr          measure the accuracy of predictions
      emgpr plot jura.emgpr maps -o maps.png
      emgpr report jura.emgpr -o report.html
      emgpr swath TATMS_….h5 GATMO_….h5 --channels 1-10 --grid 0.25 -o atms.nc
      emgpr demo          compare models on real data and draw maps (takes a minute)

    \b
    Exit codes: 0 success, 2 wrong usage, 3 invalid data, 4 numerical error, 5 success although
    some ensemble members failed, 130 interrupted, 1 unexpected error.
    """
