"""Run and time one fit and one prediction of one method, in a separate process.

The script runs in the environment of the method, so it uses only the standard library and NumPy.
Usage: `python worker.py REQUEST`. The request is a JSON file with the file of the method, its
settings, a seed, the core to run on, a time limit, and the paths of the data and of the results.
Times and the limit are processor times, so that other programs on the same core do not matter.
"""

import importlib.util
import json
import os
import resource
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np


def main(request: dict[str, Any]) -> None:
    """Load the data, fit the model, predict, and write the predictions and costs."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {request["core"]})
    warnings.simplefilter("ignore")
    method = load(Path(request["method"]))
    data = np.load(request["data"])
    X, Y, X_new = (data[name] for name in ("X", "Y", "X_new"))

    limit = int(time.process_time() + request["limit_s"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    before = peak_memory()
    start, wall_start = time.process_time(), time.perf_counter()
    model = method.fit(X, Y, request["seed"], **request["settings"])
    fitted, wall_fitted = time.process_time(), time.perf_counter()
    after = peak_memory()
    mean, std = method.predict(model, X_new)
    predicted = time.process_time()

    cost = {
        "fit_s": fitted - start,
        "fit_wall_s": wall_fitted - wall_start,
        "predict_s": predicted - fitted,
        "fit_mib": (after - before) / 2**20,
        "versions": {name: version(name) for name in map(package_name, method.REQUIREMENTS)},
    }
    intervals = {}
    if hasattr(method, "intervals"):
        intervals["low"], intervals["high"] = method.intervals(model, X_new)
    np.savez(request["answer"], mean=mean, std=std, cost=json.dumps(cost), **intervals)


def load(path: Path) -> ModuleType:
    """Import the file of a method under a name that does not hide the library it uses."""
    spec = importlib.util.spec_from_file_location(f"method_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def package_name(requirement: str) -> str:
    """Return the package name of a requirement.

    >>> package_name("torch==2.13.0")
    'torch'
    """
    return requirement.partition("==")[0]


def peak_memory() -> int:
    """Return the peak memory of the process in bytes.

    The value in /proc is used where available, since getrusage includes the parent process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
