"""A full disk: every command that writes a file ends with an error and leaves the old file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource")
for package in ("xarray", "h5netcdf", "zarr", "rasterio", "pyarrow", "jinja2", "openpyxl"):
    pytest.importorskip(package)

FIT = "fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --log --paper"
COMMANDS = {
    "p.csv": "predict jura.emgpr --at new.csv -o p.csv",
    "p.csv.gz": "predict jura.emgpr --at new.csv -o p.csv.gz",
    "p.parquet": "predict jura.emgpr --at new.csv -o p.parquet",
    "p.xlsx": "predict jura.emgpr --at new.csv -o p.xlsx",
    "p.nc": "predict jura.emgpr --at new.csv -o p.nc",
    "m.nc": "grid jura.emgpr --spacing 0.2 -o m.nc",
    "m.tif": "grid jura.emgpr --spacing 0.2 -o m.tif",
    "m.zarr": "grid jura.emgpr --spacing 0.2 -o m.zarr",
    "cv.csv": "validate jura.emgpr -o cv.csv",
    "f.png": "plot jura.emgpr shares -o f.png",
    "f.pdf": "plot jura.emgpr shares -o f.pdf",
    "f.svg": "plot jura.emgpr shares -o f.svg",
    "r.html": "report jura.emgpr -o r.html",
    "j.emgpr": f"{FIT} -o j.emgpr",
    "amsua.csv": "example",
}
# Runs commands with a limit on the size of files, and prints how each ended.
SCRIPT = """
import json, resource, signal, sys
from typer.testing import CliRunner
from emgpr.cli import app
from emgpr.experiments.rows import append
from pathlib import Path

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that writing raises OSError, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
endings = {}
for name, line in json.loads(sys.argv[1]).items():
    result = CliRunner().invoke(app, [*line.split(), "--force"], prog_name="emgpr")
    endings[name] = [result.exit_code, result.stderr]
line = sys.argv[2] + " --checkpoint fit.checkpoint -o other.emgpr"
result = CliRunner().invoke(app, line.split(), prog_name="emgpr")
endings["fit.checkpoint"] = [result.exit_code, result.stderr]
try:
    append(Path("rows.jsonl"), {"text": "x" * 3000})
except OSError as error:
    endings["rows.jsonl"] = [3, "emgpr: " + str(error)]
print(json.dumps(endings))
"""


def everything():
    return {str(file): file.read_bytes() for file in Path().rglob("*") if file.is_file()}


def test_full_disk(here):
    from emgpr.io import read_map, write_map

    for name in COMMANDS:
        if not name.endswith(".zarr"):
            (here / name).write_bytes(b"the old content")
    xarray = pytest.importorskip("xarray")
    write_map(xarray.Dataset({"Cd": ("x", [1.0])}), "m.zarr")
    (here / "rows.jsonl").write_text('{"row": 1}\n')
    before = everything()
    command = [sys.executable, "-c", SCRIPT, json.dumps(COMMANDS), FIT]
    result = subprocess.run(command, capture_output=True, text=True, cwd=here, check=False)
    assert result.returncode == 0, result.stderr[-2000:]  # in particular, no crash at the end
    assert "Exception ignored" not in result.stderr
    endings = json.loads(result.stdout)
    assert set(endings) == {*COMMANDS, "fit.checkpoint", "rows.jsonl"}
    for name, (code, messages) in endings.items():
        assert code == 3, (name, code, messages)
        assert messages.splitlines()[-1].startswith("emgpr: "), (name, messages)
    after = everything()
    assert after.pop("rows.jsonl").startswith(before.pop("rows.jsonl"))  # an incomplete row follows
    assert after == before
    assert read_map("m.zarr")["Cd"].item() == 1.0


def test_stdout_to_a_full_disk(here):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    line = [sys.executable, "-m", "emgpr", "predict", "jura.emgpr", "--at", "new.csv", "-o", "-"]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 3, result.stderr
    assert result.stderr.startswith("emgpr: ")
    line = "The output could not be read or written (No space left on device). Check the disk."
    assert result.stderr.splitlines()[-1] == f"emgpr: {line}"
