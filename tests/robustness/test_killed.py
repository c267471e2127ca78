"""A fit that is killed goes on and ends with the same bits; ctrl-C is heard at once."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

SCRIPT = str(Path(__file__).with_name("long_fit.py"))
PROMPT = 10.0  # seconds; two are promised, and a busy machine is given more
posix = pytest.mark.skipif(os.name != "posix", reason="signals and process groups of POSIX")


def begun(kind, out, *path):
    """The process of a fit, once it has begun; in a group of its own."""
    process = subprocess.Popen(
        [sys.executable, SCRIPT, kind, str(out), *map(str, path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert process.stdout.readline() == "begun\n", process.stderr.read()
    return process


def ended(process):
    """Seconds that the fit took."""
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    return float(stdout)


def kill_after(process, seconds):
    """Whether it was still at work then."""
    time.sleep(seconds)
    working = process.poll() is None
    if working:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return working


@posix
@pytest.mark.parametrize(("kind", "kills"), [("paper", 5), ("joint", 5), ("workers", 2)])
def test_killed_at_random_moments_it_ends_with_the_same_bits(kind, kills, tmp_path):
    rng = np.random.default_rng(list(kind.encode()))
    whole, resumed, path = tmp_path / "whole.npz", tmp_path / "resumed.npz", tmp_path / "fit.ck"
    seconds = ended(begun(kind, whole))
    killed = 0
    while killed < kills:
        killed += kill_after(begun(kind, resumed, path), seconds * rng.uniform(0.02, 0.5))
        if resumed.exists():  # it was too quick for us: the next one begins anew
            resumed.unlink()
    ended(begun(kind, resumed, path))
    assert not path.exists()
    with np.load(whole) as one, np.load(resumed) as other:
        assert one.files == other.files
        for name in one.files:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def children(pid):
    """Processes that a process has, and theirs, but for the trackers of shared resources."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,args"], capture_output=True, text=True).stdout
    rows = [line.split(maxsplit=2) for line in listed.splitlines()[1:]]
    own = [row for row in rows if row[1] == str(pid) and "resource_tracker" not in row[2]]
    return [int(row[0]) for row in own] + [c for row in own for c in children(int(row[0]))]


def is_there(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@posix
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("kind", ["endless", "endless workers"])
def test_ctrl_c_ends_it_at_once_leaves_no_worker_and_says_how_to_go_on(kind, tmp_path):
    path = tmp_path / "fit.ck"
    process = begun(kind, tmp_path / "none.npz", path)
    while not path.exists():
        time.sleep(0.05)
    nothing_yet = path.stat().st_size
    if kind == "endless workers":
        while len(children(process.pid)) < 2 or path.stat().st_size <= nothing_yet:
            time.sleep(0.05)
    time.sleep(2.0)
    workers = children(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: all of the group hear it
    start = time.monotonic()
    _, stderr = process.communicate(timeout=60)
    while any(map(is_there, workers)) and time.monotonic() - start < PROMPT:
        time.sleep(0.02)
    assert time.monotonic() - start < PROMPT
    *_, stop, note = stderr.strip().splitlines()
    assert stop == "KeyboardInterrupt"
    assert f"kept in {path}" in note
    assert f"checkpoint='{path}'" in note
    assert path.exists()
