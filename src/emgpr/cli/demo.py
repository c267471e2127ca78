"""The command `emgpr demo`."""

from pathlib import Path
from typing import Annotated

import typer

from emgpr.cli.errors import progress
from emgpr.cli.files import check_output, create_folder


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("emgpr-demo"),
) -> None:
    """Compare models of heavy metals in the soil of the Swiss Jura, and draw maps.

    This takes about a minute.

    \b
    Examples:
      emgpr demo
      emgpr demo --out maps
    """
    figure = create_folder(out) / "jura.png"
    check_output(figure, force=True)

    from emgpr.experiments.demo import compare, draw_maps
    from emgpr.experiments.jura_results import SHORT, table_1, table_1_text
    from emgpr.plots.save import save_figure

    typer.echo(
        "Cadmium at 100 sites is predicted from nickel and zinc at these sites and from all three\n"
        "metals at 259 other sites. The columns show the mean absolute error in mg/kg, the value\n"
        "published in the paper, and the difference in error from GP (a model without transfer),\n"
        "paired by site, with its standard error.\n"
    )
    entries = [entry for entry in table_1(compare(verbose=progress())) if entry["restarts"]]
    typer.echo(table_1_text(entries, SHORT))
    save_figure(draw_maps(verbose=progress()), figure)
    typer.echo(f"\nMaps of Cd, Ni and Zn with their standard deviations: {figure}")
