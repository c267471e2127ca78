"""gstat and emgpr: the tables of docs/geostatistics.md are those of the stored rows."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from benchmarks import cokriging
from benchmarks.cokriging import PAGE, STORED, best_on_training_sites, minus, tables

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stored():
    return json.loads(STORED.read_text())


def find(run, problem, method):
    [row] = [r for r in run["rows"] if (r["problem"], r["method"]) == (problem, method)]
    return row


def test_the_page_shows_the_stored_rows(stored):
    assert tables(stored) in PAGE.read_text(encoding="utf-8")


def test_the_text_of_the_page_agrees_with_the_stored_rows(stored):
    page = PAGE.read_text(encoding="utf-8")
    chosen = find(stored, "known", best_on_training_sites(stored["rows"]))
    ours, nested = (
        find(stored, "known", name) for name in ("emgpr, EMGPR", "gstat, two spherical")
    )
    assert chosen["method"] == "gstat, exponential"
    pair = minus(ours, chosen, "Cd")
    assert f"{-pair.mean:.3f} ± {pair.standard_error:.3f}" in page
    assert f"{np.mean(ours['errors']['Cd']):.3f}" == f"{np.mean(nested['errors']['Cd']):.3f}"
    ratio = np.median(ours["seconds"]) / np.median(chosen["seconds"])
    assert f"took {ratio:.0f} times" in " ".join(page.split())


def test_the_structure_is_chosen_by_training_sites():
    rows = [
        {"method": "best on test sites", "errors": {"Cd": [0.0]}, "training": {"error": 0.5}},
        {"method": "best on training sites", "errors": {"Cd": [1.0]}, "training": {"error": 0.4}},
        {"method": "not tried", "errors": {"Cd": [0.1]}},
    ]
    assert best_on_training_sites(rows) == "best on training sites"


def test_differences_are_paired_over_the_sites():
    ours, theirs = ({"errors": {"Cd": errors}} for errors in ([1.0, 2.0, 3.0], [2.0, 2.0, 5.0]))
    pair = minus(ours, theirs, "Cd")
    assert_allclose((pair.mean, pair.standard_error), (-1.0, np.sqrt(1 / 3)))


def test_without_r_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setattr(cokriging, "which", lambda name: None)
    with pytest.raises(SystemExit, match="apt install r-cran-gstat"):
        cokriging.gstat_versions()


def test_one_estimator_can_be_run_again(stored, tmp_path, monkeypatch):
    """All other rows are kept, and the title names its date."""
    monkeypatch.setattr(cokriging.os, "sched_setaffinity", lambda *_: None, raising=False)
    monkeypatch.setattr(cokriging, "STORED", tmp_path / "stored.json")
    cokriging.STORED.write_text(json.dumps(stored))
    fixed = {"problem": "known", "method": "emgpr, CoKriging", "seconds": 0.5}
    monkeypatch.setattr(cokriging, "by_emgpr", lambda only: [fixed | {"only": only}])
    run = cokriging.measure_only("CoKriging", 2)
    assert run["rows"][-1] == fixed | {"only": "CoKriging", "seconds": [0.5, 0.5]}
    others = [row for row in stored["rows"] if row["method"] != "emgpr, CoKriging"]
    assert run["rows"][:-1] == others
    assert "emgpr, CoKriging" in run["dates"]
    assert "emgpr, CoKriging was run on a machine of the same kind" in tables(stored)
