"""One fit and one prediction of one method, timed, in a process of its own.

Runs in the method's environment, so on the standard library and NumPy alone:
python worker.py REQUEST, a JSON file with the method's file, its settings, a seed, the core to
stay on, a limit, and where the data are and the answer goes. Clock and limit are of processor
time: what other programs do meanwhile on the core does not count.
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
    """Load, fit, predict; write predictions and what they cost."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {request["core"]})
    warnings.simplefilter("ignore")
    method = load(Path(request["method"]))
    data = np.load(request["data"])
    X, Y, X_new = (data[name] for name in ("X", "Y", "X_new"))

    limit = int(time.process_time() + request["limit_s"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    before = peak_memory()
    start, wall = time.process_time(), time.perf_counter()
    model = method.fit(X, Y, request["seed"], **request["settings"])
    fitted, waited = time.process_time(), time.perf_counter()
    in_fit = peak_memory()
    mean, std = method.predict(model, X_new)
    predicted = time.process_time()

    cost = {
        "fit_s": fitted - start,
        "fit_wall_s": waited - wall,
        "predict_s": predicted - fitted,
        "fit_mib": (in_fit - before) / 2**20,
        "versions": {name: version(name) for name in map(bare, method.REQUIREMENTS)},
    }
    np.savez(request["answer"], mean=mean, std=std, cost=json.dumps(cost))


def load(path: Path) -> ModuleType:
    """A method's file as a module; its name cannot hide the library of the same name."""
    spec = importlib.util.spec_from_file_location(f"method_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bare(requirement: str) -> str:
    """The name of a requirement.

    >>> bare("torch==2.13.0")
    'torch'
    """
    return requirement.partition("==")[0]


def peak_memory() -> int:
    """The most memory that the process has had, in bytes.

    From the kernel's own count where there is one: what getrusage says includes the parent.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
