"""`emgpr swath`."""

from pathlib import Path
from typing import Annotated

import typer

from emgpr.cli.complaints import USAGE, complain, progress, reading
from emgpr.cli.files import to_write
from emgpr.cli.options import Force


def swath(
    tdr: Annotated[Path, typer.Argument(help="Temperatures: a TATMS… or SATMS… file.")],
    geo: Annotated[Path, typer.Argument(help="Their geolocation: the GATMO… file.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The map: .nc or .tif.")],
    channels: Annotated[str, typer.Option(help="Channels: numbers and ranges.")] = "1-10",
    grid: Annotated[float, typer.Option(help="Spacing of the cells, in degrees.")] = 0.25,
    places: Annotated[
        int, typer.Option(min=20, help="Fields of view to learn from, at most.")
    ] = 1500,
    force: Force = False,
) -> None:
    """Channels of the ATMS sounder on a regular grid, each with its standard deviation.

    A minute for a granule and ten channels. The map follows the CF conventions; cells outside the
    swath are missing.

    \b
    Examples:
      emgpr swath TATMS_….h5 GATMO_….h5 --channels 1-10 --grid 0.25 -o atms.nc
      emgpr swath TATMS_….h5 GATMO_….h5 --channels 17-22 -o humidity.tif
    """
    with reading():
        from emgpr.datasets import read_atms
        from emgpr.io.maps import GEOTIFF, NETCDF, check_writable, write_map
        from emgpr.swath import channel_names, grid_swath

        to_write(out, force, (*NETCDF, *GEOTIFF))
        check_writable(out)
        chosen = channel_names(channels)
        if not grid > 0:
            raise complain(f"--grid {grid:g}; expected degrees, more than 0.", USAGE)
        table = read_atms(tdr, geo)
        made = grid_swath(table, chosen, grid, most=places, verbose=progress())
        write_map(made.map, out)
    rows, columns = made.map.sizes["lat"], made.map.sizes["lon"]
    cells = int(made.map[chosen[0]].count())
    typer.echo(
        f"{len(chosen)} channels on {rows} × {columns} cells, {cells} of them in the swath: {out}"
    )
