"""Planned costs (`model.plan`) compared with the measured costs of fits.

    PYTHONPATH=src python -m benchmarks.planned [default-600x6 paper-3000x3 …]

Each row shows, for one model, the planned and measured time and memory of the fit, their ratios,
and the planned and measured time of the first prediction at 1000 locations. Each case runs in a
separate process with one thread. The measured time is processor time. The measured memory is the
peak memory minus the memory used after loading the libraries. Since a plan measures the speed of
the machine, which may be busy, the fastest of several plans is used. Cases are named by their
numbers of sites and outputs. Those in `HOURS` run only if they are named.
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

N_PLANS = 10  # number of plans, of which the fastest is used
PLAIN: dict[str, Any] = {"kernel": "rbf", "output_transform": None}
CASES: dict[str, tuple[str, dict[str, Any], int, int]] = {
    "default-100x3": ("EMGPR", {}, 100, 3),
    "default-600x6": ("EMGPR", {}, 600, 6),
    "default-606x30": ("EMGPR", {}, 606, 30),
    "default-20000x6": ("EMGPR", {}, 20_000, 6),
    "paper-20000x6": ("paper", {}, 20_000, 6),
    "paper-auto-20000x6": ("paper", {"latent_learner": "auto"}, 20_000, 6),
    "default-1000x3": ("EMGPR", {}, 1_000, 3),
    "default-10000x3": ("EMGPR", {}, 10_000, 3),
    "default-100000x3": ("EMGPR", {}, 100_000, 3),
    "vfe-5000x3": ("EMGPR", {"latent_learner": "vfe"}, 5_000, 3),
    "paper-3000x3": ("paper", {}, 3_000, 3),
    "paper-poe-10000x3": ("paper", {"latent_learner": "auto", "n_members": 50}, 10_000, 3),
    "no-transfer-10000x3": ("IndependentGP", PLAIN, 10_000, 3),
    "no-transfer-100000x3": ("IndependentGP", PLAIN, 100_000, 3),
    "fitc-5000x3": ("IndependentGP", PLAIN | {"latent_learner": "fitc"}, 5_000, 3),
    "pitc-5000x3": ("IndependentGP", PLAIN | {"latent_learner": "pitc"}, 5_000, 3),
    "variogram-10000x3": ("IndependentGP", PLAIN | {"latent_learner": "variogram"}, 10_000, 3),
}
HOURS = {"paper-20000x6"}  # cases that take hours
HEADER = (
    "", "fit: planned", "measured", "ratio", "memory: planned", "measured", "ratio",
    "1000: planned", "measured",
)  # fmt: skip


def main() -> None:
    """Measure the cases, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planned", description=__doc__)
    parser.add_argument("cases", nargs="*", metavar="case")
    cases = parser.parse_args().cases or [name for name in CASES if name not in HOURS]
    print("".join(f"{word:>21}" for word in HEADER))
    for name in cases:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            fit, predict = process.submit(measure, *CASES[name]).result()
        cells = [
            name, f"{fit[0]:.1f} s", f"{fit[1]:.1f} s", f"{fit[0] / fit[1]:.2f}",
            f"{fit[2] / 1e6:.0f} MB", f"{fit[3] / 1e6:.0f} MB", f"{fit[2] / fit[3]:.2f}",
            f"{predict[0]:.2f} s", f"{predict[1]:.2f} s",
        ]  # fmt: skip
        print("".join(f"{cell:>21}" for cell in cells), flush=True)


def measure(
    kind: str, settings: dict[str, Any], N: int, D: int
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return planned and measured seconds and bytes of the fit and of the prediction."""
    os.environ["OMP_NUM_THREADS"] = "1"
    from threadpoolctl import threadpool_limits

    import emgpr

    make: Callable[..., Any] = emgpr.EMGPR.paper if kind == "paper" else getattr(emgpr, kind)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        small = draw(30, 3, 1)  # A small fit loads the libraries.
        make(**settings, random_state=0).fit(small.X, small.Y).predict(small.X_new)
        known, model = draw(N, D, 1000), make(**settings, random_state=0)
        plans = [model.plan(known.X, known.Y) for _ in range(N_PLANS)]
        plan = min(plans, key=lambda plan: plan.seconds)
        with watched() as fit:
            model.fit(known.X, known.Y)
        with watched() as predict:
            model.predict(known.X_new, return_std=True)
    return (
        (plan.seconds, fit["seconds"], plan.bytes, fit["bytes"]),
        (plan.prediction.seconds, predict["seconds"], plan.prediction.bytes, predict["bytes"]),
    )


@contextmanager
def watched() -> Iterator[dict[str, float]]:
    """Measure the processor time of a block, and its peak memory minus that at its start."""
    ctypes.CDLL(None).malloc_trim(
        0
    )  # Otherwise, memory freed earlier would be reused and not counted.
    before, cost, done = resident(), {"seconds": 0.0, "bytes": 1.0}, threading.Event()

    def poll() -> None:
        while not done.wait(0.02):
            cost["bytes"] = max(cost["bytes"], resident() - before)

    poller, start = threading.Thread(target=poll), time.process_time()
    poller.start()
    try:
        yield cost
    finally:
        cost["seconds"] = time.process_time() - start
        done.set()
        poller.join()


def resident() -> float:
    """Return the resident memory in bytes (Linux)."""
    return float(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
