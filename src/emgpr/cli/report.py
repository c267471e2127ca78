"""The command `emgpr report`."""

from pathlib import Path
from typing import Annotated

import typer

from emgpr.cli.errors import progress
from emgpr.cli.files import check_output, read_model_with_data
from emgpr.cli.options import Force, ModelFile, Outputs, Resolution, Units
from emgpr.cli.parsing import parse_names, parse_units


def report(
    model: ModelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page: an .html file.")],
    title: Annotated[str | None, typer.Option(help="Title; default: outputs and sites.")] = None,
    outputs: Outputs = None,
    units: Units = None,
    resolution: Resolution = None,
    force: Force = False,
) -> None:
    """Write an HTML report on a model: accuracy, maps, calibration, settings and provenance.

    The page opens offline in any browser, and its maps show the value under the pointer. Writing
    the report takes seconds, or minutes for large tables. It requires pip install 'emgpr[report]'.

    \b
    Examples:
      emgpr report jura.emgpr -o report.html
      emgpr report jura.emgpr --title "Metals in the Jura" --resolution 120 -o metals.html
      emgpr report jura.emgpr --units Cd=mg/kg,Ni=mg/kg,Xloc=km,Yloc=km -o units.html
    """
    check_output(out, force, (".html", ".htm"))
    fitted = read_model_with_data(model, "a report")
    by_name = parse_units(units, fitted.output_names_, fitted.training_data()[0].columns)
    shown = parse_names(outputs, "--outputs", fitted.output_names_) or None
    from emgpr.report import write_report

    # Pass the path, not the model, because the report includes the file's name and checksum.
    page = write_report(
        model, out, outputs=shown, title=title, units=by_name, resolution=resolution,
        verbose=progress(),
    )  # fmt: skip
    typer.echo(f"{page.stat().st_size / 1e6:.1f} MB: {page}")
