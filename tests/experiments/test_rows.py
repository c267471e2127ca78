"""Rows survive an interruption, and nothing is computed twice."""

import json

import pytest

from emgpr import EnsembleWarning, __version__
from emgpr.experiments.rows import append, complete, count_finished, missing, read

pytestmark = pytest.mark.slow

JOBS = [{"method": method, "fold": fold} for fold in range(3) for method in ("GP", "ICM")]
FAILED = "2 of 5 members failed twice and are left out (MemoryError); the other 3 form the ensemble"


class Worker:
    """Records its jobs; Ctrl-C comes after `limit` of them."""

    def __init__(self, limit=99):
        self.done = []
        self.limit = limit

    def __call__(self, job):
        if len(self.done) == self.limit:
            raise KeyboardInterrupt
        self.done.append({key: job[key] for key in job if key != "version"})
        return {"mae": len(job["method"]) + job.get("fold", 0)}


def test_rows_are_in_the_order_of_the_jobs_with_version_and_results_added(tmp_path):
    rows = complete(JOBS, Worker(), tmp_path / "new" / "rows.jsonl")
    assert rows == [
        job | {"version": __version__, "mae": len(job["method"]) + job["fold"]} for job in JOBS
    ]
    lines = (tmp_path / "new" / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == rows


@pytest.mark.parametrize("k", [0, 4])
def test_after_an_interruption_only_the_missing_rows_are_computed(tmp_path, k):
    path = tmp_path / "rows.jsonl"
    with pytest.raises(KeyboardInterrupt):
        complete(JOBS, Worker(limit=k), path)
    assert len(read(path)) == k
    second = Worker()
    rows = complete(JOBS, second, path)
    assert second.done == JOBS[k:]
    assert rows == complete(JOBS, Worker(limit=0), path)


def test_other_settings_are_another_job(tmp_path):
    path = tmp_path / "rows.jsonl"
    nine, three = ({"method": "EMGPR", "settings": {"batch_size": n}} for n in (9, 3))
    complete([nine], Worker(), path)
    assert missing([nine, three], read(path)) == [three]
    assert complete([three], Worker(), path)[0]["settings"] == {"batch_size": 3}
    assert len(read(path)) == 2


def test_a_setting_of_none_differs_from_a_setting_that_is_absent():
    assert missing([{"method": "EMGPR", "size": None}], [{"method": "EMGPR"}])


def test_rows_with_the_old_name_of_a_setting_are_reused(tmp_path):
    path = tmp_path / "rows.jsonl"
    old = {"method": "GP", "settings": {"transform": "log"}, "version": __version__, "mae": 1.0}
    append(path, old)
    job = {"method": "GP", "settings": {"output_transform": "log"}}
    assert complete([job], Worker(limit=0), path)[0]["mae"] == 1.0


def test_half_a_line_is_removed_and_computed_again(tmp_path):
    path = tmp_path / "rows.jsonl"
    complete(JOBS[:2], Worker(), path)
    whole = path.read_text()
    path.write_text(whole[:-7])
    again = Worker()
    complete(JOBS[:2], again, path)
    assert again.done == JOBS[1:2]
    assert path.read_text() == whole


@pytest.mark.parametrize(
    ("line", "message"),
    [("mae = 2", r"not JSON \(.*\)"), ("5", "not a JSON object"), ('["mae"]', "not a JSON object")],
)
def test_a_line_that_is_not_a_json_object_is_named(tmp_path, line, message):
    path = tmp_path / "rows.jsonl"
    path.write_text(f'{{"mae": 1}}\n{line}\n')
    with pytest.raises(ValueError, match=rf"Line 2 of .*rows\.jsonl is {message}.*Delete the line"):
        read(path)


def test_rows_of_other_versions_are_not_finished_jobs(tmp_path):
    path = tmp_path / "rows.jsonl"
    assert count_finished(JOBS, path) == 0
    append(path, JOBS[0] | {"version": "0.0.1", "mae": 1.0})
    assert count_finished(JOBS, path) == 0
    complete(JOBS[:2], Worker(), path)
    assert count_finished(JOBS, path) == 2
    assert count_finished(JOBS[2:], path) == 0


def test_a_result_that_is_not_a_number_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        append(tmp_path / "rows.jsonl", {"mae": float("nan")})
    assert not (tmp_path / "rows.jsonl").exists()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_failed_members_are_reported_for_new_rows_and_for_stored_ones(tmp_path, n_jobs):
    """Also from several processes, which write to one file."""
    path = tmp_path / "rows.jsonl"
    for _ in "computed", "from the file":
        with pytest.warns(EnsembleWarning, match="2 of 5 members failed"):
            rows = complete(JOBS, with_failed_members, path, n_jobs=n_jobs)
        assert [row["mae"] for row in rows] == [2, 3] * 3


def with_failed_members(job):
    return {"mae": len(job["method"]), "notes": [FAILED, "Step 1 of 'Zn': a bound."]}
