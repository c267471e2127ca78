"""What `model.plan` foretells, beside what the fit then takes.

    PYTHONPATH=src python -m benchmarks.planned [default-10000 paper-3000 …]

A row for each model: seconds and memory as planned and as measured, and their ratios, for the fit
and for the first prediction of 1000 places. Each is a process of its own, with one thread; measured
is processor time, and the most memory beyond what it had after the libraries were loaded. How fast
the machine is, is tried again and again, and by processor time, since others may be using it.
"""

import argparse
import ctypes
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.known import draw

CASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "default-1000": ("EMGPR", {}, 1_000),
    "default-10000": ("EMGPR", {}, 10_000),
    "default-100000": ("EMGPR", {}, 100_000),
    "vfe-5000": ("EMGPR", {"latent_learner": "vfe"}, 5_000),
    "paper-3000": ("paper", {}, 3_000),
    "paper-poe-10000": ("paper", {"latent_learner": "auto", "n_members": 50}, 10_000),
    "no-transfer-10000": ("IndependentGP", {}, 10_000),
    "no-transfer-100000": ("IndependentGP", {}, 100_000),
    "fitc-5000": ("IndependentGP", {"latent_learner": "fitc"}, 5_000),
    "pitc-5000": ("IndependentGP", {"latent_learner": "pitc"}, 5_000),
    "variogram-10000": ("IndependentGP", {"latent_learner": "variogram"}, 10_000),
}
HEAD = ("", "fit: planned", "took", "ratio", "memory: planned", "took", "ratio", "1000 places:", "")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planned", description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="case")
    print("".join(f"{word:>16}" for word in HEAD))
    for name in parser.parse_args().cases:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            fit, predict = process.submit(measured, name).result()
        cells = [
            name, f"{fit[0]:.1f} s", f"{fit[1]:.1f} s", f"{fit[0] / fit[1]:.2f}",
            f"{fit[2] / 1e6:.0f} MB", f"{fit[3] / 1e6:.0f} MB", f"{fit[2] / fit[3]:.2f}",
            f"{predict[0]:.2f} s", f"{predict[1]:.2f} s",
        ]  # fmt: skip
        print("".join(f"{cell:>16}" for cell in cells), flush=True)


def measured(name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Seconds planned and taken, bytes planned and taken: of the fit, and of a prediction."""
    os.environ["OMP_NUM_THREADS"] = "1"
    from threadpoolctl import threadpool_limits

    import emgpr
    from emgpr.estimators import cost
    from emgpr.estimators import plan as planning

    kind, settings, N = CASES[name]
    make: Callable[..., Any] = emgpr.EMGPR.paper if kind == "paper" else getattr(emgpr, kind)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = draw(30, 3, 1)
        make(**settings, random_state=0).fit(small.X, small.Y).predict(small.X_new)  # loads all
        planning.perf_counter = time.process_time
        tries = [planning.measured("cpu") for _ in range(20)]
        fastest = max(one.operations for one in tries), min(one.value for one in tries)
        cost.measured = lambda _: planning.Speed(*fastest)
        world, model = draw(N, 3, 1000), make(**settings, random_state=0)
        plan = model.plan(world.X, world.Y)
        rows = []
        for step, work in (
            ((plan.seconds, plan.bytes), lambda: model.fit(world.X, world.Y)),
            (
                (plan.prediction.seconds, plan.prediction.bytes),
                lambda: model.predict(world.X_new, return_std=True),
            ),
        ):
            with watched() as found:
                work()
            rows.append((step[0], found["seconds"], step[1], found["bytes"]))
        return rows[0], rows[1]


@contextmanager
def watched() -> Iterator[dict[str, float]]:
    """Processor time of a block, and the most memory that it has above what it began with."""
    ctypes.CDLL(None).malloc_trim(0)  # or what earlier work has left would hide it
    before, found, done = resident(), {"seconds": 0.0, "bytes": 1.0}, threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            found["bytes"] = max(found["bytes"], resident() - before)

    watcher, start = threading.Thread(target=look), time.process_time()
    watcher.start()
    try:
        yield found
    finally:
        found["seconds"] = time.process_time() - start
        done.set()
        watcher.join()


def resident() -> float:
    """Bytes of memory in use, where the system tells."""
    return float(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
