"""emgpr and GPyTorch on a GPU: exact inference with all 8000 readings of 10 outputs at 800 sites.

    PYTHONPATH=src python -m benchmarks.gpu [--data FILE.npz] [--device cuda] [--out FILE.json]

The data are simulated, or read from an .npz file with X, Y, X_new and truth. On a machine that has
the granule, `python -m benchmarks.gpu --export atms FILE.npz` writes such a file. Both libraries
fit a linear model of coregionalisation with ten latent processes by maximum likelihood, using up to
150 iterations in float64. emgpr uses L-BFGS after the two steps, and GPyTorch uses Adam. `EMGPR`
with its defaults is also fitted: its search maximises Vecchia's likelihood until it converges.
Requires torch, NumPy, SciPy, scikit-learn, GPyTorch, pandas and jaxtyping. To copy the last two to
a machine that does not have them:

    pip download --no-deps --dest .bench/wheels pandas jaxtyping wadler-lindig python-dateutil six
    pip install --no-deps .bench/wheels/*.whl        # on that machine
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import PROBLEMS, Problem, simulated
from benchmarks.worker import load

Numbers = dict[str, Any]

ITERATIONS = 150
N_LOCATIONS = 100_000  # number of locations to predict
GPYTORCH = Path(__file__).parent / "methods" / "gpytorch.py"


def main() -> None:
    """Run the measurements, and print and store the results."""
    args = _arguments()
    if args.export:
        name, file = args.export
        problem = PROBLEMS[name]()
        parts = {part: getattr(problem, part) for part in ("X", "Y", "X_new", "truth")}
        np.savez(file, **parts)
        return
    problem = _problem(args.data)
    result: Numbers = {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H%MZ"),
        "machine": machine(args.device),
        "data": "a file" if args.data else "simulated",
        "shape": list(problem.Y.shape),
    }
    for name, measure in MEASUREMENTS.items():
        try:
            result[name] = measure(problem, args.device)
        except Exception as error:  # The other measurements are still useful.
            result[name] = {"failed": f"{type(error).__name__}: {error}"[:300]}
        print(f"{name}: {result[name]}", flush=True)
    text = json.dumps(result, indent=1) + "\n"
    print(text)
    if args.out:
        args.out.write_text(text)


def two_step(problem: Problem, device: str) -> Numbers:
    """Measure a fit in two steps to all readings."""
    return _fit_ours(problem, device, refine=0)


def joint(problem: Problem, device: str) -> Numbers:
    """Measure the joint optimisation. The time per iteration excludes the two steps."""
    before = _fit_ours(problem, device, refine=0)
    after = _fit_ours(problem, device, refine="joint", max_iter=ITERATIONS)
    seconds = after["seconds"] - before["seconds"]
    return after | {"seconds_an_iteration": seconds / max(after["iterations"], 1)}


def joint_model(problem: Problem, device: str) -> Numbers:
    """Measure the joint model of `EMGPR` alone, after a first fit as a warm-up."""
    return _fit_defaults(problem, device, transfer="full")


def defaults(problem: Problem, device: str) -> Numbers:
    """Measure `EMGPR` with its defaults, except that outputs are not transformed."""
    return _fit_defaults(problem, device)


def gpytorch_lmc(problem: Problem, device: str) -> Numbers:
    """Measure GPyTorch's linear model of coregionalisation after two warm-up iterations."""
    method = load(GPYTORCH)

    def fit(iterations: int) -> Any:
        settings = {"kind": "LMC", "iterations": iterations, "tolerance": -np.inf}
        return method.fit(problem.X, problem.Y, 0, device=device, **settings)

    fit(2)
    model, cost = _measured(lambda: fit(ITERATIONS), device)
    mean, _ = method.predict(model, problem.X_new)
    return {
        **cost,
        "seconds_an_iteration": cost["seconds"] / ITERATIONS,
        "mse": _mse(problem, mean),
    }


def many_locations(_: Problem, device: str) -> Numbers:
    """Measure predictions of three outputs at 100,000 locations from 16 neighbours."""
    from emgpr import EMGPR

    small = simulated(300, 3)
    model = EMGPR.paper(batch_size=None, conditioning=16, random_state=0, **on(device))
    model.fit(small.X, small.Y)
    X_new = np.random.default_rng(0).uniform(size=(N_LOCATIONS, 2))
    model.predict(X_new[:1000], return_std=True)
    _, cost = _measured(lambda: model.predict(X_new, return_std=True), device)
    return cost


