"""The command line, `emgpr`. Commands import what they need when they run, so help is instant."""

from typing import Annotated

import typer

from emgpr.cli.complaints import Complaining
from emgpr.cli.demo import demo
from emgpr.cli.report import report
from emgpr.cli.reproduce import reproduce
from emgpr.cli.swath import swath

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
app.command()(demo)
app.command(no_args_is_help=True)(report)
app.command(no_args_is_help=True)(swath)
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
      emgpr demo                            real data end to end, in half a minute
      emgpr report jura.emgpr -o report.html
      emgpr swath TATMS_….h5 GATMO_….h5 --channels 1-10 --grid 0.25 -o atms.nc
      emgpr reproduce jura                  the paper's first table and its figures
      emgpr reproduce atms --tdr TATMS_….h5 --geo GATMO_….h5

    \b
    Exit codes: 0 done, 2 usage, 3 data, 4 numerical, 5 done but members of the ensemble failed,
    130 interrupted, 1 unforeseen.
    """
