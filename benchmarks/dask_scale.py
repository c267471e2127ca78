"""Memory and speed of emgpr on a Dask cluster of one or two worker processes.

    PYTHONPATH=src python -m benchmarks.dask_scale memory --places 10000000
    PYTHONPATH=src python -m benchmarks.dask_scale memory --one-pass --sites 10000000 --places ...
    PYTHONPATH=src python -m benchmarks.dask_scale speed --sites 50000 --places 50000
    PYTHONPATH=src python -m benchmarks.dask_scale joint --sites 100000

`memory` predicts at random locations, in blocks, and writes means and standard deviations to Zarr
arrays in a temporary folder. The peak memory of the workers is measured by the operating system,
without spilling to disk. If it grows with the number of locations, the memory of finished blocks is
not released. With `--one-pass`, the model is OnePassGP, fitted on the cluster to a table that is
simulated block by block. `speed` fits a model of 10 outputs and predicts on one and on two workers,
and compares the results. Step 1 uses scikit-learn regressors fitted to 500 sites, or the learner
given by `--learner`. `joint` evaluates Vecchia's likelihood with its gradient in one thread, in two
threads, and on two workers. Requires `pip install 'emgpr[dask]'`.
"""

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from threadpoolctl import threadpool_limits

from benchmarks.one_pass import BOX, Truth
from emgpr import EMGPR, OnePassGP
from emgpr.covariance import VecchiaTable
from emgpr.estimators import GPRegressor
from emgpr.observations import Observations
from emgpr.parallel import Execution

Array = np.ndarray
Numbers = dict[str, Any]

BLOCK = 100_000  # locations in a block
N_SITES_STEP_1 = 500  # sites to which scikit-learn's regressors are fitted
EMPTY = np.empty((0, 0))
N_NEIGHBOURS, N_EVALUATIONS = 15, 3  # for `joint`
N_WAVES = 300  # number of cosines whose sum is a latent process


def main() -> None:
    """Run the measurements, and print and store the results."""
    args = _arguments()
    result = {"date": time.strftime("%Y-%m-%d"), "machine": _machine(), **vars(args)}
    result["measured"] = {"memory": memory, "speed": speed, "joint": joint}[args.what](args)
    text = json.dumps(result, indent=1, default=str) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text)


def memory(args: argparse.Namespace) -> list[Numbers]:
    """Return the workers' peak memory for each number of locations, using new clusters."""
    rows: list[Numbers] = []
    model: EMGPR | OnePassGP
    if args.one_pass:
        model = OnePassGP(box=BOX, random_state=0)
        rows.append({"sites": args.sites, **watch(lambda _: model.fit(*lazy_table(args.sites)))})
        print(rows[-1], flush=True)
    else:
        X, Y = readings(args.sites, args.outputs)
        model = EMGPR.paper(batch_size=50, n_members=args.members, conditioning=16, random_state=0)
        model.fit(X, Y)
    for n in args.places:
        rows.append({"places": n, **watch(partial(to_zarr, model, n))})
        print(rows[-1], flush=True)
    return rows


def watch(work: Callable[[str], Any]) -> Numbers:
    """Run a function on a new cluster with a temporary folder, and return its time and memory."""
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


def lazy_table(sites: int) -> tuple[Any, Any]:
    """Return inputs and outputs whose blocks are simulated when they are read."""
    import dask.array as da

    truth = Truth(np.random.default_rng(0))
    starts = da.from_array(np.arange(0, sites, BLOCK), chunks=1)

    def drawn(start: Array) -> Array:
        n = min(BLOCK, sites - int(start[0]))
        return np.hstack(truth.chunk(n, np.random.default_rng(int(start[0]))))

    sizes = tuple(min(BLOCK, sites - start) for start in range(0, sites, BLOCK))
    whole = starts.map_blocks(drawn, new_axis=1, chunks=(sizes, (5,)), dtype=float, meta=EMPTY)
    return whole[:, :2], whole[:, 2:]


def to_zarr(model: GPRegressor, n_locations: int, folder: str) -> None:
    """Predict at random locations, which are drawn block by block, and write the results."""
    import dask.array as da
    import zarr

    X = da.random.default_rng(0).uniform(size=(n_locations, 2), chunks=(BLOCK, 2))
    D = model.n_outputs_
    arrays = [
        zarr.open_array(f"{folder}/{name}", mode="w", shape=(n_locations, D), chunks=(BLOCK, D))
        for name in ("mean", "std")
    ]
    # No lock is needed, since each block is written to its own chunk.
    da.store(model.predict(X, return_std=True), arrays, lock=False)


