"""A fit that was killed resumes and ends with the same bits; Ctrl-C ends a fit promptly."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

SCRIPT = str(Path(__file__).with_name("long_fit.py"))
PROMPT_SECONDS = 10.0  # two are promised; a busy machine gets more
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals and process groups of POSIX"),
]


def run(kind, folder, *more):
    """Return the process of the script, in a group of its own."""
    return subprocess.Popen(
        [sys.executable, SCRIPT, kind, str(folder), *map(str, more)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "SEARCHES": str(folder / "searches")},
    )


@pytest.mark.parametrize(("kind", "kills"), [("paper", 3), ("joint", 3), ("workers", 1)])
def test_a_fit_that_is_killed_and_resumed_ends_with_the_same_bits(kind, kills, tmp_path):
    process = run(kind, tmp_path, kills)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    assert not (tmp_path / "fit.ck").exists()
    with np.load(tmp_path / "whole.npz") as one, np.load(tmp_path / "resumed.npz") as other:
        assert one.files == other.files
        for name in one.files:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def wait(process, is_ready):
    """Wait until something is ready; fail if the process ends before."""
    while not is_ready():
        assert process.poll() is None, f"The fit ended by itself. {process.stderr.read()}"
        time.sleep(0.05)


def descendants(pid):
    """Return all processes below a process, except trackers of shared resources."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True).stdout
    rows = [line.split(maxsplit=2) for line in listed.splitlines()[1:]]
    own = [row for row in rows if row[1] == str(pid) and "resource_tracker" not in row[2]]
    return [int(row[0]) for row in own] + [c for row in own for c in descendants(int(row[0]))]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize(("kind", "n_searches"), [("endless", 1), ("endless workers", 2)])
def test_ctrl_c_ends_a_fit_and_its_workers_promptly_and_says_how_to_resume(
    kind, n_searches, tmp_path
):
    path, searches = tmp_path / "fit.ck", tmp_path / "searches"
    searches.mkdir()
    process = run(kind, tmp_path)
    assert process.stdout.readline() == "begun\n", process.stderr.read()
    wait(process, lambda: len(list(searches.iterdir())) >= n_searches)
    workers = descendants(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
    start = time.monotonic()
    _, stderr = process.communicate(timeout=60)
    while any(map(is_alive, workers)) and time.monotonic() - start < PROMPT_SECONDS:
        time.sleep(0.02)
    assert time.monotonic() - start < PROMPT_SECONDS
    *_, error, note = stderr.strip().splitlines()
    assert error == "KeyboardInterrupt"
    assert f"stored in {path}" in note
    assert f"checkpoint='{path}'" in note
    assert path.exists()
