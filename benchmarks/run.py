"""Every method on every problem, in one run on one core: rows for `table`.

Repeats are interleaved, so that whatever else the machine does falls on all alike. Fits of more
than half a minute are made twice, of more than two minutes once. A method that fails or runs over
the limit is a row that says so, and is spared simulated problems with more readings.
"""

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import PROBLEMS, Absent, Problem
from benchmarks.environments import BENCH, Method, NotInstalled, methods, python_for
from benchmarks.scores import losses, summary, usable

Row = dict[str, Any]

RESULTS = Path(__file__).parent / "results"
WORKER = Path(__file__).with_name("worker.py")
YARDSTICK = "scikit-learn, independent"
SLOW, VERY_SLOW = 30.0, 120.0  # seconds a fit
OVER = "over the limit"
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}


def main() -> None:
    """The command line; `make bench` calls it."""
    args = _arguments()
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H%MZ")
    path = (BENCH if args.quick else RESULTS) / f"{stamp}-cpu.json"
    path.parent.mkdir(exist_ok=True)
    result: dict[str, Any] = {"date": stamp, "machine": machine(), "limit_s": args.limit}

    def keep() -> None:
        path.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")

    names = [name for name in PROBLEMS if _asked(name, args.only)]
    if names:
        chosen = [m for m in methods() if m.name == YARDSTICK or _asked(m.name, args.methods)]
        result["rows"] = []
        for row in contests(names, chosen, args):
            result["rows"].append(row)
            keep()
    if _asked("inner", args.only):
        from benchmarks import inner

        result["inner"] = inner.measure(args.core, say)
        keep()
    say(f"written: {os.path.relpath(path)}")


def contests(
    names: Sequence[str], chosen: Sequence[Method], args: argparse.Namespace
) -> Iterator[Row]:
    """The rows of every problem that is there."""
    pythons: dict[str, Path] = {}
    barred: dict[str, str] = {}  # methods that are not run, and why
    too_large: dict[str, int] = {}  # readings of the simulated problem that was over the limit
    for method in chosen:
        try:
            pythons[method.name] = python_for(method, say)
        except NotInstalled as reason:
            barred[method.name] = f"does not install: {without_paths(str(reason))}"
            say(f"{method.name} is left out, as it {barred[method.name]}")
    for name in names:
        try:
            problem = PROBLEMS[name]()
        except Absent as reason:
            say(f"{name} is left out: {reason}")
            continue
        simulated, readings = name.startswith("simulated"), problem.Y.size
        spared = {
            method: f"{OVER} at {n} readings"
            for method, n in too_large.items()
            if simulated and n <= readings
        }
        for row in contest(problem, chosen, pythons, barred | spared, args):
            if simulated and row["status"] == OVER:
                too_large.setdefault(row["method"], readings)
            row = {"problem": name, "error_is": problem.error, **row}
            say(_line(row))
            yield row


def contest(
    problem: Problem,
    chosen: Sequence[Method],
    pythons: dict[str, Path],
    barred: dict[str, str],
    args: argparse.Namespace,
) -> Iterator[Row]:
    """One problem: round after round, every method that is still due; the yardstick first."""
    chosen = sorted(chosen, key=lambda method: method.name != YARDSTICK)
    due = {method.name: args.repeats for method in chosen}
    yardstick = None
    with tempfile.TemporaryDirectory() as folder:
        problem.save(Path(folder) / "data.npz")
        for repeat in range(args.repeats):
            for name, method in ((m.name, m) for m in chosen if repeat < due[m.name]):
                if name in barred:
                    answer: Row = {"status": barred[name]}
                else:
                    answer = fit(method, pythons[name], Path(folder), repeat, args)
                if answer["status"] == "ok":
                    with np.load(Path(folder) / "answer.npz") as predicted:
                        mean, std = predicted["mean"], predicted["std"]
                    if usable(problem, mean, std):
                        own = losses(problem, mean, std)
                        yardstick = own if name == YARDSTICK else yardstick
                        answer |= summary(own, yardstick)
                    else:
                        answer = {"status": "failed: some predictions are not numbers"}
                if repeat == 0:
                    due[name] = repeats_of(answer.get("fit_s"), args.repeats)
                yield {"method": name, "repeat": repeat, **answer}


def repeats_of(seconds: float | None, repeats: int) -> int:
    """How often a fit of this length is made; one that failed is not made again.

    >>> [repeats_of(seconds, 5) for seconds in (1.0, 40.0, 300.0, None)]
    [5, 2, 1, 1]
    """
    if seconds is None or seconds > VERY_SLOW:
        return 1
    return min(repeats, 2) if seconds > SLOW else repeats


def fit(method: Method, python: Path, folder: Path, seed: int, args: argparse.Namespace) -> Row:
    """One fit in a process of its own: what it cost, or how it ended."""
    request = {
        "method": str(method.file),
        "settings": method.settings,
        "seed": seed,
        "core": args.core,
        "limit_s": args.limit,
        "data": str(folder / "data.npz"),
        "answer": str(folder / "answer.npz"),
    }
    (folder / "request.json").write_text(json.dumps(request))
    command = [str(python), str(WORKER), str(folder / "request.json")]
    patience = 10 * args.limit  # of wall time: the limit is of processor time
    env = os.environ | ONE_THREAD
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience, env=env)
    except subprocess.TimeoutExpired:
        return {"status": OVER}
    if done.returncode == -signal.SIGXCPU:
        return {"status": OVER}
    if done.returncode < 0:  # 9 is mostly for want of memory
        return {"status": f"failed: ended by signal {-done.returncode}"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"status": f"failed: {without_paths(last)}"}
    with np.load(folder / "answer.npz") as answer:
        return {"status": "ok", **json.loads(str(answer["cost"]))}


def last_core() -> int:
    """The last core that we may use: interrupts are mostly on the first."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0


def machine() -> dict[str, Any]:
    """What was measured on: no names, no paths."""
    cpu = platform.processor() or platform.machine()
    if (info := Path("/proc/cpuinfo")).exists():
        names = re.findall(r"model name\s*: (.*)", info.read_text())
        cpu = names[0] if names else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def without_paths(text: str) -> str:
    """The text without folders of this machine.

    >>> without_paths("cannot open /some/folder/x.so: not found")
    'cannot open …/x.so: not found'
    """
    return re.sub(r"(?<![\w/])(/[^\s/:'\"]+)+/", "…/", text)[:200]


def say(text: str) -> None:
    """Progress, for whoever waits."""
    print(text, file=sys.stderr, flush=True)


def _line(row: Row) -> str:
    start = f"{row['problem']} · {row['method']} · {row['repeat'] + 1}: "
    if row["status"] != "ok":
        return start + row["status"]
    return start + f"{row['fit_s']:.2f} s, {row['error_is']} {row['error'][0]:.4f}"


def _asked(name: str, wanted: Sequence[str]) -> bool:
    """Whether the name begins like one of those wanted, if any are."""
    return not wanted or any(name.lower().startswith(word.lower()) for word in wanted)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help=f"{', '.join(PROBLEMS)} or inner")
    parser.add_argument("--methods", nargs="*", default=[], help="how their names begin")
    parser.add_argument("--limit", type=float, default=600.0, help="processor seconds a fit")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--core", type=int, default=last_core(), help="where every fit runs")
    parser.add_argument("--quick", action="store_true", help="a look: two problems, once, not kept")
    args = parser.parse_args()
    if args.quick:
        args.only, args.repeats = args.only or ["jura", "simulated-200x3"], 1
        args.limit = min(args.limit, 60.0)
    return args


if __name__ == "__main__":
    main()
