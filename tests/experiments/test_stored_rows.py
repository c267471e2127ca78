"""Rows survive being stopped, and nothing is worked out twice."""

import json

import pytest

from emgpr import EnsembleWarning
from emgpr.estimators.standing import left_behind
from emgpr.experiments.rows import append, complete, missing, read

JOBS = [{"method": method, "fold": fold} for fold in range(3) for method in ("GP", "ICM")]


class Worker:
    """Counts its jobs; ctrl-C comes after so many."""

    def __init__(self, patience=99):
        self.done = []
        self.patience = patience

    def __call__(self, job):
        if len(self.done) == self.patience:
            raise KeyboardInterrupt
        self.done.append(job)
        return {"mae": len(job["method"]) + job["fold"]}


def test_rows_come_in_the_order_of_the_jobs_with_results_added(tmp_path):
    rows = complete(JOBS, Worker(), tmp_path / "new" / "rows.jsonl")
    assert rows == [job | {"mae": len(job["method"]) + job["fold"]} for job in JOBS]
    lines = (tmp_path / "new" / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == rows


@pytest.mark.parametrize("k", [0, 1, 4])
def test_stopped_after_k_rows_only_the_rest_is_worked_out(tmp_path, k):
    path = tmp_path / "rows.jsonl"
    with pytest.raises(KeyboardInterrupt):
        complete(JOBS, Worker(patience=k), path)
    assert len(read(path)) == k
    second = Worker()
    rows = complete(JOBS, second, path)
    assert second.done == JOBS[k:]
    assert rows == complete(JOBS, Worker(patience=0), path)


def test_other_settings_are_another_job(tmp_path):
    path = tmp_path / "rows.jsonl"
    nine, three = ({"method": "EMGPR", "settings": {"batch_size": n}, "fold": 0} for n in (9, 3))
    complete([nine], Worker(), path)
    assert missing([nine, three], read(path)) == [three]
    assert complete([three], Worker(), path)[0]["settings"] == {"batch_size": 3}
    assert len(read(path)) == 2


def test_a_setting_of_none_is_not_a_setting_that_is_absent():
    assert missing([{"method": "EMGPR", "size": None}], [{"method": "EMGPR"}])


def test_half_a_line_is_cut_off_and_worked_out_again(tmp_path):
    path = tmp_path / "rows.jsonl"
    complete(JOBS[:2], Worker(), path)
    whole = path.read_text()
    path.write_text(whole[:-7])
    again = Worker()
    complete(JOBS[:2], again, path)
    assert again.done == JOBS[1:2]
    assert path.read_text() == whole


def test_several_processes_write_to_one_file(tmp_path):
    rows = complete(JOBS, len_of_method, tmp_path / "rows.jsonl", n_jobs=2)
    assert [row["mae"] for row in rows] == [2, 3] * 3


def len_of_method(job):
    return {"mae": len(job["method"])}


def test_a_line_that_is_not_json_is_named(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"mae": 1}\nmae = 2\n')
    with pytest.raises(ValueError, match=r"rows\.jsonl, line 2, is not JSON .*Delete that line"):
        read(path)


def test_a_result_that_is_no_number_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        append(tmp_path / "rows.jsonl", {"mae": float("nan")})
    assert not (tmp_path / "rows.jsonl").exists()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_members_that_failed_are_told_of_whoever_fitted_them_and_when(tmp_path, n_jobs):
    path = tmp_path / "rows.jsonl"
    for _ in "worked out", "from the file":
        with pytest.warns(EnsembleWarning, match="2 of 5 members failed"):
            complete(JOBS, lost_two, path, n_jobs=n_jobs)


def lost_two(job):
    return {"notes": [left_behind(3, 5, "MemoryError"), "Step 1 of 'Zn': a bound."]}
