"""`emgpr report`."""

from pathlib import Path
from typing import Annotated

import typer

from emgpr.cli.complaints import USAGE, complain, progress


def report(
    model: Annotated[Path, typer.Argument(help="A model that was saved: an .emgpr file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page: an .html file.")],
    title: Annotated[str | None, typer.Option(help="Instead of the names of the outputs.")] = None,
    units: Annotated[
        str | None,
        typer.Option(help="Of outputs and inputs: Cd=mg/kg,Xloc=km. Or one for all outputs."),
    ] = None,
) -> None:
    """One HTML page about a model: accuracy, maps, calibration, settings, provenance.

    It opens offline in any browser, and the maps show their values under the pointer. Some seconds.

    \b
    Examples:
      emgpr report jura.emgpr -o report.html
      emgpr report jura.emgpr -o report.html --units Cd=mg/kg,Ni=mg/kg,Xloc=km,Yloc=km
    """
    given = _units(units)
    from emgpr.report import write_report

    page = write_report(model, out, title=title, units=given, verbose=progress())
    typer.echo(f"{page.stat().st_size / 1e6:.1f} MB: {page}")


def _units(text: str | None) -> str | dict[str, str] | None:
    """As on the command line: one unit for all outputs, or name=unit with commas between."""
    if text is None or "=" not in text:
        return text
    pairs = [part.partition("=") for part in text.split(",")]
    odd = [name for name, equals, unit in pairs if not (name and equals and unit)]
    if odd:
        raise complain(
            f"--units {text}: {odd[0]!r} has no unit. Expected name=unit with commas between.",
            USAGE,
        )
    return {name.strip(): unit.strip() for name, _, unit in pairs}
