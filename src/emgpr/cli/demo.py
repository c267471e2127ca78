"""`emgpr demo`."""

from pathlib import Path
from typing import Annotated

import typer

from emgpr.cli.complaints import folder, progress


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("emgpr-demo"),
) -> None:
    """Heavy metals in the soil of the Swiss Jura: fit, compare, map. Takes a minute.

    \b
    Examples:
      emgpr demo
      emgpr demo --out maps
    """
    figure = folder(out) / "jura.png"

    from emgpr.experiments.demo import compare, draw_maps
    from emgpr.experiments.jura_results import SHORT, table_1, table_1_text

    typer.echo(
        "Cadmium at 100 sites where it was withheld, from nickel and zinc there and from all\n"
        "three at 259 other sites: mean absolute error in mg/kg, the paper's printed figure, and\n"
        "the difference from GP (no transfer), paired over the sites, ± its standard error.\n"
    )
    run = [entry for entry in table_1(compare(verbose=progress())) if entry["restarts"]]
    typer.echo(table_1_text(run, SHORT))
    draw_maps(verbose=progress()).savefig(figure, dpi=150)
    typer.echo(f"\nMaps of Cd, Ni and Zn, and how uncertain they are: {figure}")
