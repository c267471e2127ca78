"""`emgpr grid`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from emgpr.cli import options as given
from emgpr.cli.complaints import USAGE, complain, progress, reading
from emgpr.cli.files import read_model, to_write


def grid(
    model: given.ModelFile,
    spacing: Annotated[
        str, typer.Option(help="Distance of cells, in the coordinates' units; or along x, along y.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The map: .nc (NetCDF) or .tif.")],
    inside: Annotated[
        Path | None, typer.Option(help="GeoJSON file; cells outside its polygons are missing.")
    ] = None,
    bounds: Annotated[
        str | None, typer.Option(help="west,south,east,north, in place of around the data.")
    ] = None,
    crs: Annotated[
        str | None,
        typer.Option(
            help="Reference system of the grid, if not the model's own; of a model fitted without "
            "--crs, what its coordinates are in."
        ),
    ] = None,
    units: given.Units = None,
    quantiles: given.Quantiles = None,
    above: given.Above = None,
    force: given.Force = False,
) -> None:
    """Map every output on a regular grid, with its standard deviation.

    NetCDF follows the CF conventions and keeps all; GeoTIFF has a band for each variable. Needs
    pip install 'emgpr[geo]'.

    \b
    Examples:
      emgpr grid jura.emgpr --spacing 0.1 --units Cd=mg/kg,Ni=mg/kg,Zn=mg/kg,Xloc=km -o jura.nc
      emgpr grid jura.emgpr --spacing 0.1 --inside region.geojson --above Cd=0.8 -o jura.tif
    """
    asked: dict[str, Any] = {
        "quantiles": given.probabilities(quantiles),
        "exceedance": given.limits(above),
        "units": given.units_of(units),
        "bounds": given.numbers(bounds, "--bounds"),
        "spacing": given.numbers(spacing, "--spacing"),
    }
    if len(asked["spacing"]) > 2 or not min(asked["spacing"]) > 0:
        raise complain(f"--spacing {spacing}; expected a distance above 0, or two: 1,2.", USAGE)
    if bounds is not None and len(asked["bounds"]) != 4:
        raise complain(f"--bounds {bounds}; expected west,south,east,north.", USAGE)
    with reading():
        from emgpr.io.maps import GEOTIFF, NETCDF, check_writable, write_map

        to_write(out, force, (*NETCDF, *GEOTIFF))
        check_writable(out)
        if quantiles is not None and out.suffix.lower() in GEOTIFF:
            raise complain("quantiles go into NetCDF only: name the map .nc", USAGE)
        fitted = read_model(model)
        fitted.verbose = progress()
        given.known_to(fitted, asked["exceedance"], "--above")
        if isinstance(asked["units"], dict):
            given.known_to(fitted, asked["units"], "--units", inputs=True)
        made = fitted.predict_grid(inside=inside, crs=crs, **asked)
        write_map(made, out)
    first = made[next(iter(made.data_vars))]
    rows, cells = first.shape
    within = f", {int(first.count())} of them inside" if inside is not None else ""
    typer.echo(f"{fitted.n_outputs_} outputs on {rows} × {cells} cells{within}: {out}")
