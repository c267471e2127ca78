"""How far it goes: a million places, ten outputs, step-1 learners, and how sites are dealt.

    PYTHONPATH=src python -m benchmarks.large growth --sizes 10000 100000 1000000
    PYTHONPATH=src python -m benchmarks.large wide members partition learners
    PYTHONPATH=src python -m benchmarks.large growth wide --sizes 1000000 --device cuda

Rows are printed, and kept in benchmarks/results/large.json in the place of those of the same
experiment and size; `python -m benchmarks.large_table --docs` makes the tables of docs/large.md of
them. A fit and its prediction are a process of their own, of which time (wall and processor) and
the most memory are measured. Errors are over those of the prediction with the true parameters.
"""

import argparse
import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Matern

from benchmarks.data import PROBLEMS, Problem, amsua
from benchmarks.gpu import machine, on
from benchmarks.known import Known, draw
from benchmarks.worker import peak_memory
from emgpr.latents import DTC, FITC, LEARNERS, PITC, VFE, PoE
from emgpr.metrics import coverage, mean_squared_error

Row = dict[str, Any]

FILE = Path(__file__).parent / "results" / "large.json"
SIZES = (10_000, 100_000)
PLACES = 100_000
POINTS = 100  # inducing points, and sites of a batch, on data of some hundreds of sites
SOME = {
    "exact": LEARNERS["exact"],
    "poe": PoE(batch_size=POINTS),
    "dtc": DTC(POINTS),
    "fitc": FITC(POINTS),
    "pitc": PITC(POINTS, block_size=50),
    "vfe": VFE(POINTS),
    "fitc, 300 points": LEARNERS["fitc"],
    "vfe, 300 points": LEARNERS["vfe"],
    "variogram": LEARNERS["variogram"],
}


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, help="places, of growth")
    parser.add_argument("--device", default="cpu", help="where growth and wide are learned")
    parser.add_argument("--file", type=Path, default=FILE, help="where rows are kept")
    args = parser.parse_args()
    for name in args.experiments:
        for row in EXPERIMENTS[name](args):
            row = {"experiment": name, **row, **circumstances()}
            print(json.dumps(row), flush=True)
            keep(row, args.file)


def growth(args: argparse.Namespace) -> Iterator[Row]:
    """Three outputs, more and more places; 100,000 are predicted, with standard deviations."""
    for N in args.sizes:
        yield measured(draw(N, 3, PLACES), on(args.device))


def wide(args: argparse.Namespace) -> Iterator[Row]:
    """Ten outputs at 50,000 places; 10,000 are predicted."""
    yield measured(draw(50_000, 10, 10_000), on(args.device))


def members(_: argparse.Namespace) -> Iterator[Row]:
    """The error against how many members there are, and how sites are dealt to them."""
    world = draw(100_000, 3, 3_000)
    for partition in ("stratified", "random"):
        for L in (1, 2, 4, 8):
            yield measured(world, {"partition": partition, "n_members": L, "transfer": "full"})


def partition(_: argparse.Namespace) -> Iterator[Row]:
    """A real swath in four batches, dealt in each way: squared error, over three halvings."""
    from emgpr import EMGPR

    for seed in range(3):
        problem = amsua(seed)
        for way in ("stratified", "random", "strided"):
            settings = {"partition": way, "batch_size": len(problem.X) // 4, "rank": 1}
            model = EMGPR(Matern(nu=1.5), transform=None, random_state=seed, **settings)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mean = model.fit(problem.X, problem.Y).predict(problem.X_new)
            yield {"data": "amsua", "partition": way, "seed": seed, "mse": _mse(problem, mean)}


def learners(_: argparse.Namespace) -> Iterator[Row]:
    """Each learner's step 1, and the error of both steps after it, on real data."""
    for data in ("jura", "amsua"):
        problem = PROBLEMS[data]()
        for name, learner in SOME.items():
            yield {"data": data, "learner": name, **_step_1(problem, learner, name)} | {
                "error": _two_steps(problem, learner),
                "error_is": problem.error,
            }


EXPERIMENTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    own.__name__: own for own in (growth, wide, members, partition, learners)
}