def linear_algebra(problem: Problem, device: str) -> Numbers:
    """Measure a Cholesky factorisation and inverse of the size that the likelihood needs."""
    import torch

    n = problem.Y.size
    A = torch.eye(n, dtype=torch.float64, device=device) + 0.5

    return _usual(lambda: torch.cholesky_inverse(torch.linalg.cholesky(A)), device)


def evaluation(problem: Problem, device: str) -> Numbers:
    """Measure a likelihood evaluation with gradients, relative to the linear algebra it needs."""
    from benchmarks.inner import parameters
    from emgpr.arrays import to_device
    from emgpr.covariance import log_likelihood

    table, *given = parameters(problem)
    table, given = table.to(device), [to_device(a, device) for a in given]
    weights = _usual(lambda: log_likelihood(table, *given), device)
    kernels = _usual(lambda: log_likelihood(table, *given, of_kernels=True), device)
    reference = linear_algebra(problem, device)["seconds"]
    return {
        "weights_÷_potrf_+_potri": weights["seconds"] / reference,
        "weights_and_kernels_÷_potrf_+_potri": kernels["seconds"] / reference,
        **kernels,
    }


MEASUREMENTS: dict[str, Callable[[Problem, str], Numbers]] = {
    "potrf + potri": linear_algebra,
    "emgpr, evaluation": evaluation,
    "emgpr, two-step": two_step,
    "emgpr, joint": joint,
    "EMGPR, joint model": joint_model,
    "EMGPR, defaults": defaults,
    "GPyTorch, LMC": gpytorch_lmc,
    "emgpr, 100,000 places": many_locations,
}


def machine(device: str) -> Numbers:
    """Return a description of the machine without names or paths."""
    import torch

    on_gpu = device.startswith("cuda")
    return {
        "device": torch.cuda.get_device_name() if on_gpu else platform.machine(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda if on_gpu else None,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def _fit_ours(problem: Problem, device: str, **settings: Any) -> Numbers:
    from emgpr import EMGPR

    model = EMGPR.paper(batch_size=None, random_state=0, **settings, **on(device))
    _, cost = _measured(lambda: model.fit(problem.X, problem.Y), device)
    mean = np.asarray(model.predict(problem.X_new))
    return {**cost, "iterations": int(model.n_iter_), "mse": _mse(problem, mean)}


def _fit_defaults(problem: Problem, device: str, **settings: Any) -> Numbers:
    """Return the cost of the median of three fits after a warm-up."""
    from emgpr import EMGPR

    model = EMGPR(random_state=0, output_transform=None, **settings, **on(device))
    fits = [_measured(lambda: model.fit(problem.X, problem.Y), device)[1] for _ in range(4)]
    cost = sorted(fits[1:], key=lambda cost: cost["seconds"])[1]
    mean = np.asarray(model.predict(problem.X_new))
    return {**cost, "converged": bool(model.converged_), "mse": _mse(problem, mean)}


def _measured(work: Callable[[], Any], device: str) -> tuple[Any, Numbers]:
    """Call a function, and return its result, wall time and peak GPU memory."""
    import torch

    on_gpu = device.startswith("cuda")
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    answer = work()
    if on_gpu:
        torch.cuda.synchronize()
    cost: Numbers = {"seconds": time.perf_counter() - start}
    if on_gpu:
        cost["peak_gib"] = torch.cuda.max_memory_allocated() / 2**30
    return answer, cost


def _usual(work: Callable[[], Any], device: str) -> Numbers:
    """Return the cost of the median of five calls, after a warm-up call."""
    work()
    costs = [_measured(work, device)[1] for _ in range(5)]
    return sorted(costs, key=lambda cost: cost["seconds"])[2]


def on(device: str) -> dict[str, str]:
    """Return the estimator parameters that select a device, which are empty for the CPU."""
    return {} if device == "cpu" else {"device": device}


def _mse(problem: Problem, mean: np.ndarray) -> float:
    return float(np.nanmean((problem.truth - mean) ** 2))


def _problem(file: Path | None) -> Problem:
    if file is None:
        return simulated(800, 10)
    with np.load(file) as data:
        return Problem(data["X"], data["Y"], data["X_new"], data["truth"])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__)
    parser.add_argument("--data", type=Path, help="an .npz file instead of simulated data")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, help="JSON file for the results")
    parser.add_argument("--export", nargs=2, metavar=("PROBLEM", "FILE"), help="write an .npz file")
    return parser.parse_args()


if __name__ == "__main__":
    main()
