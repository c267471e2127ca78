"""Large problems: up to a million sites or ten outputs, and comparisons of settings.

    PYTHONPATH=src python -m benchmarks.large growth --sizes 10000 100000 1000000
    PYTHONPATH=src python -m benchmarks.large wide members partition learners
    PYTHONPATH=src python -m benchmarks.large growth wide --sizes 1000000 --device cuda

Results are printed and stored in benchmarks/results/large.json, where they replace results of the
same experiment and size. `python -m benchmarks.large_table --docs` writes them to the tables of
docs/large.md. Each fit and its prediction run in a separate process, whose wall time, processor
time and peak memory are measured. Errors are relative to those of predictions with the true
parameters.
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
from benchmarks.known import KnownModel, draw
from benchmarks.worker import peak_memory
from emgpr.latents import DTC, FITC, PITC, VFE, Exact, PoE, Variogram
from emgpr.metrics import coverage, mean_squared_error

Row = dict[str, Any]

FILE = Path(__file__).parent / "results" / "large.json"
SIZES = (10_000, 100_000)
N_LOCATIONS = 100_000  # number of locations to predict
N_INDUCING = 100  # inducing points or batch size, for data with a few hundred sites
COMPARED_LEARNERS = {
    "exact": Exact(),
    "poe": PoE(batch_size=N_INDUCING),
    "dtc": DTC(N_INDUCING),
    "fitc": FITC(N_INDUCING),
    "pitc": PITC(N_INDUCING, block_size=50),
    "vfe": VFE(N_INDUCING),
    "fitc, 300 points": FITC(),
    "vfe, 300 points": VFE(),
    "variogram": Variogram(),
}


def main() -> None:
    """Run the experiments, and print and store the rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large", description=__doc__)
    parser.add_argument("experiments", nargs="+", choices=EXPERIMENTS)
    parser.add_argument(
        "--sizes", nargs="+", type=int, default=SIZES, help="numbers of sites for growth"
    )
    parser.add_argument("--device", default="cpu", help="device for growth and wide")
    parser.add_argument("--file", type=Path, default=FILE, help="file for the rows")
    args = parser.parse_args()
    for name in args.experiments:
        for row in EXPERIMENTS[name](args):
            row = {"experiment": name, **row, **circumstances()}
            print(json.dumps(row), flush=True)
            store(row, args.file)


def growth(args: argparse.Namespace) -> Iterator[Row]:
    """Yield rows for three outputs and increasing numbers of sites, with 100,000 predictions."""
    for N in args.sizes:
        yield measure(draw(N, 3, N_LOCATIONS), on(args.device))


def wide(args: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for ten outputs at 50,000 sites, with 10,000 predictions."""
    yield measure(draw(50_000, 10, 10_000), on(args.device))


def members(_: argparse.Namespace) -> Iterator[Row]:
    """Yield rows for several numbers of members and two ways to partition the sites."""
    known = draw(100_000, 3, 3_000)
    for partition in ("stratified", "random"):
        for L in (1, 2, 4, 8):
            yield measure(known, {"partition": partition, "n_members": L, "transfer": "full"})


def partition(_: argparse.Namespace) -> Iterator[Row]:
    """Yield squared errors on a real swath with four batches, for each partition and split."""
    from emgpr import EMGPR

    for seed in range(3):
        problem = amsua(seed)
        for name in ("stratified", "random", "strided"):
            settings = {"partition": name, "batch_size": len(problem.X) // 4, "rank": 1}
            model = EMGPR(Matern(nu=1.5), output_transform=None, random_state=seed, **settings)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mean = model.fit(problem.X, problem.Y).predict(problem.X_new)
            yield {"data": "amsua", "partition": name, "seed": seed, "mse": _mse(problem, mean)}


def learners(_: argparse.Namespace) -> Iterator[Row]:
    """Yield the result of step 1 and the error after both steps for each step-1 learner."""
    for data in ("jura", "amsua"):
        problem = PROBLEMS[data]()
        for name, learner in COMPARED_LEARNERS.items():
            yield {"data": data, "learner": name, **_step_1(problem, learner, name)} | {
                "error": _two_steps(problem, learner),
                "error_is": problem.error,
            }


EXPERIMENTS: dict[str, Callable[[argparse.Namespace], Iterator[Row]]] = {
    experiment.__name__: experiment for experiment in (growth, wide, members, partition, learners)
}


def measure(known: KnownModel, settings: dict[str, Any]) -> Row:
    """Return the costs of a fit and prediction, and errors relative to the true parameters."""
    with TemporaryDirectory() as folder:
        file = str(Path(folder) / "data.npz")
        np.savez(file, X=known.X, Y=known.Y, X_new=known.X_new)
        # In a new process, the peak memory is due only to this fit and prediction.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            mean, std, cost = process.submit(fit_and_predict, file, settings).result()
    true_mean, true_std = known.predict_with_truth()
    signal, reading = (
        np.sqrt(
            mean_squared_error(truth, mean).mean() / mean_squared_error(truth, true_mean).mean()
        )
        for truth in (known.signals, known.readings)
    )
    covered = coverage(known.readings, mean, std)
    return {
        "N": len(known.X),
        "D": known.Y.shape[1],
        "M": len(known.X_new),
        **settings,
        **cost,
        "rmse": float(np.sqrt(mean_squared_error(known.readings, mean).mean())),
        "ratio_reading": float(reading),
        "ratio_signal": float(signal),
        "coverage": [float(covered.min()), float(covered.max())],
        "true_coverage": float(coverage(known.readings, true_mean, true_std).mean()),
    }


def fit_and_predict(file: str, settings: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, Row]:
    """Fit `EMGPR` with these settings to the table in a file, and predict."""
    from emgpr import EMGPR

    with np.load(file) as data:
        X, Y, X_new = data["X"], data["Y"], data["X_new"]
    clocks = [(time.perf_counter(), time.process_time())]
    with warnings.catch_warnings(record=True) as caught:
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
        "warnings": [str(warning.message)[:80] for warning in caught],
        **(machine(settings["device"]) if "device" in settings else {}),
    }
    return mean, std, cost


def _step_1(problem: Problem, learner: Any, name: str) -> Row:
    """Return a learner's objective and the exact log-likelihood, summed over outputs."""
    objective = exact = 0.0
    start = time.process_time()
    results = []
    for y in problem.Y.T:
        measured = ~np.isnan(y)
        x, z = problem.X[measured], (y[measured] - y[measured].mean()) / y[measured].std()
        results.append((x, z, learner.learn(x, z, Matern(nu=1.5))))
    seconds = time.process_time() - start
    for x, z, latent in results:
        objective += latent.log_likelihood
        cov = latent.kernel(x) + latent.noise * np.eye(len(x))
        fit = z @ np.linalg.solve(cov, z) + np.linalg.slogdet(cov)[1]
        exact -= 0.5 * (fit + len(x) * np.log(2 * np.pi))
    bound = name.startswith("vfe")
    return {"own": objective, "likelihood": float(exact), "step_1_s": seconds, "bound": bound}


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
    """Return the date and a description of the machine, without names or paths."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def store(row: Row, file: Path) -> None:
    """Add a row to a file, replacing any row with the same experiment and settings."""
    rows = json.loads(file.read_text()) if file.exists() else []
    others = [old for old in rows if _key(old) != _key(row)]
    file.write_text(json.dumps([*others, row], indent=1) + "\n")


def _key(row: Row) -> tuple:
    names = ("experiment", "N", "D", "partition", "n_members", "seed", "data", "learner", "device")
    return tuple(row.get(name) for name in names)


if __name__ == "__main__":
    main()
