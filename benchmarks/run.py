"""Run every method on every problem on one core, and store the results for `table`.

Repeats are interleaved, so that other programs on the machine affect all methods equally. Fits that
take more than half a minute are run twice, and fits that take more than two minutes only once. If a
method fails or exceeds the time limit, its row says so. A method that exceeds the limit is not run
on simulated problems with more readings.
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

from benchmarks.data import PROBLEMS, DataNotAvailable, Problem
from benchmarks.environments import BENCH, Method, NotInstalled, methods, python_for
from benchmarks.scores import is_valid, losses, summary

Row = dict[str, Any]

RESULTS = Path(__file__).parent / "results"
WORKER = Path(__file__).with_name("worker.py")
REFERENCE = "scikit-learn, independent"  # the method with which all others are compared
SLOW, VERY_SLOW = 30.0, 120.0  # Longer fits (in seconds) are run only twice or once.
OVER_LIMIT = "over the limit"
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}


def main() -> None:
    """Parse the command line, and run the benchmarks."""
    args = _arguments()
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H%MZ")
    path = (BENCH if args.quick else RESULTS) / f"{stamp}-cpu.json"
    path.parent.mkdir(exist_ok=True)
    result: dict[str, Any] = {"date": stamp, "machine": machine(), "limit_s": args.limit}

    def store() -> None:
        path.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")

    names = [name for name in PROBLEMS if _is_selected(name, args.only)]
    if names:
        chosen = [m for m in methods() if m.name == REFERENCE or _is_selected(m.name, args.methods)]
        result["rows"] = []
        for row in run_problems(names, chosen, args):
            result["rows"].append(row)
            store()
    if _is_selected("inner", args.only):
        from benchmarks import inner

        result["inner"] = inner.measure(args.core, log)
        store()
    log(f"written: {os.path.relpath(path)}")


def run_problems(
    names: Sequence[str], chosen: Sequence[Method], args: argparse.Namespace
) -> Iterator[Row]:
    """Yield the rows for every problem whose data are available."""
    pythons: dict[str, Path] = {}
    excluded: dict[str, str] = {}  # methods that are not run, with the reason
    too_large: dict[str, int] = {}  # number of readings with which a method exceeded the time limit
    for method in chosen:
        try:
            pythons[method.name] = python_for(method, log)
        except NotInstalled as reason:
            excluded[method.name] = f"does not install: {without_paths(str(reason))}"
            log(f"{method.name} is left out: it {excluded[method.name]}")
    for name in names:
        try:
            problem = PROBLEMS[name]()
        except DataNotAvailable as reason:
            log(f"{name} is left out: {reason}")
            continue
        simulated, n_readings = name.startswith("simulated"), problem.Y.size
        skipped = {
            method: f"{OVER_LIMIT} at {n} readings"
            for method, n in too_large.items()
            if simulated and n <= n_readings
        }
        fitting = [m for m in chosen if is_suitable(m, problem)]
        for row in run_problem(problem, fitting, pythons, excluded | skipped, args):
            if simulated and row["status"] == OVER_LIMIT:
                too_large.setdefault(row["method"], n_readings)
            row = {"problem": name, "error_is": problem.error, **row}
            log(_line(row))
            yield row


def is_suitable(method: Method, problem: Problem) -> bool:
    """Tell whether a method is run on a problem: regressions need outputs known where they predict.

    The truth of known outputs is NaN, because it is not evaluated.
    """
    if problem.methods is not None:
        return method.name in problem.methods
    return not method.name.endswith("on known outputs") or bool(np.isnan(problem.truth).any())


def run_problem(
    problem: Problem,
    chosen: Sequence[Method],
    pythons: dict[str, Path],
    excluded: dict[str, str],
    args: argparse.Namespace,
) -> Iterator[Row]:
    """Yield the rows for one problem, repeat by repeat, with the reference method first."""
    chosen = sorted(chosen, key=lambda method: method.name != REFERENCE)
    repeats = {method.name: args.repeats for method in chosen}
    reference = None
    with tempfile.TemporaryDirectory() as folder:
        problem.save(Path(folder) / "data.npz")
        for repeat in range(args.repeats):
            for name, method in ((m.name, m) for m in chosen if repeat < repeats[m.name]):
                if name in excluded:
                    answer: Row = {"status": excluded[name]}
                else:
                    answer = run_fit(method, pythons[name], Path(folder), repeat, args)
                if answer["status"] == "ok":
                    with np.load(Path(folder) / "answer.npz") as predicted:
                        mean, std = predicted["mean"], predicted["std"]
                    if is_valid(problem, mean, std):
                        by_site = losses(problem, mean, std)
                        reference = by_site if name == REFERENCE else reference
                        answer |= summary(by_site, reference)
                    else:
                        answer = {"status": "failed: some predictions are not numbers"}
                if repeat == 0:
                    repeats[name] = n_repeats(answer.get("fit_s"), args.repeats)
                yield {"method": name, "repeat": repeat, **answer}


def n_repeats(seconds: float | None, most: int) -> int:
    """Return how often a fit of this duration is run; a failed fit is not repeated.

    >>> [n_repeats(seconds, 5) for seconds in (1.0, 40.0, 300.0, None)]
    [5, 2, 1, 1]
    """
    if seconds is None or seconds > VERY_SLOW:
        return 1
    return min(most, 2) if seconds > SLOW else most


def run_fit(method: Method, python: Path, folder: Path, seed: int, args: argparse.Namespace) -> Row:
    """Run a fit in a separate process, and return its cost or the reason for its failure."""
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
    timeout = 10 * args.limit  # This timeout is wall time. The limit itself is processor time.
    env = os.environ | ONE_THREAD
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=env)
    except subprocess.TimeoutExpired:
        return {"status": OVER_LIMIT}
    if done.returncode == -signal.SIGXCPU:
        return {"status": OVER_LIMIT}
    if done.returncode < 0:  # Signal 9 usually means that memory was exhausted.
        return {"status": f"failed: ended by signal {-done.returncode}"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"status": f"failed: {without_paths(last)}"}
    with np.load(folder / "answer.npz") as answer:
        return {"status": "ok", **json.loads(str(answer["cost"]))}


def last_core() -> int:
    """Return the last available core, since the first one handles most interrupts."""
    return max(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0


def machine() -> dict[str, Any]:
    """Return a description of the machine without names or paths."""
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
    """Remove folders of this machine from a text.

    >>> without_paths("cannot open /some/folder/x.so: not found")
    'cannot open …/x.so: not found'
    """
    return re.sub(r"(?<![\w/])(/[^\s/:'\"]+)+/", "…/", text)[:200]


def log(text: str) -> None:
    """Print a progress message to stderr."""
    print(text, file=sys.stderr, flush=True)


def _line(row: Row) -> str:
    start = f"{row['problem']} · {row['method']} · {row['repeat'] + 1}: "
    if row["status"] != "ok":
        return start + row["status"]
    return start + f"{row['fit_s']:.2f} s, {row['error_is']} {row['error'][0]:.4f}"


def _is_selected(name: str, beginnings: Sequence[str]) -> bool:
    """Tell whether a name starts with one of these words, or there are no words."""
    return not beginnings or any(name.lower().startswith(word.lower()) for word in beginnings)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument(
        "--only", nargs="*", default=[], help=f"any of {', '.join(PROBLEMS)}, inner"
    )
    parser.add_argument("--methods", nargs="*", default=[], help="beginnings of method names")
    parser.add_argument(
        "--limit", type=float, default=600.0, help="limit on the processor time of a fit in seconds"
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--core", type=int, default=last_core(), help="core on which fits run")
    parser.add_argument("--quick", action="store_true", help="run two problems once")
    args = parser.parse_args()
    if args.quick:
        args.only, args.repeats = args.only or ["jura", "simulated-200x3"], 1
        args.limit = min(args.limit, 60.0)
    return args


if __name__ == "__main__":
    main()
