"""The command `emgpr grid`."""

from pathlib import Path
from typing import Annotated

import typer

from emgpr.cli.errors import UsageError, reading_data
from emgpr.cli.files import check_map_output, read_model
from emgpr.cli.options import Force, ModelFile, StatisticsOptions, Units
from emgpr.cli.parsing import parse_numbers, parse_units


def grid(
    model: ModelFile,
    spacing: Annotated[
        str, typer.Option(help="Grid spacing in input units: 0.5, or 1,2 if the axes differ.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The map: .nc (NetCDF) or .tif.")],
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
    units: Units = None,
    force: Force = False,
) -> None:
    """Predict every output on a regular grid, with its standard deviation.

    NetCDF files follow the CF conventions. GeoTIFF files have one band for each variable. This
    command requires pip install 'emgpr[geo]'.

    \b
    Examples:
      emgpr grid jura.emgpr --spacing 0.1 --units Cd=mg/kg,Ni=mg/kg,Zn=mg/kg,Xloc=km -o jura.nc
      emgpr grid jura.emgpr --spacing 0.1 --above Cd=0.8 -o jura.tif
      emgpr grid jura.emgpr --spacing 0.1 --inside region.geojson -o region.nc
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

        check_map_output(out, force)
        if statistics.quantiles is not None and out.suffix.lower() in (".tif", ".tiff"):
            raise UsageError(
                "Quantiles can be written only to NetCDF files. Use a name ending in .nc."
            )
        fitted = read_model(model)
        outputs = fitted.output_names_
        cells = fitted.predict_grid(
            distances, inside=inside, bounds=extent, crs=crs,
            units=parse_units(units, outputs, fitted.input_spec_.names),
            **statistics.requested(outputs),
        )  # fmt: skip
        write_map(cells, out)
    first = cells[next(iter(cells.data_vars))]
    n_rows, n_columns = first.shape
    within = f", {int(first.count())} of them inside" if inside is not None else ""
    typer.echo(f"{len(outputs)} outputs on {n_rows} × {n_columns} cells{within}: {out}")
