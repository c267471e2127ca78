"""The ATMS experiments on a small simulated swath: sites drawn, held out, stored and resumed."""

import numpy as np
import pandas as pd
import pytest

from emgpr.datasets import read_atms
from emgpr.experiments import atms
from emgpr.experiments.atms import METHODS, NO_TRANSFER, Protocol, jobs, reproduce, usable, work
from emgpr.experiments.atms_results import summary, text
from emgpr.experiments.rows import read

pytestmark = pytest.mark.slow

SMALL = Protocol(sites=40, folds=2, channels=("ch01", "ch02"))
QUICK = {
    "GP": METHODS["GP"],
    "ICM (rank 1)": METHODS["ICM (rank 1)"],
    "EMGPR": METHODS["EMGPR"] | {"conditioning": 10},
}


@pytest.fixture
def swath(rng):
    """Six scans of sixteen views; two channels of one smooth field."""
    scan, fov = (part.ravel() for part in np.mgrid[1:7, 1:17])
    field = np.sin(fov / 3) + np.cos(scan / 2)
    noise = rng.normal(scale=0.05, size=(2, 96))
    frame = pd.DataFrame(
        {
            "scan": scan,
            "fov": fov,
            "lat": 60 + 0.2 * scan + 0.01 * fov,
            "lon": 179 + 0.2 * fov,
            "ch01": 250 + 5 * (field + noise[0]),
            "ch02": 230 - 3 * (field + noise[1]),
        }
    )
    frame["lon"] = frame["lon"].where(frame["lon"] <= 180, frame["lon"] - 360)
    frame.attrs = {"platform": "NPP", "kind": "TDR", "start": "2014-11-30T18:17:27Z"}
    return frame


def test_edges_and_gaps_are_left_out_and_longitudes_do_not_jump_at_the_date_line(swath):
    swath.loc[3, "ch02"] = np.nan
    table = usable(swath, SMALL)
    assert list(table) == ["lat", "lon", "ch01", "ch02"]
    assert len(table) == 6 * 10 - 1
    assert np.ptp(table["lon"]) == pytest.approx(0.2 * 9)


def test_too_few_sites_raise_an_error_with_both_numbers(swath):
    with pytest.raises(
        ValueError, match=r"has 60 sites with all channels.* needs 1000. Use a file with more"
    ):
        usable(swath, Protocol(channels=SMALL.channels))


def test_every_site_drawn_is_held_out_once(swath, monkeypatch):
    table, seen = usable(swath, SMALL), []

    def look(settings, X, Y, X_new, random_state):
        seen.append((set(X.index), set(X_new.index)))
        raise StopIteration

    monkeypatch.setattr(atms, "fit_and_predict", look)
    for job in jobs(swath, {"GP": METHODS["GP"]}, 2, SMALL):
        with pytest.raises(StopIteration):
            work(table, job)
    for (train_a, test_a), (train_b, test_b) in (seen[::2], seen[1::2]):
        assert train_a == test_b
        assert train_b == test_a
        assert len(train_a) == len(test_a) == 20
        assert not train_a & test_a
    assert set.union(*seen[0]) != set.union(*seen[1])  # another experiment draws other sites


def test_all_methods_predict_better_than_the_mean_and_their_rows_are_stored(swath, tmp_path):
    """The outputs are standardised, so that predicting their mean has a squared error of one."""
    path = tmp_path / "rows.jsonl"
    rows = reproduce(swath, path, experiments=1, methods=QUICK, protocol=SMALL)
    assert [(row["fold"], row["method"]) for row in rows] == [
        (fold, method) for fold in range(2) for method in QUICK
    ]
    assert rows[0]["data"] == "NPP TDR 2014-11-30T18:17:27Z"
    for row in rows:
        assert row["mse"].keys() == {"ch01", "ch02"}
        assert 0 < max(row["mse"].values()) < 0.2, row["method"]
        assert row["seconds"] > 0
    assert read(path) == rows
    assert text(summary(rows, "mse")).count("\n") == 11


def test_an_interrupted_run_is_resumed(swath, tmp_path, monkeypatch):
    path, calls = tmp_path / "rows.jsonl", []

    def interrupted(table, job):
        if len(calls) == 4:
            raise KeyboardInterrupt
        calls.append((job["experiment"], job["fold"], job["method"]))
        return {"mse": {}, "mae": {}, "seconds": 0.0, "notes": []}

    monkeypatch.setattr(atms, "work", interrupted)
    with pytest.raises(KeyboardInterrupt):
        reproduce(swath, path, experiments=2, methods=QUICK, protocol=SMALL)
    first = calls.copy()
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        reproduce(swath, path, experiments=2, methods=QUICK, protocol=SMALL)
    assert len(read(path)) == 8
    assert not set(first) & set(calls)


def test_another_granule_has_other_rows(swath, tmp_path, monkeypatch):
    monkeypatch.setattr(atms, "work", lambda table, job: {"mse": {}})
    path = tmp_path / "rows.jsonl"
    reproduce(swath, path, experiments=1, methods=QUICK, protocol=SMALL)
    swath.attrs["start"] = "2014-06-01T00:00:00Z"
    reproduce(swath, path, experiments=1, methods=QUICK, protocol=SMALL)
    assert len(read(path)) == 2 * 2 * len(QUICK)


def test_emgpr_has_a_smaller_error_than_no_transfer_on_a_real_granule(granule):
    """300 sites and five channels; with the 800 and ten of the tables the gain is some 8%."""
    swath = read_atms(*granule[:2])
    protocol = Protocol(sites=400, folds=4, channels=("ch03", "ch04", "ch05", "ch06", "ch07"))
    table = usable(swath, protocol)
    errors = {}
    for name in (NO_TRANSFER, "EMGPR (no ensemble)"):
        first, second, *_ = jobs(swath, {name: METHODS[name]}, 1, protocol)
        rows = [work(table, job)["mse"] for job in (first, second)]
        errors[name] = np.mean([list(row.values()) for row in rows])
    assert errors["EMGPR (no ensemble)"] < 0.98 * errors[NO_TRANSFER] < 0.05
