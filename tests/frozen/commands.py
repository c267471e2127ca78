"""Command lines of `emgpr`, the files they are run beside, and what came of each."""

import contextlib
import json
import shlex
import shutil
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import emgpr
from emgpr.datasets import load_amsua, load_jura
from emgpr.kernels import NAMED_KERNELS

from .answers import Answers, Found, Number, numbered, settings_of
from .storage import DATA

MODELS = {
    "model": "defaults", "paper": "paper-of-jura", "globe": "globe", "nameless": "paper",
    "sums": "one-pass-log-in-a-box", "exact": "icm",
}  # fmt: skip
JURA = "-x Xloc,Yloc -y Cd,Ni,Zn"
N_ROWS = 8  # of a table that was written that are kept


@dataclass(frozen=True)
class Command:
    """`fits` tells that numbers depend on an optimisation."""

    line: str
    fits: bool = False
    needs: tuple[str, ...] = ()


def plain(lines: dict[str, str], *needs: str, fits: bool = False) -> dict[str, Command]:
    return {name: Command(line, fits, needs) for name, line in lines.items()}


COMMANDS = {
    **plain(
        {
            "version": "--version",
            "help": "--help",
            "help-of-fit": "fit --help",
            "nothing": "",
            "fit-nothing": "fit",
            "no-such-command": "ft small.csv",
            "no-such-option": "fit small.csv --no-such",
            "example": "example --out data",
            "example-refused": "example",
            "example-forced": "example --force",
            "check": f"fit small.csv {JURA} --check",
            "check-gaps": f"fit gaps.csv {JURA} --check",
            "check-code": f"fit coded.csv {JURA} --check",
            "check-code-missing": f"fit coded.csv {JURA} --check --missing -9999",
            "check-code-measured": f"fit coded.csv {JURA} --check --missing none",
            "check-limits-missing": f"fit limits.csv {JURA} --check --missing '<0.2'",
            "check-degrees": "fit swath.csv -x lon,lat -y ch01 --check",
            "plan": f"fit small.csv {JURA} --plan",
            "fit-no-column": "fit small.csv -x Xloc,Yloc -y Cd,Nickel --check",
            "fit-column-twice": "fit small.csv -x Xloc,Yloc -y Cd,Xloc --check",
            "fit-no-file": f"fit smal.csv {JURA} --check",
            "fit-empty-file": f"fit empty.csv {JURA} --check",
            "fit-no-model": f"fit small.csv {JURA}",
            "fit-refused": f"fit small.csv {JURA} -o model.emgpr",
            "fit-no-folder": f"fit small.csv {JURA} -o nowhere/m.emgpr",
            "fit-bad-kernel": f"fit small.csv {JURA} --kernel cubic -o m.emgpr",
            "fit-bad-transform": f"fit small.csv {JURA} --transform lg -o m.emgpr",
            "predict": "predict model.emgpr --at few.csv -o p.csv",
            "predict-known": "predict model.emgpr --at few.csv --known Ni,Zn -o p.csv",
            "predict-risk": "predict paper.emgpr --at few.csv --quantiles 0.05,0.95 "
            "--above Cd=0.8,Zn=100 -o p.tsv",
            "predict-code": "predict model.emgpr --at unknown.csv --known Ni -o p.csv",
            "predict-code-missing": "predict model.emgpr --at unknown.csv --known Ni "
            "--missing -9999 -o p.csv",
            "predict-forced": "predict paper.emgpr --at few.csv -o few.csv --force",
            "predict-from-sums": "predict sums.emgpr --at unit.csv --known Pb -o p.csv",
            "predict-refused": "predict model.emgpr --at few.csv -o new.csv",
            "predict-no-output": "predict model.emgpr --at few.csv --known Pb -o p.csv",
            "predict-no-names": "predict nameless.emgpr --at few.csv -o p.csv",
            "predict-no-columns": "predict model.emgpr --at swath.csv -o p.csv",
            "predict-bad-quantiles": "predict model.emgpr --at few.csv --quantiles 5,95 -o p.csv",
            "predict-from-a-table": "predict jura.csv --at few.csv -o p.csv",
            "predict-damaged": "predict damaged.emgpr --at few.csv -o p.csv",
            "validate": "validate model.emgpr",
            "validate-by-block": "validate paper.emgpr --by block -o rows.csv",
            "validate-by-output": "validate model.emgpr --by output -o rows.csv",
            "validate-exact-of-exact": "validate exact.emgpr --exact -o rows.csv",
            "validate-sums": "validate sums.emgpr",
            "validate-bad-usage": "validate model.emgpr --log",
            "plot-no-such": "plot paper.emgpr map -o p.png",
            "swath-no-files": "swath tdr.h5 geo.h5 -o map.nc",
            "reproduce-no-files": "reproduce atms",
        }
    ),
    **plain({"predict-parquet": "predict model.emgpr --at few.csv -o p.parquet"}, "pyarrow"),
    **plain(
        {
            f"plot-{what}": f"plot paper.emgpr {what} --dpi 40 -o p.png"
            for what in ("maps", "latents", "variograms", "predictions", "calibration")
        }
    ),
    **plain(
        {
            "predict-netcdf": "predict model.emgpr --at few.csv -o p.nc",
            "grid-netcdf": "grid model.emgpr --spacing 1 --units mg/kg --quantiles 0.1,0.9 -o m.nc",
            "grid-bounds": "grid paper.emgpr --spacing 0.5,1 --bounds 2,2,3,4 -o m.nc",
            "grid-globe": "grid globe.emgpr --spacing 6 --above ch01=250 -o m.nc",
            "grid-bad-spacing": "grid model.emgpr --spacing 0 -o m.nc",
        },
        "h5netcdf", "xarray", "pyproj",
    ),
    **plain(
        {
            "grid-geotiff": "grid model.emgpr --spacing 1 --inside region.geojson --above Cd=0.8 "
            "-o m.tif",
        },
        "rasterio", "xarray", "shapely",
    ),
    **plain({"report": "report paper.emgpr -o r.html"}, "jinja2"),
    **plain(
        {
            "fit": f"fit small.csv {JURA} -o m.emgpr",
            "fit-paper": f"fit small.csv {JURA} --log --paper -o m.emgpr",
            "fit-settings": f"fit small.csv {JURA} --transform Cd=log,Ni=none --kernel matern32 "
            "--seed 3 -o m.emgpr",
            "fit-code-missing": f"fit coded.csv {JURA} --paper --missing -9999 -o m.emgpr",
            "fit-gaps": f"fit gaps.csv {JURA} --log --paper -o m.emgpr",
            "fit-semicolons": f"fit semicolons.csv {JURA} --log --paper -o m.emgpr",
            "fit-forced": f"fit small.csv {JURA} --log --paper -o model.emgpr --force",
            "fit-one-output": "fit small.csv -x Xloc,Yloc -y Zn --kernel rbf -o m.emgpr",
            "validate-exact": "validate paper.emgpr --exact -o rows.csv",
            "validate-table": f"validate small.csv {JURA} --log --paper --folds 2 -o rows.csv",
            "validate-table-by-output": f"validate small.csv {JURA} --log --paper --by output "
            "--folds 2 -o rows.csv",
            "demo": "demo --out demo",
        },
        fits=True,
    ),
    **plain(
        {
            "fit-globe": "fit swath.csv -x lon,lat -y ch01,ch05 --crs EPSG:4326 --paper "
            "-o m.emgpr"
        },
        "pyproj",
        fits=True,
    ),
}  # fmt: skip


