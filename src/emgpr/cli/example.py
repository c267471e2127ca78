"""`emgpr example`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from emgpr.cli import options as given
from emgpr.cli.complaints import folder
from emgpr.cli.files import to_write


def example(
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("."),
    force: given.Force = False,
) -> None:
    """Write small files of real data, with which the examples of every command run as printed.

    \b
    jura.csv        heavy metals (mg/kg) in the soil of the Swiss Jura at 259 places (km)
    new.csv         100 places more, where nickel and zinc are known and cadmium is asked
    region.geojson  the outline of the region
    amsua.csv       brightness temperatures (K) of a satellite sounder at 630 places (degrees)

    \b
    Examples:
      emgpr example
      emgpr example --out data
    """
    folder(out)

    from emgpr.datasets import load_amsua, load_jura

    jura, swath = load_jura(), load_amsua()
    place = list(jura.coordinates)
    contents = {
        "jura.csv": jura.train.to_csv(index=False),
        "new.csv": jura.test[[*place, "Ni", "Zn"]].to_csv(index=False),
        "region.geojson": json.dumps(_outline(jura.grid, *place)),
        "amsua.csv": swath.frame[["lon", "lat", *swath.channels]].to_csv(index=False),
    }
    new = {}
    for name, text in contents.items():
        file = out / name
        if not (file.is_file() and file.read_bytes() == text.encode()):
            new[to_write(file, force)] = text
    for file, text in new.items():
        file.write_bytes(text.encode())
    typer.echo("\n".join(str(out / name) for name in contents))


def _outline(nodes: Any, x: str, y: str) -> dict[str, Any]:
    """A polygon around the nodes of a grid: along the left ends of its rows and the right ones."""
    ends = nodes.groupby(y)[x].agg(["min", "max"])
    left = [[float(row["min"]), float(at)] for at, row in ends.iterrows()]
    right = [[float(row["max"]), float(at)] for at, row in ends.iloc[::-1].iterrows()]
    return {"type": "Polygon", "coordinates": [[*left, *right, left[0]]]}
