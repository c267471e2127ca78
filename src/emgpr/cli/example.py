"""The command `emgpr example`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emgpr.cli.files import check_output, create_folder
from emgpr.cli.options import Force

if TYPE_CHECKING:
    import pandas as pd


def example(
    out: Annotated[Path, typer.Option(help="Folder for the files.")] = Path("."),
    force: Force = False,
) -> None:
    """Write the small files of real data used in the examples of all commands.

    \b
    jura.csv        heavy metals (mg/kg) in soil at 259 sites in the Swiss Jura (coordinates: km)
    new.csv         100 other locations, where nickel and zinc are known and cadmium is not
    region.geojson  the outline of the region
    amsua.csv       brightness temperatures (K) measured by a satellite at 630 sites (degrees)

    \b
    Examples:
      emgpr example
      emgpr example --out data
    """
    create_folder(out)

    from emgpr.datasets import load_amsua, load_jura
    from emgpr.io.files import replace_when_complete

    jura, sounder = load_jura(), load_amsua()
    coordinates = list(jura.coordinates)
    contents = {
        "jura.csv": jura.train.to_csv(index=False),
        "new.csv": jura.test[[*coordinates, "Ni", "Zn"]].to_csv(index=False),
        "region.geojson": json.dumps(_outline(jura.grid, *coordinates)),
        "amsua.csv": sounder.frame[["lon", "lat", *sounder.channels]].to_csv(index=False),
    }
    changed = {
        out / name: text.encode()
        for name, text in contents.items()
        if not (out / name).is_file() or (out / name).read_bytes() != text.encode()
    }
    for file in changed:
        check_output(file, force)
    for file, data in changed.items():
        with replace_when_complete(file) as draft:
            draft.write_bytes(data)
    typer.echo("\n".join(str(out / name) for name in contents))


def _outline(nodes: "pd.DataFrame", x: str, y: str) -> dict[str, Any]:
    """Return the outline of a grid as a polygon through the first and last node of each row."""
    ends = nodes.groupby(y)[x].agg(["min", "max"])
    west = list(zip(ends["min"].tolist(), ends.index.tolist(), strict=True))
    east = list(zip(ends["max"].tolist(), ends.index.tolist(), strict=True))
    return {"type": "Polygon", "coordinates": [[*west, *reversed(east), west[0]]]}