def prepare(folder: Path) -> None:
    """Tables, in order and not, and model files from the frozen ones."""
    jura, swath = load_jura(), load_amsua()
    place = list(jura.coordinates)
    small = jura.train.iloc[::5].reset_index(drop=True)
    few = jura.test[[*place, "Ni", "Zn"]].iloc[::12].reset_index(drop=True)
    gaps = pd.concat([small, small.iloc[:2], small.iloc[5:6].assign(Cd=1.0)], ignore_index=True)
    gaps.loc[[4, 9, 11], "Cd"] = np.nan
    gaps.loc[20, ["Cd", "Ni", "Zn"]] = np.nan
    gaps.loc[30, "Xloc"] = np.nan
    tables = {
        "jura.csv": jura.train,
        "new.csv": jura.test,
        "small.csv": small,
        "few.csv": few,
        "gaps.csv": gaps,
        "coded.csv": small.assign(Zn=small["Zn"].where(small.index % 17 > 0, -9999.0)),
        "limits.csv": small.assign(Cd=small["Cd"].astype(object).where(small.index != 4, "<0.2")),
        "unknown.csv": few.assign(Ni=few["Ni"].where(few.index != 3, -9999.0)),
        "swath.csv": swath.frame[["lon", "lat", *swath.channels]].iloc[::12],
        "unit.csv": pd.DataFrame({"x": [0.2, 0.5, 0.7], "y": [0.1, 0.6, 0.9], "Pb": [1, 2, 1.5]}),
    }
    for name, table in tables.items():
        table.to_csv(folder / name, index=False)
    small.to_csv(folder / "semicolons.csv", index=False, sep=";", decimal=",")
    (folder / "empty.csv").touch()
    nodes = [[0.0, 0.0], [6.0, 0.0], [6.0, 3.0], [3.0, 6.5], [0.0, 3.0], [0.0, 0.0]]
    region = {"type": "Polygon", "coordinates": [nodes]}
    (folder / "region.geojson").write_text(json.dumps(region))
    for name, frozen in MODELS.items():
        shutil.copy(DATA / f"{frozen}.emgpr", folder / f"{name}.emgpr")
    damaged = bytearray((folder / "paper.emgpr").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (folder / "damaged.emgpr").write_bytes(damaged)


def outcome(command: Command, folder: Path) -> Answers:
    """Run a command in a folder that was prepared, and tell what came of it."""
    from emgpr.cli import app

    before = contents(folder)
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        result = CliRunner().invoke(app, shlex.split(command.line), prog_name="emgpr")
    changed = [name for name, data in contents(folder).items() if before.get(name) != data]
    found: Answers = {
        "exit code": numbered(result.exit_code),
        "messages": numbered(sum(line.startswith("emgpr:") for line in result.stderr.splitlines())),
        "files": json.dumps(sorted(changed)),
        "printed": json.dumps(printed(result.stdout + result.stderr)),
    }
    for name in sorted(changed):
        found |= {f"{name}/{what}": numbered(one) for what, one in written(folder / name)}
    return found


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def printed(text: str) -> list[list[str]]:
    """The numbers of every table row that was printed, as they were written.

    A row of a table is a line between bars (Markdown), or one of which at least three words are
    numbers and at least half of all words, none of them a unit of time or memory. That leaves out
    sentences, headings, paths, versions and the steps of a plan.
    """
    rows = []
    for line in text.splitlines():
        words = line.replace("|", " ").split()
        numbers = [word for word in words if is_number(word)]
        enough = len(numbers) >= 3 and 2 * len(numbers) >= len(words)
        timed = {"s", "min", "h", "days", "kB", "MB", "GB"}.intersection(words)
        if (enough and not timed) or (line.startswith("|") and numbers):
            rows.append(numbers)
    return rows


def is_number(word: str) -> bool:
    with contextlib.suppress(ValueError):
        return bool(np.isfinite(float(word)))
    return False


def written(path: Path) -> Found:
    """The numbers of a file; of a picture or page, that it is not empty."""
    kind = path.suffix
    yield "not empty", float(path.stat().st_size > 0)
    if kind in (".csv", ".tsv", ".parquet"):
        read = {".csv": pd.read_csv, ".tsv": read_tabs, ".parquet": pd.read_parquet}
        yield from of_table(read[kind](path))
    elif kind == ".nc":
        yield from of_netcdf(path)
    elif kind == ".tif":
        yield from of_geotiff(path)
    elif kind == ".emgpr":
        yield from of_model(path)


def read_tabs(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, sep="\t")


def of_table(table: pd.DataFrame) -> Found:
    # Since then, `predict` also copies columns of the table that have the name of an output.
    table = table[[name for name in table.columns if not str(name).endswith("_given")]]
    yield "columns", json.dumps([str(name) for name in table.columns])
    yield "length", len(table)
    rows = table.iloc[np.unique(np.linspace(0, len(table) - 1, N_ROWS).astype(int))]
    for name in table.columns:
        if pd.api.types.is_numeric_dtype(rows[name]):
            yield str(name), rows[name].to_numpy(dtype=float)
        else:
            yield str(name), json.dumps([str(value) for value in rows[name]])


def of_netcdf(path: Path) -> Found:
    import xarray

    with xarray.open_dataset(path, engine="h5netcdf") as data:
        yield "sizes", json.dumps({str(name): int(n) for name, n in data.sizes.items()})
        for name, values in sorted(data.variables.items(), key=lambda one: str(one[0])):
            if np.issubdtype(values.dtype, np.number) and values.ndim:
                yield str(name), values.values.astype(float)


def of_geotiff(path: Path) -> Found:
    import rasterio

    with warnings.catch_warnings(), rasterio.open(path) as data:
        warnings.simplefilter("ignore")
        yield "bands", json.dumps(list(data.descriptions))
        yield "corner and cells", np.array(data.transform)[:6]
        for name, band in zip(data.descriptions, data.read(masked=True), strict=True):
            yield str(name), band.filled(np.nan).astype(float)


def of_model(path: Path) -> Found:
    model: Any = emgpr.load(path)
    X, _ = model.training_data()
    median, std = model.predict(X.iloc[:3] + 0.01, return_std=True)
    yield "class", type(model).__name__
    settings = settings_of(model)
    if isinstance(model.kernel, str) and model.kernel in NAMED_KERNELS:  # compare what it means
        settings["kernel"] = repr(NAMED_KERNELS[model.kernel])
    for name, value in settings.items():
        yield f"settings/{name}", value
    yield "median", Number(median, std)
    yield "std", Number(std, std)


def prefixed(name: str, found: Answers) -> Iterator[tuple[str, Number | str]]:
    for what, one in found.items():
        yield f"{name}: {what}", one
