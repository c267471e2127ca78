"""`emgpr reproduce`: rows, tables and figures of studies whose fits are replaced here."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

import emgpr.datasets
from emgpr import __version__
from emgpr.experiments import atms, choices, choices_results, jura, rules, truth
from emgpr.experiments.rows import read

from .commands import invoke, refuse, succeed


@pytest.fixture
def jura_fits(monkeypatch, tmp_path):
    """The jobs of the Jura study, each with an error that depends on its start."""
    monkeypatch.chdir(tmp_path)
    jobs = []

    def fit(job):
        jobs.append(job)
        error = 0.4 + 0.001 * job["restart"]
        by_metal = dict.fromkeys(jura.METALS, error)
        return {
            "mae": error if job["experiment"] == "cadmium" else by_metal,
            "mae_standardised_log": by_metal,
            "errors": [error] * 100,
            "seconds": 1.0,
            "notes": [],
        }

    monkeypatch.setattr(jura, "work", fit)
    return jobs


JURA = ("reproduce", "jura", "--out", "out", "--n-jobs", 1, "--restarts", 1, "--figure-restarts", 2)


@pytest.mark.slow
def test_jura_writes_rows_table_and_figures_and_a_second_run_fits_nothing(jura_fits, tmp_path):
    result = succeed(*JURA)
    names = {"rows.jsonl", "table.md", "batch-size-mae.png", "batch-size-sd.png"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    n_rows = len(read(tmp_path / "out" / "rows.jsonl"))
    assert n_rows == len(jura_fits)
    table = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert table.startswith("# Jura\n\n")
    assert result.stdout.startswith(
        table.rstrip("\n") + "\n\nWritten: out/table.md, out/rows.jsonl"
    )
    assert "out/batch-size-sd.png" in result.stdout

    again = succeed(*JURA, "--json")
    assert len(jura_fits) == n_rows
    assert (
        f"out/rows.jsonl contains the results of {n_rows} fits, which are not run again."
        in again.stderr
    )
    results = json.loads(again.stdout)
    assert results.keys() == {"table_1", "batch_sizes", "files"}
    (ensemble,) = [e for e in results["table_1"] if e["approach"] == "EMGPR (Ensemble)"]
    assert ensemble["mae"] == 0.4
    assert ensemble["printed"]["mae"] == 0.4025


def test_an_interrupted_study_says_how_to_resume(jura_fits, monkeypatch):
    def interrupt(job):
        raise KeyboardInterrupt

    monkeypatch.setattr(jura, "work", interrupt)
    result = invoke(*JURA)
    assert result.exit_code == 130
    assert result.stderr == (
        "emgpr: Interrupted. out/rows.jsonl contains the results of 0 fits. "
        "Run the same command to resume.\n"
    )


@pytest.mark.slow
def test_results_of_this_version_and_of_these_fits_are_counted(jura_fits, tmp_path):
    rows = tmp_path / "out" / "rows.jsonl"
    rows.parent.mkdir()
    job = jura.jobs(restarts=1, figure_restarts=2)[0]
    result = jura.work(job) | job
    rows.write_text(json.dumps(result | {"version": "0.0.1"}) + "\n")
    assert "which are not run again" not in succeed(*JURA).stderr
    rows.write_text(json.dumps(result | {"version": __version__}) + "\n")
    said = "out/rows.jsonl contains the results of 1 fit, which is not run again."
    assert said in succeed(*JURA).stderr


@pytest.mark.parametrize("line", ["mae = 0.4", "5"])
def test_a_damaged_file_of_rows(jura_fits, tmp_path, line):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "rows.jsonl").write_text(f"{line}\n")
    assert "Line 1 of" in refuse(3, *JURA)
    result = invoke("--traceback", *JURA)
    assert result.stderr.startswith("Traceback")


def test_a_folder_that_cannot_be_created(jura_fits, tmp_path):
    (tmp_path / "file").touch()
    assert "Use another folder for --out." in refuse(2, "reproduce", "jura", "--out", "file")
    assert "--restarts" in refuse(2, "reproduce", "jura", "--restarts", 0)


@pytest.fixture
def swath(monkeypatch, tmp_path, rng):
    """A granule of 12 × 96 fields of view, and fits with the same error."""
    monkeypatch.chdir(tmp_path)
    scan, fov = (part.ravel() for part in np.mgrid[1:13, 1:97])
    channels = pd.DataFrame(rng.normal(size=(1152, 10)), columns=list(atms.CHANNELS))
    frame = pd.DataFrame({"scan": scan, "fov": fov, "lat": 60 + scan, "lon": 100.0 + fov})
    frame = pd.concat([frame, channels], axis=1)
    monkeypatch.setattr(emgpr.datasets, "read_atms", lambda tdr, geo: frame)
    errors = dict.fromkeys(atms.CHANNELS, 0.01)
    result = {"mse": errors, "mae": errors, "seconds": 1.0, "notes": []}
    monkeypatch.setattr(atms, "work", lambda table, job: result)
    return frame


ATMS = ("reproduce", "atms", "--tdr", "tdr.h5", "--geo", "geo.h5", "--out", "out", "--n-jobs", 1)


def test_atms_prints_both_tables(swath, tmp_path):
    result = succeed(*ATMS, "--experiments", 2)
    assert len(read(tmp_path / "out" / "rows.jsonl")) == 2 * 5 * 6
    assert "Mean squared error" in result.stdout
    assert "Mean absolute error" in result.stdout
    assert "0.06282 (2.7e-03)" in result.stdout
    assert "of 60 fits, which are not run again" in succeed(*ATMS, "--experiments", 2).stderr
    results = json.loads(succeed(*ATMS, "--experiments", 2, "--json").stdout)
    assert [entry["method"] for entry in results["mae"]] == list(atms.METHODS)


def test_a_granule_with_too_few_sites(swath):
    swath.loc[:200, "ch03"] = float("nan")
    assert "each experiment needs 1000" in refuse(3, *ATMS)


def test_granules_that_cannot_be_read(tmp_path, monkeypatch):
    pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    assert "TDR: there is no file" in refuse(3, *ATMS)
    (tmp_path / "tdr.h5").write_text("<html>\nnot found\n</html>")
    assert "download may be incomplete" in refuse(3, *ATMS)
    monkeypatch.setitem(sys.modules, "h5py", None)
    assert "needs h5py, which is not installed. Run pip install 'emgpr[geo]'" in refuse(2, *ATMS)


@pytest.mark.parametrize(
    ("command", "experiment", "settings"),
    [
        ("choices", choices, {"folds": 1}),
        ("rules", rules, {"folds": 1}),
        ("truth", truth, {"draws": 3, "sites": 25}),
    ],
)
def test_options_of_the_other_studies(tmp_path, monkeypatch, command, experiment, settings):
    monkeypatch.chdir(tmp_path)
    seen = {}

    def reproduce(*data, **given):
        seen.update(given, file=data[-1])
        return [{"mae": 0.5}]

    monkeypatch.setattr(experiment, "reproduce", reproduce)
    for module, name in (
        (choices_results, "coordinates_text"), (choices_results, "withheld_text"),
        (rules, "text"), (truth, "text"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, lambda rows: f"| {rows[0]['mae']} |")
    options = [text for name, value in settings.items() for text in (f"--{name}", value)]
    result = succeed("reproduce", command, "--out", "out", *options, "--n-jobs", 2)
    assert "| 0.5 |" in result.stdout
    assert {name: seen[name] for name in settings} == settings
    assert (seen["n_jobs"], str(seen["file"])) == (2, "out/rows.jsonl")
    assert (tmp_path / "out" / "table.md").exists()
