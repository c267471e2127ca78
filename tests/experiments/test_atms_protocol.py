"""The ATMS experiments on a small made-up swath: what is drawn, held out, kept and gone on with."""

import numpy as np
import pandas as pd
import pytest

from emgpr.experiments import atms
from emgpr.experiments.atms import METHODS, Protocol, jobs, reproduce, usable, work
from emgpr.experiments.atms_results import summary, text
from emgpr.experiments.rows import read

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


def test_edges_and_gaps_are_left_out_and_no_date_line_is_left(swath):
    swath.loc[3, "ch02"] = np.nan
    table = usable(swath, SMALL)
    assert list(table) == ["lat", "lon", "ch01", "ch02"]
    assert len(table) == 6 * 10 - 1
    assert np.ptp(table["lon"]) == pytest.approx(0.2 * 9)


def test_too_few_sites_say_so(swath):
    with pytest.raises(ValueError, match=r"has 60 sites .* draws 1000. Give a file with more"):
        usable(swath, Protocol(channels=SMALL.channels))


def test_every_site_drawn_is_held_out_once(swath, monkeypatch):
    table, seen = usable(swath, SMALL), []

    def look(settings, X, Y, new, random_state):
        seen.append((set(X.index), set(new.index)))
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
    assert set.union(*seen[0]) != set.union(*seen[1])  # another experiment, another draw


def test_all_methods_beat_the_mean_and_are_kept(swath, tmp_path):
    """The outputs are standardised, so predicting their mean has a squared error of one."""
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


def test_stopped_it_goes_on_where_it_was(swath, tmp_path, monkeypatch):
    path, calls = tmp_path / "rows.jsonl", []

    def fake(table, job):
        if len(calls) == 4:
            raise KeyboardInterrupt
        calls.append((job["experiment"], job["fold"], job["method"]))
        return {"mse": {}, "mae": {}, "seconds": 0.0, "notes": []}

    monkeypatch.setattr(atms, "work", fake)
    with pytest.raises(KeyboardInterrupt):
        reproduce(swath, path, experiments=2, methods=QUICK, protocol=SMALL)
    first = calls.copy()
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        reproduce(swath, path, experiments=2, methods=QUICK, protocol=SMALL)
    assert len(read(path)) == 8
    assert not set(first) & set(calls)


def test_other_data_are_other_rows(swath, tmp_path, monkeypatch):
    monkeypatch.setattr(atms, "work", lambda table, job: {"mse": {}})
    path = tmp_path / "rows.jsonl"
    reproduce(swath, path, experiments=1, methods=QUICK, protocol=SMALL)
    swath.attrs["start"] = "2014-06-01T00:00:00Z"
    reproduce(swath, path, experiments=1, methods=QUICK, protocol=SMALL)
    assert len(read(path)) == 2 * 2 * len(QUICK)
