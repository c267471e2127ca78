"""Inducing-point learners of step 1: mini-batches ("svi") and sums over workers ("vfe").

    PYTHONPATH=src OMP_NUM_THREADS=1 python -m benchmarks.learners [jura simulated workers]

jura: mean absolute error of cadmium in the experiment of Table 1, for each learner.
simulated: hyper-parameters of three outputs at 20,000 sites, relative to those of "poe". The
outputs are independent processes with an RBF kernel, plus noise.
workers: time of evaluations of VFE for the same table, in one process and with two workers. On a
machine that runs other programs, the ratio of wall times is not that of an idle machine. The ratio
of processor times is the time in one process, divided by the sum of the time in the main process
and the time of the worker that needed more.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from emgpr import EMGPR
from emgpr.datasets import jura_table
from emgpr.latents import SVI, VFE, PoE, learner_by_name
from emgpr.metrics import mean_absolute_error
from emgpr.observations import Observations
from emgpr.parallel import Execution

Array = np.ndarray

N, LENGTH_SCALES, NOISES = 20_000, (0.1, 0.13, 0.16), (0.1, 0.2, 0.3)
N_FREQUENCIES = 4000  # of a simulated process, a sum of cosines with random frequencies
N_REPETITIONS, N_EVALUATIONS = 5, 3


def main() -> None:
    """Run the experiments, and print a table for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learners", description=__doc__)
    parser.add_argument("experiments", nargs="*", metavar="experiment")
    for name in parser.parse_args().experiments or EXPERIMENTS:
        print(f"\n{name}")
        EXPERIMENTS[name]()


def jura() -> None:
    """Print the error of cadmium with each learner, with and without an ensemble."""
    table = jura_table(withheld="Cd")
    truth = table.truth[["Cd"]].to_numpy()
    print_row("learner", "log, ensemble", "log", "raw, ensemble", "raw", "CPU (s)")
    for learner in ("exact", "poe", "vfe", "svi", SVI(batch_size=100)):
        cells, start = [], time.process_time()
        for transform in ("log", None):
            for size in (9, None):
                model = EMGPR.paper(
                    latent_learner=learner, batch_size=size, output_transform=transform,
                    random_state=0,
                )  # fmt: skip
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    mean = model.fit(table.X, table.Y).predict(table.X[table.test])
                cells.append(f"{mean_absolute_error(truth, mean[:, :1])[0]:.4f}")
        print_row(str(learner), *cells, f"{time.process_time() - start:.1f}")


def simulated() -> None:
    """Print the hyper-parameters that each learner finds, relative to those of "poe"."""
    table = simulate()
    names = "signal variance", "length-scale", "noise"
    for kernel in (RBF(), ConstantKernel() * RBF()):
        print_row(
            f"kernel {kernel}", "output", *names[-len(kernel.theta) - 1 :], "bound", "CPU (s)"
        )
        for d in range(table.n_outputs):
            x, y = table.x, table.y[d]
            scale = y.std()
            y = (y - y.mean()) / scale
            truth = np.array([scale**-2, LENGTH_SCALES[d], NOISES[d] / scale**2])
            reference = PoE().learn(x, y, kernel)
            relative_to = parameters(reference)
            print_row("truth", d, *ratios(truth[-len(relative_to) :], relative_to), "", "")
            for learner in ("poe", PoE(1000, 20), "vfe", "svi"):
                start = time.process_time()
                latent = learner_by_name(learner).learn(x, y, kernel)
                seconds = time.process_time() - start
                found = ratios(parameters(latent), relative_to)
                bound = f"{latent.log_likelihood:.1f}" if learner in ("vfe", "svi") else ""
                print_row(str(learner), d, *found, bound, f"{seconds:.1f}")


def workers() -> None:
    """Print the time of evaluations in one process and with two workers."""
    table, kernel = simulate(), ConstantKernel() * RBF(0.1)
    outputs = np.arange(table.n_outputs)
    params = np.tile(np.append(kernel.theta, np.log(0.2)), (len(outputs), 1))
    objectives = {
        n: VFE().divided_objective(table, kernel, outputs, Execution(n_jobs=n)) for n in (1, 2)
    }
    rows: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    values = {n: objective(params, outputs)[0] for n, objective in objectives.items()}
    print_row("workers", "wall (s)", "CPU (s)", "CPU of workers (s)", "load")
    for _ in range(N_REPETITIONS):
        for n, objective in objectives.items():
            wall, own, others = time.perf_counter(), time.process_time(), worker_seconds()
            for _ in range(N_EVALUATIONS):
                objective(params, outputs)
            wall, own = time.perf_counter() - wall, time.process_time() - own
            used = [
                seconds - others.get(pid, 0.0) for pid, seconds in worker_seconds().items()
            ] if n > 1 else []  # fmt: skip
            longest = own + max(used, default=0.0)
            rows[n].append((wall, longest))
            listed = " + ".join(f"{seconds:.2f}" for seconds in used if seconds)
            print_row(n, f"{wall:.2f}", f"{own:.2f}", listed, f"{os.getloadavg()[0]:.1f}")
    one, two = (np.median(rows[n], axis=0) for n in (1, 2))
    print_row("ratio of medians", f"{one[0] / two[0]:.2f}", f"{one[1] / two[1]:.2f}", "", "")
    print(f"relative difference of the values: {np.max(np.abs(values[1] / values[2] - 1)):.1e}")


EXPERIMENTS: dict[str, Callable[[], None]] = {
    experiment.__name__: experiment for experiment in (jura, simulated, workers)
}


def simulate(seed: int = 0) -> Observations:
    """Draw independent processes with RBF kernels, plus noise, at random sites."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(size=(N, 2))
    Y = np.empty((N, len(LENGTH_SCALES)))
    for d, (scale, noise) in enumerate(zip(LENGTH_SCALES, NOISES, strict=True)):
        frequencies = rng.normal(size=(2, N_FREQUENCIES)) / scale
        phases = rng.uniform(0, 2 * np.pi, size=N_FREQUENCIES)
        weights = rng.normal(size=N_FREQUENCIES) * np.sqrt(2 / N_FREQUENCIES)
        parts = np.array_split(x, 10)
        signal = [np.cos(part @ frequencies + phases) @ weights for part in parts]
        Y[:, d] = np.concatenate(signal) + np.sqrt(noise) * rng.normal(size=N)
    return Observations.from_table(x, Y)


def parameters(latent: Any) -> Array:
    """Return the hyper-parameters of the kernel and the noise variance."""
    return np.append(np.exp(latent.kernel.theta), latent.noise)


def ratios(found: Array, relative_to: Array) -> list[str]:
    """Return ratios, as text."""
    return [f"{ratio:.3f}" for ratio in found / relative_to]


def worker_seconds() -> dict[int, float]:
    """Return the processor time of each child process (Linux)."""
    tick, found = os.sysconf("SC_CLK_TCK"), {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rsplit(")", 1)[1].split()
        except OSError:  # the process has ended
            continue
        if int(fields[1]) == os.getpid():
            found[int(file.parent.name)] = (int(fields[11]) + int(fields[12])) / tick
    return found


def print_row(first: Any, *cells: Any) -> None:
    """Print a row of a table."""
    print(f"{first!s:<55}" + "".join(f"{cell!s:>20}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
