"""`emgpr report`."""

from pathlib import Path
from typing import Annotated

import typer

from emgpr.cli import options as given
from emgpr.cli.complaints import progress
from emgpr.cli.files import read_model, to_write


def report(
    model: given.ModelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page: an .html file.")],
    title: Annotated[str | None, typer.Option(help="Instead of the names of the outputs.")] = None,
    units: given.Units = None,
    force: given.Force = False,
) -> None:
    """One HTML page about a model: accuracy, maps, calibration, settings, provenance.

    It opens offline in any browser, and the maps show their values under the pointer. Some seconds.

    \b
    Examples:
      emgpr report jura.emgpr -o report.html
      emgpr report jura.emgpr --units Cd=mg/kg,Ni=mg/kg,Xloc=km,Yloc=km -o metals.html
    """
    to_write(out, force, (".html", ".htm"))
    named = given.units_of(units)
    fitted = read_model(model, for_readings="a report")
    if isinstance(named, dict):
        given.known_to(fitted, named, "--units", inputs=True)
    from emgpr.report import write_report

    page = write_report(model, out, title=title, units=named, verbose=progress())
    typer.echo(f"{page.stat().st_size / 1e6:.1f} MB: {page}")
