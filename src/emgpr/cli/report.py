"""The command `emgpr report`."""

from pathlib import Path
from typing import Annotated

import typer

from emgpr.cli.errors import progress
from emgpr.cli.files import check_output, read_model_with_data
from emgpr.cli.options import Force, ModelFile, Units
from emgpr.cli.parsing import parse_units


def report(
    model: ModelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page: an .html file.")],
    title: Annotated[str | None, typer.Option(help="Title; default: output names.")] = None,
    units: Units = None,
    force: Force = False,
) -> None:
    """Write an HTML report on a model: accuracy, maps, calibration, settings and provenance.

    The page opens offline in any browser, and its maps show the value under the pointer. Writing
    the report takes a few seconds and requires pip install 'emgpr[report]'.

    \b
    Examples:
      emgpr report jura.emgpr -o report.html
      emgpr report jura.emgpr --units Cd=mg/kg,Ni=mg/kg,Xloc=km,Yloc=km -o metals.html
    """
    check_output(out, force, (".html", ".htm"))
    fitted = read_model_with_data(model, "a report")
    by_name = parse_units(units, fitted.output_names_, fitted.training_data()[0].columns)
    from emgpr.report import write_report

    # Pass the path, not the model, because the report includes the file's name and checksum.
    page = write_report(model, out, title=title, units=by_name, verbose=progress())
    typer.echo(f"{page.stat().st_size / 1e6:.1f} MB: {page}")