def speed(args: argparse.Namespace) -> Numbers:
    """Return the times of a fit and prediction on one and two workers, and compare results."""
    import dask
    import dask.array as da

    X, Y = readings(args.sites, args.outputs)
    learner = args.learner or fitted_regressors(X, Y)
    settings = {"batch_size": 150, "n_members": args.members, "conditioning": 16}
    X_new = da.from_array(readings(args.places[0], 1, seed=1)[0], chunks=(args.block, 2))
    seconds, predictions = {}, {}
    for n in (1, 2):
        with cluster(n) as client:
            client.run(lambda: __import__("emgpr").EMGPR)  # Imports are not measured.
            before = client.run(time.process_time)
            began = time.perf_counter()
            with joblib.parallel_config("dask"):
                model = EMGPR.paper(latent_learner=learner, random_state=0, **settings).fit(X, Y)
            fitted = time.perf_counter()
            predictions[n] = np.stack(dask.compute(*model.predict(X_new, return_std=True)))
            ended = time.perf_counter()
            after = client.run(time.process_time)
        seconds[n] = {"fit": fitted - began, "predict": ended - fitted, "both": ended - began}
        # Processor time is close to wall time unless other programs run on the machine.
        seconds[n]["busiest_worker"] = max(after[worker] - before[worker] for worker in after)
        print(f"{n} worker(s): {seconds[n]}", flush=True)
    return {
        "seconds": seconds,
        "two_workers_times_faster": seconds[1]["both"] / seconds[2]["both"],
        "busiest_times_less_busy": seconds[1]["busiest_worker"] / seconds[2]["busiest_worker"],
        "largest_difference": float(np.abs(predictions[1] - predictions[2]).max()),
    }


def joint(args: argparse.Namespace) -> list[Numbers]:
    """Return the times of evaluations of the joint likelihood, and the differences of its value."""
    X, Y = readings(args.sites, args.outputs)
    observations = Observations.from_table(X, Y)
    kernels = tuple(Matern(length_scale, nu=1.5) for length_scale in (0.05, 0.1, 0.3))
    theta = np.concatenate([kernel.theta for kernel in kernels])
    point = theta, np.ones((3, args.outputs, 1)), 0.1 * np.eye(args.outputs)
    rows: list[Numbers] = []
    for name, n_jobs, n_threads in (
        ("one thread", 1, 1), ("two threads", 1, 2), ("two workers", None, 1)
    ):  # fmt: skip
        table = VecchiaTable.from_sites(
            observations, kernels, N_NEIGHBOURS, execution=Execution(n_jobs=n_jobs)
        )
        with ExitStack() as stack:
            stack.enter_context(threadpool_limits(n_threads, "blas"))
            if n_jobs is None:
                stack.enter_context(cluster(2))
                stack.enter_context(joblib.parallel_config("dask"))
            seconds = []
            for _ in range(N_EVALUATIONS):
                began = time.perf_counter()
                value = table.evaluate(*point).value
                seconds.append(time.perf_counter() - began)
        rows.append({"where": name, "seconds": seconds, "value": value})
        print(rows[-1], flush=True)
    return rows


@contextmanager
def cluster(n: int) -> Iterator[Any]:
    """Yield the client of a cluster of n single-threaded processes without spilling to disk."""
    from distributed import Client, LocalCluster

    settings = {"threads_per_worker": 1, "memory_limit": 0, "dashboard_address": None}
    with LocalCluster(n_workers=n, **settings) as local, Client(local) as client:
        yield client


def peak() -> float:
    """Return the peak memory of this process in MiB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def readings(N: int, D: int, seed: int = 0) -> tuple[Array, Array]:
    """Draw sites in the unit square, and outputs that are weighted sums of smooth processes.

    >>> [part.shape for part in readings(4, 2)]
    [(4, 2), (4, 2)]
    """
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(N, 2))
    truth = np.random.default_rng(0)  # The processes are the same for all seeds.
    signals = []
    for length_scale in (0.05, 0.1, 0.3):
        waves = truth.normal(size=(2, N_WAVES)) / length_scale
        phases = truth.uniform(0, 2 * np.pi, N_WAVES)
        signals.append(np.cos(X @ waves + phases).sum(axis=1) * np.sqrt(2 / N_WAVES))
    mixed = np.stack(signals, axis=1) @ truth.normal(size=(3, D))
    return X, mixed + 0.3 * rng.normal(size=(N, D))


def fitted_regressors(X: Array, Y: Array) -> list[GaussianProcessRegressor]:
    """Fit a regressor to each output at a random sample of the sites."""
    sites = np.random.default_rng(0).permutation(len(X))[:N_SITES_STEP_1]
    kernel = RBF(0.1) + WhiteKernel(0.1)
    return [GaussianProcessRegressor(kernel, normalize_y=True).fit(X[sites], y) for y in Y[sites].T]


def _machine() -> Numbers:
    """Return a description of the machine without names or paths."""
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
    parser.add_argument("what", choices=["memory", "speed", "joint"])
    parser.add_argument("--places", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--sites", type=int, default=1000)
    parser.add_argument("--outputs", type=int, help="number of outputs; default: 3, for speed 10")
    parser.add_argument(
        "--members", type=int, help="number of members; default: 1 for memory, 8 for speed"
    )
    parser.add_argument("--block", type=int, default=2500, help="locations in a block, for speed")
    parser.add_argument("--learner", help="latent_learner of the estimator, for speed")
    parser.add_argument("--one-pass", action="store_true", help="measure the memory of OnePassGP")
    parser.add_argument("--out", type=Path, help="JSON file for the results")
    args = parser.parse_args()
    defaults = (10, 8) if args.what == "speed" else (3, 1)
    args.outputs, args.members = args.outputs or defaults[0], args.members or defaults[1]
    return args


if __name__ == "__main__":
    main()
