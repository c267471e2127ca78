"""emgpr on a Dask cluster of two processes: memory of a worker, and what a second one gains.

    PYTHONPATH=src python -m benchmarks.dask_scale memory --places 10000000
    PYTHONPATH=src python -m benchmarks.dask_scale memory --one-pass --sites 10000000 --places ...
    PYTHONPATH=src python -m benchmarks.dask_scale speed --sites 50000 --places 50000

`memory` predicts at places drawn at random, in blocks, and writes means and standard deviations to
Zarr in a temporary folder; the peaks of the workers' memory are what the system has counted, with
nothing spilled. Of several numbers of places, the growth from one to the next shows what a block
leaves behind. With `--one-pass` it is OnePassGP that predicts, learned on the cluster from a table
that is drawn as it is read. `speed` learns from and predicts at readings of 10 outputs, on one
worker and on two, and tells how far the two differ. Step 1 of all readings is left to a regressor
of scikit-learn on 500 of them, or to the `--learner` that is named. Needs
`pip install 'emgpr[dask]'`.
"""

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from benchmarks.one_pass import BOX, Truth
from emgpr import EMGPR, OnePassGP

Array = np.ndarray
Numbers = dict[str, Any]

BLOCK = 100_000  # places
FEW = 500  # sites from which kernels are learned
EMPTY = np.empty((0, 0))
WAVES = 300  # of which a latent process is the sum


def main() -> None:
    """Measure, print, store."""
    args = _arguments()
    result = {"date": time.strftime("%Y-%m-%d"), "machine": _machine(), **vars(args)}
    result["measured"] = memory(args) if args.what == "memory" else speed(args)
    text = json.dumps(result, indent=1, default=str) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text)


def memory(args: argparse.Namespace) -> list[Numbers]:
    """Peak memory of each worker after every number of places; a new cluster for each."""
    found: list[Numbers] = []
    model: Any
    if args.one_pass:
        model = OnePassGP(box=BOX, random_state=0)
        found.append({"sites": args.sites, **watched(lambda _: model.fit(*table(args.sites)))})
        print(found[-1], flush=True)
    else:
        X, Y = readings(args.sites, args.outputs)
        model = EMGPR.paper(batch_size=50, n_members=args.members, conditioning=16, random_state=0)
        model.fit(X, Y)
    for places in args.places:
        work = partial(to_zarr, model, places)
        found.append({"places": places, **watched(work)})
        print(found[-1], flush=True)
    return found


def watched(work: Callable[[str], Any]) -> Numbers:
    """What some work on a new cluster takes; it is given a folder, which is removed."""
    with cluster(2) as client, tempfile.TemporaryDirectory() as folder:
        before = client.run(peak)
        began = time.perf_counter()
        work(folder)
        seconds = time.perf_counter() - began
        after = client.run(peak)
    return {
        "seconds": seconds,
        "mib_before": sorted(before.values()),
        "mib_peak": sorted(after.values()),
        "a_worker_was_killed": set(after) != set(before),
    }


def table(sites: int) -> tuple[Any, Any]:
    """Inputs and outputs of so many sites, drawn block by block whenever they are read."""
    import dask.array as da

    truth = Truth(np.random.default_rng(0))
    starts = da.from_array(np.arange(0, sites, BLOCK), chunks=1)

    def drawn(start: Array) -> Array:
        n = min(BLOCK, sites - int(start[0]))
        return np.hstack(truth.chunk(n, np.random.default_rng(int(start[0]))))

    sizes = tuple(min(BLOCK, sites - start) for start in range(0, sites, BLOCK))
    whole = starts.map_blocks(drawn, new_axis=1, chunks=(sizes, (5,)), dtype=float, meta=EMPTY)
    return whole[:, :2], whole[:, 2:]


def to_zarr(model: Any, places: int, folder: str) -> None:
    """Predict at so many places, drawn as they are needed, and write it all."""
    import dask.array as da
    import zarr

    X = da.random.default_rng(0).uniform(size=(places, 2), chunks=(BLOCK, 2))
    D = model.n_outputs_
    kept = [
        zarr.open_array(f"{folder}/{name}", mode="w", shape=(places, D), chunks=(BLOCK, D))
        for name in ("mean", "std")
    ]
    da.store(model.predict(X, return_std=True), kept, lock=False)  # each block has its own chunk


