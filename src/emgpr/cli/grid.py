"""The command `emgpr grid`."""

from pathlib import Path
from typing import Annotated

import typer

from emgpr.cli.errors import UsageError, reading_data
from emgpr.cli.files import check_map_output, read_model
from emgpr.cli.options import Force, ModelFile, Outputs, StatisticsOptions, Units
from emgpr.cli.parsing import parse_names, parse_numbers, parse_units
from emgpr.cli.wording import counted


def grid(
    model: ModelFile,
    spacing: Annotated[
        str, typer.Option(help="Grid spacing in input units: 0.5, or 1,2 if the axes differ.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The map: .nc, .zarr or .tif.")],
    statistics: StatisticsOptions,
    inside: Annotated[
        Path | None, typer.Option(help="GeoJSON file; cells outside its polygons are left empty.")
    ] = None,
    bounds: Annotated[
        str | None, typer.Option(help="west,south,east,north; default: the extent of the data.")
    ] = None,
    crs: Annotated[
        str | None,
        typer.Option(
            help="Coordinate reference system of the grid; default: that of the model. If the "
            "model was fitted without --crs, the inputs are assumed to be in this system as well."
        ),
    ] = None,
    outputs: Outputs = None,
    units: Units = None,
    force: Force = False,
) -> None:
    """Predict every output on a regular grid, with its standard deviation.

    NetCDF files (.nc) and Zarr stores (.zarr) follow the CF conventions. GeoTIFF files (.tif) have
    one band for each variable and each quantile. This command requires pip install 'emgpr[geo]',
    and 'emgpr[geo,dask]' for Zarr.

    \b
    Examples:
      emgpr grid jura.emgpr --spacing 0.1 --units Cd=mg/kg,Ni=mg/kg,Zn=mg/kg,Xloc=km -o jura.nc
      emgpr grid jura.emgpr --spacing 0.1 --above Cd=0.8 -o jura.tif
      emgpr grid jura.emgpr --spacing 0.1 --inside region.geojson -o region.nc
      emgpr grid jura.emgpr --spacing 0.1 --outputs Cd --quantiles 0.05,0.95 -o cadmium.tif
    """
    distances, extent = parse_numbers(spacing, "--spacing"), parse_numbers(bounds, "--bounds")
    if not distances or len(distances) > 2 or not min(distances) > 0:
        raise UsageError(
            f"--spacing is {spacing}; expected one or two positive distances, such as 1,2."
        )
    if extent is not None and len(extent) != 4:
        raise UsageError(f"--bounds is {bounds}; expected west,south,east,north.")
    with reading_data():
        from emgpr.io.maps import write_map
        from emgpr.mapping import select_map_outputs

        check_map_output(out, force)
        fitted = read_model(model)
        names = fitted.output_names_
        kept = parse_names(outputs, "--outputs", names) or names
        cells = fitted.predict_grid(
            distances, inside=inside, bounds=extent, crs=crs,
            units=parse_units(units, names, fitted.input_spec_.names),
            **statistics.requested(names),
        )  # fmt: skip
        cells = select_map_outputs(cells, kept)
        write_map(cells, out)
    first = cells[next(iter(cells.data_vars))]
    n_rows, n_columns = first.shape
    within = f", {int(first.count())} of them inside" if inside is not None else ""
    typer.echo(f"{counted(len(kept), 'output')} on {n_rows} × {n_columns} cells{within}: {out}")
