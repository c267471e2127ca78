"""The command `emgpr swath`."""

from pathlib import Path
from typing import Annotated

import typer

from emgpr.cli.errors import UsageError, progress, reading_data
from emgpr.cli.files import check_map_output
from emgpr.cli.options import Force


def swath(
    tdr: Annotated[Path, typer.Argument(help="Temperatures: a TATMS… or SATMS… file.")],
    geo: Annotated[Path, typer.Argument(help="Geolocation: the matching GATMO… file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The map: .nc, .zarr or .tif.")],
    channels: Annotated[str, typer.Option(help="Channels, such as 1,3,5-8.")] = "1-10",
    grid: Annotated[float, typer.Option(help="Grid spacing in degrees.")] = 0.25,
    places: Annotated[
        int, typer.Option(min=20, help="Maximum number of fields of view used for the fit.")
    ] = 1500,
    force: Force = False,
) -> None:
    """Predict channels of the ATMS sounder on a regular grid, with their standard deviations.

    Ten channels of a granule take about a minute. NetCDF files follow the CF conventions. Cells
    outside the swath are empty.

    \b
    Examples:
      emgpr swath TATMS_….h5 GATMO_….h5 --channels 1-10 --grid 0.25 -o atms.nc
      emgpr swath TATMS_….h5 GATMO_….h5 --channels 17-22 -o humidity.tif
    """
    with reading_data():
        from emgpr.datasets import read_atms
        from emgpr.io.maps import write_map
        from emgpr.swath import channel_names, grid_swath

        check_map_output(out, force)
        names = channel_names(channels)
        if not grid > 0:
            raise UsageError(f"--grid is {grid:g}; expected a positive spacing in degrees.")
        table = read_atms(tdr, geo)
        result = grid_swath(table, names, grid, most=places, verbose=progress()).map
        write_map(result, out)
    n_rows, n_columns = result.sizes["lat"], result.sizes["lon"]
    n_cells = int(result[names[0]].count())
    typer.echo(
        f"{len(names)} channels on {n_rows} × {n_columns} cells, {n_cells} of them in the swath: "
        f"{out}"
    )
