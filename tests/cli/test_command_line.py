"""The command line: help, version, commands, and errors of one line with the right exit code."""

import json
import subprocess
import sys

import matplotlib.image
import pytest
from typer.testing import CliRunner

import emgpr
from emgpr.cli import app
from emgpr.experiments import atms, jura
from emgpr.experiments.rows import read


def emgpr_says(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def one_line(result):
    """What was said on stderr: one line, and nothing on stdout."""
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


@pytest.fixture
def quick_jura(monkeypatch):
    """The Jura experiment with fits that only count."""
    done = []

    def fake(job):
        done.append(job)
        level = 0.4 + 0.001 * job["restart"]
        by_metal = dict.fromkeys(jura.METALS, level)
        one = job["experiment"] == "cadmium"
        return {
            "mae": level if one else by_metal,
            "mae_standardised_log": by_metal,
            "errors": [level] * 100,
            "seconds": 1.0,
            "notes": [],
        }

    monkeypatch.setattr(jura, "work", fake)
    return done


def test_version():
    assert emgpr_says("--version").stdout == f"emgpr {emgpr.__version__}\n"


@pytest.mark.parametrize("command", [(), ("demo",), ("reproduce", "jura"), ("reproduce", "atms")])
def test_help_has_examples(command):
    result = emgpr_says(*command, "--help")
    assert result.exit_code == 0
    assert "\n  Examples:\n    emgpr " in result.stdout


def test_the_command_line_imports_nothing_slow_of_its_own():
    """Beyond what the package itself imports; the commands import what they need when they run."""
    code = (
        "import sys, emgpr; before = set(sys.modules); import emgpr.cli; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "slow = {'numpy', 'scipy', 'sklearn', 'pandas', 'matplotlib', 'joblib', 'h5py'}; "
        "ours = {name for name in sys.modules if name.startswith(('emgpr.exp', 'emgpr.plots'))}; "
        "sys.exit(str(new & slow | ours) if new & slow | ours else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_demo_prints_the_table_draws_the_maps_and_says_where(tmp_path):
    result = emgpr_says("demo", "--out", tmp_path / "new")
    assert result.exit_code == 0, result.output
    assert "| EMGPR (Ensemble)     | 0.40" in result.stdout
    assert "| EMGPR (our defaults) | 0.39" in result.stdout
    assert "| GP                   | 0.57" in result.stdout
    figure = tmp_path / "new" / "jura.png"
    assert result.stdout.endswith(f"how uncertain they are: {figure}\n")
    assert matplotlib.image.imread(figure).shape == (1110, 1650, 4)
    assert result.stderr == ""  # no terminal is watching, so no progress


def test_reproduce_jura_writes_rows_table_and_figures(quick_jura, tmp_path):
    result = emgpr_says("reproduce", "jura", "--out", tmp_path, "--restarts", 2, "--n-jobs", 1)
    assert result.exit_code == 0, result.output
    assert {path.name for path in tmp_path.iterdir()} == {
        "rows.jsonl", "table.md", "batch-size-mae.png", "batch-size-sd.png",
    }  # fmt: skip
    assert len(read(tmp_path / "rows.jsonl")) == 2 + 2 * len(jura.TABLE_1) + 10 * (
        len(jura.REFERENCES) + len(jura.BATCH_SIZES)
    )
    table = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert table.startswith("# Jura\n")
    assert result.stdout.startswith(table.rstrip("\n"))
    assert str(tmp_path / "batch-size-sd.png") in result.stdout


def test_reproduce_jura_again_runs_nothing_and_says_so(quick_jura, tmp_path):
    asked = ("reproduce", "jura", "--out", tmp_path, "--restarts", 1, "--figure-restarts", 1)
    emgpr_says(*asked, "--n-jobs", 1)
    n_rows = len(quick_jura)
    result = emgpr_says(*asked, "--n-jobs", 1)
    assert len(quick_jura) == n_rows
    assert f"{n_rows} rows are in" in result.stderr
    assert "Delete the file to start afresh." in result.stderr


def test_reproduce_jura_as_json(quick_jura, tmp_path):
    result = emgpr_says(
        *("reproduce", "jura", "--out", tmp_path, "--restarts", 1, "--figure-restarts", 1),
        *("--n-jobs", 1, "--json"),
    )
    answer = json.loads(result.stdout)
    assert answer.keys() == {"table_1", "batch_sizes", "files"}
    (ours,) = [e for e in answer["table_1"] if e["approach"] == "EMGPR (Ensemble)"]
    assert ours["mae"] == 0.4
    assert ours["printed"]["mae"] == 0.4025
    assert {entry["batch_size"] for entry in answer["batch_sizes"]} == {None, *jura.BATCH_SIZES}


def test_stopped_it_says_how_to_go_on(monkeypatch, tmp_path):
    def stop(job):
        raise KeyboardInterrupt

    monkeypatch.setattr(jura, "work", stop)
    result = emgpr_says("reproduce", "jura", "--out", tmp_path, "--n-jobs", 1)
    assert result.exit_code == 130
    assert one_line(result) == (
        f"emgpr: stopped. 0 rows are in {tmp_path / 'rows.jsonl'}; "
        "the same command goes on from there."
    )


def test_a_damaged_file_of_rows(tmp_path):
    (tmp_path / "rows.jsonl").write_text("mae = 0.4\n")
    result = emgpr_says("reproduce", "jura", "--out", tmp_path)
    assert result.exit_code == 3
    assert "line 1, is not JSON" in one_line(result)


@pytest.mark.parametrize("command", ["demo", "reproduce jura"])
def test_a_folder_that_cannot_be_made(tmp_path, command):
    (tmp_path / "file").touch()
    result = emgpr_says(*command.split(), "--out", tmp_path / "file")
    assert result.exit_code == 2
    assert one_line(result).endswith("Name another folder with --out.")


def test_no_restarts_are_a_usage_error():
    result = emgpr_says("reproduce", "jura", "--restarts", 0)
    assert result.exit_code == 2
    assert "--restarts" in result.stderr


def an_atms_command(tmp_path, tdr="tdr.h5", geo="geo.h5"):
    files = ("--tdr", tmp_path / tdr, "--geo", tmp_path / geo)
    return ("reproduce", "atms", *files, "--out", tmp_path / "out", "--n-jobs", 1)


def test_atms_without_files_is_a_usage_error():
    result = emgpr_says("reproduce", "atms")
    assert result.exit_code == 2
    assert "--tdr" in result.stderr


def test_atms_file_that_is_not_there(tmp_path):
    pytest.importorskip("h5py")
    result = emgpr_says(*an_atms_command(tmp_path))
    assert result.exit_code == 3
    assert one_line(result).startswith("emgpr: tdr_file: there is no file")


def test_atms_file_that_is_not_hdf5(tmp_path):
    pytest.importorskip("h5py")
    (tmp_path / "tdr.h5").write_text("<html>\nnot found\n</html>")
    result = emgpr_says(*an_atms_command(tmp_path))
    assert result.exit_code == 3
    assert "fetch it again" in one_line(result)


def test_atms_without_h5py_names_the_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "h5py", None)
    result = emgpr_says(*an_atms_command(tmp_path))
    assert result.exit_code == 2
    assert one_line(result) == "emgpr: Reading ATMS needs h5py: pip install 'emgpr[geo]'"


@pytest.fixture
def a_swath(monkeypatch, rng):
    """What the reader returns for a granule of 12 × 96 views, and fits that only count."""
    import numpy as np
    import pandas as pd

    import emgpr.datasets

    scan, fov = (part.ravel() for part in np.mgrid[1:13, 1:97])
    channels = pd.DataFrame(rng.normal(size=(1152, 10)), columns=list(atms.CHANNELS))
    frame = pd.DataFrame({"scan": scan, "fov": fov, "lat": 60 + scan, "lon": 100.0 + fov})
    frame = pd.concat([frame, channels], axis=1)
    monkeypatch.setattr(emgpr.datasets, "read_atms", lambda tdr, geo: frame)
    errors = dict.fromkeys(atms.CHANNELS, 0.01)
    result = {"mse": errors, "mae": errors, "seconds": 1.0, "notes": []}
    monkeypatch.setattr(atms, "work", lambda table, job: result)
    return frame


def test_reproduce_atms_prints_both_tables(a_swath, tmp_path):
    result = emgpr_says(*an_atms_command(tmp_path), "--experiments", 2)
    assert result.exit_code == 0, result.output
    assert len(read(tmp_path / "out" / "rows.jsonl")) == 2 * 5 * 6
    assert "Mean squared error" in result.stdout
    assert "Mean absolute error" in result.stdout
    assert "0.06282 (2.7e-03)" in result.stdout
    table = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert result.stdout.startswith(table.rstrip("\n"))


def test_reproduce_atms_as_json(a_swath, tmp_path):
    result = emgpr_says(*an_atms_command(tmp_path), "--experiments", 1, "--json")
    answer = json.loads(result.stdout)
    assert [entry["method"] for entry in answer["mae"]] == list(atms.METHODS)


def test_a_granule_with_too_few_sites_is_bad_data(a_swath, tmp_path):
    a_swath.loc[:200, "ch03"] = float("nan")
    result = emgpr_says(*an_atms_command(tmp_path))
    assert result.exit_code == 3
    assert "each experiment draws 1000" in one_line(result)