def measured(world: Known, settings: dict[str, Any]) -> Row:
    """A fit and a prediction, what they cost, and how near the truth they are."""
    with TemporaryDirectory() as folder:
        file = str(Path(folder) / "data.npz")
        np.savez(file, X=world.X, Y=world.Y, X_new=world.X_new)
        # Another process, which has had no other work: its peak of memory is of this alone.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            mean, std, cost = process.submit(fit_and_predict, file, settings).result()
    true_mean, true_std = world.predicted()
    signal, reading = (
        np.sqrt(
            mean_squared_error(truth, mean).mean() / mean_squared_error(truth, true_mean).mean()
        )
        for truth in (world.signals, world.readings)
    )
    held = coverage(world.readings, mean, std)
    return {
        "N": len(world.X),
        "D": world.Y.shape[1],
        "M": len(world.X_new),
        **settings,
        **cost,
        "rmse": float(np.sqrt(mean_squared_error(world.readings, mean).mean())),
        "ratio_reading": float(reading),
        "ratio_signal": float(signal),
        "coverage": [float(held.min()), float(held.max())],
        "true_coverage": float(coverage(world.readings, true_mean, true_std).mean()),
    }


def fit_and_predict(file: str, settings: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, Row]:
    """The defaults, on readings in a file."""
    from emgpr import EMGPR

    with np.load(file) as data:
        X, Y, X_new = data["X"], data["Y"], data["X_new"]
    clocks = [(time.perf_counter(), time.process_time())]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = EMGPR(random_state=0, **settings).fit(X, Y)
        clocks.append((time.perf_counter(), time.process_time()))
        mean, std = model.predict(X_new, return_std=True)
    clocks.append((time.perf_counter(), time.process_time()))
    (fit, fit_cpu), (predict, predict_cpu) = np.diff(clocks, axis=0).tolist()
    cost = {
        "fit_s": fit,
        "fit_cpu_s": fit_cpu,
        "predict_s": predict,
        "predict_cpu_s": predict_cpu,
        "peak_gib": peak_memory() / 2**30,
        "learner": model.latent_learner_,
        "members": len(model.weights_),
        "batch": len(model.batches_[0]),
        "kernels": [str(kernel) for kernel in model.kernels_],
        "warnings": [str(warning.message)[:80] for warning in said],
        **(machine(settings["device"]) if "device" in settings else {}),
    }
    return mean, std, cost


def _step_1(problem: Problem, learner: Any, name: str) -> Row:
    """Its own logarithm and the likelihood where it ended, summed over the outputs."""
    own = exact = 0.0
    start = time.process_time()
    found = []
    for y in problem.Y.T:
        seen = ~np.isnan(y)
        x, z = problem.X[seen], (y[seen] - y[seen].mean()) / y[seen].std()
        found.append((x, z, learner.learn(x, z, Matern(nu=1.5))))
    seconds = time.process_time() - start
    for x, z, latent in found:
        own += latent.log_likelihood
        cov = latent.kernel(x) + latent.noise * np.eye(len(x))
        fit = z @ np.linalg.solve(cov, z) + np.linalg.slogdet(cov)[1]
        exact -= 0.5 * (fit + len(x) * np.log(2 * np.pi))
    bound = name.startswith("vfe")
    return {"own": own, "likelihood": float(exact), "step_1_s": seconds, "bound": bound}


def _two_steps(problem: Problem, learner: Any) -> float:
    from emgpr import EMGPR

    settings = {"batch_size": None, "latent_learner": learner, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = EMGPR.paper(kernel=Matern(nu=1.5), **settings).fit(problem.X, problem.Y)
        mean = model.predict(problem.X_new)
    return float(np.nanmean(problem.loss(problem.truth, mean)))


def _mse(problem: Problem, mean: np.ndarray) -> float:
    return float(np.nanmean((problem.truth - mean) ** 2))


def circumstances() -> Row:
    """When, and on what: no names, no paths."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def keep(row: Row, file: Path) -> None:
    """In the place of a row of the same experiment and the same settings."""
    rows = json.loads(file.read_text()) if file.exists() else []
    known = [old for old in rows if _key(old) != _key(row)]
    file.write_text(json.dumps([*known, row], indent=1) + "\n")


def _key(row: Row) -> tuple:
    names = ("experiment", "N", "D", "partition", "n_members", "seed", "data", "learner", "device")
    return tuple(row.get(name) for name in names)


if __name__ == "__main__":
    main()