def speed(args: argparse.Namespace) -> Numbers:
    """Seconds to learn and to predict on one worker and on two, and how far they differ."""
    import dask
    import dask.array as da

    X, Y = readings(args.sites, args.outputs)
    learner = args.learner or borrowed(X, Y)
    settings = {"batch_size": 150, "n_members": args.members, "conditioning": 16}
    places = da.from_array(readings(args.places[0], 1, seed=1)[0], chunks=(args.block, 2))
    seconds, told = {}, {}
    for n in (1, 2):
        with cluster(n) as client:
            client.run(lambda: __import__("emgpr").EMGPR)  # imports are no part of it
            before = client.run(time.process_time)
            began = time.perf_counter()
            with joblib.parallel_config("dask"):
                model = EMGPR.paper(latent_learner=learner, random_state=0, **settings).fit(X, Y)
            learned = time.perf_counter()
            told[n] = np.stack(dask.compute(*model.predict(places, return_std=True)))
            ended = time.perf_counter()
            after = client.run(time.process_time)
        seconds[n] = {"fit": learned - began, "predict": ended - learned, "both": ended - began}
        # Of the processors: what the wall clock would say if nothing else ran on the machine.
        seconds[n]["busiest_worker"] = max(after[who] - before[who] for who in after)
        print(f"{n} worker(s): {seconds[n]}", flush=True)
    return {
        "seconds": seconds,
        "two_workers_times_faster": seconds[1]["both"] / seconds[2]["both"],
        "busiest_times_less_busy": seconds[1]["busiest_worker"] / seconds[2]["busiest_worker"],
        "largest_difference": float(np.abs(told[1] - told[2]).max()),
    }


@contextmanager
def cluster(n: int) -> Iterator[Any]:
    """The client of a cluster of n processes, each with one thread; nothing is spilled."""
    from distributed import Client, LocalCluster

    settings = {"threads_per_worker": 1, "memory_limit": 0, "dashboard_address": None}
    with LocalCluster(n_workers=n, **settings) as local, Client(local) as client:
        yield client


def peak() -> float:
    """The most memory that this process has had, in MiB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def readings(N: int, D: int, seed: int = 0) -> tuple[Array, Array]:
    """Places in the unit square, and outputs that mix three smooth processes there.

    >>> [part.shape for part in readings(4, 2)]
    [(4, 2), (4, 2)]
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(N, 2))
    world = np.random.default_rng(0)  # the same for all seeds
    signals = []
    for length_scale in (0.05, 0.1, 0.3):
        waves = world.normal(size=(2, WAVES)) / length_scale
        phases = world.uniform(0, 2 * np.pi, WAVES)
        signals.append(np.cos(X @ waves + phases).sum(axis=1) * np.sqrt(2 / WAVES))
    mixed = np.stack(signals, axis=1) @ world.normal(size=(3, D))
    return X, mixed + 0.3 * rng.normal(size=(N, D))


def borrowed(X: Array, Y: Array) -> list[GaussianProcessRegressor]:
    """Step 1 of every output, learned from some of the sites."""
    few = np.random.default_rng(0).permutation(len(X))[:FEW]
    kernel = RBF(0.1) + WhiteKernel(0.1)
    return [GaussianProcessRegressor(kernel, normalize_y=True).fit(X[few], y) for y in Y[few].T]


def _machine() -> Numbers:
    """What was measured on: no names, no paths."""
    import dask

    return {
        "processor": platform.machine(),
        "cores": joblib.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "dask": dask.__version__,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dask_scale", description=__doc__)
    parser.add_argument("what", choices=["memory", "speed"])
    parser.add_argument("--places", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--outputs", type=int, help="3 for memory, 10 for speed")
    parser.add_argument("--members", type=int, help="1 for memory, 8 for speed")
    parser.add_argument("--block", type=int, default=2500, help="places of a block, for speed")
    parser.add_argument("--learner", help="latent_learner of the estimator, for speed")
    parser.add_argument("--one-pass", action="store_true", help="OnePassGP, for memory")
    parser.add_argument("--out", type=Path, help="where to store the numbers as JSON")
    args = parser.parse_args()
    usual = {"memory": (3, 1), "speed": (10, 8)}[args.what]
    args.outputs, args.members = args.outputs or usual[0], args.members or usual[1]
    return args


if __name__ == "__main__":
    main()
