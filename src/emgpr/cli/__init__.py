"""The command line, `emgpr`. Commands import what they need when they run, so help is instant."""

from typing import Annotated

import typer

from emgpr.cli.complaints import Complaining
from emgpr.cli.demo import demo
from emgpr.cli.example import example
from emgpr.cli.fit import fit
from emgpr.cli.grid import grid
from emgpr.cli.plot import plot
from emgpr.cli.predict import predict
from emgpr.cli.report import report
from emgpr.cli.reproduce import reproduce
from emgpr.cli.swath import swath
from emgpr.cli.validate import validate

__all__ = ["app"]

app = typer.Typer(
    name="emgpr",
    cls=Complaining,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(example)
for command in (fit, predict, grid, validate, plot, report, swath):
    app.command(no_args_is_help=True)(command)
app.command()(demo)
app.add_typer(reproduce, name="reproduce")


def _say_version(asked: bool) -> None:
    if asked:
        from emgpr import __version__

        typer.echo(f"emgpr {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_say_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    traceback: Annotated[
        bool,
        typer.Option(
            "--traceback", envvar="EMGPR_TRACEBACK", help="Show where an error came from."
        ),
    ] = False,
) -> None:
    """Several correlated outputs, predicted with honest uncertainty where they were not measured.

    \b
    Examples:
      emgpr example          jura.csv and other small files, for the examples of every command
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn -o jura.emgpr
      emgpr predict jura.emgpr --at new.csv -o predicted.csv
      emgpr grid jura.emgpr --spacing 0.1 --inside region.geojson -o jura.nc
      emgpr validate jura.emgpr          how good it is, by leaving out
      emgpr plot jura.emgpr maps -o maps.png
      emgpr report jura.emgpr -o report.html
      emgpr swath TATMS_….h5 GATMO_….h5 --channels 1-10 --grid 0.25 -o atms.nc
      emgpr demo          real data end to end, in half a minute

    \b
    Exit codes: 0 done, 2 usage, 3 data, 4 numerical, 5 done but members of the ensemble failed,
    130 interrupted, 1 unforeseen.
    """
