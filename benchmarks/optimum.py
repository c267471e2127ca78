"""How high the joint optimisation climbs, compared with long runs of L-BFGS.

For each problem, the log posterior density that `EMGPR` reaches is compared with the best of ten
runs of L-BFGS-B on the same objective, Vecchia's likelihood with the same neighbours and priors.
Each run has up to 2000 iterations. The first runs begin at the starting points of emgpr, the others
at random changes of these. The table also shows the cost of the whole joint optimisation, relative
to one evaluation of the objective with its gradient.

Run `python -m benchmarks.optimum`, or `python -m benchmarks.optimum jura --runs 3` for less work.
The Meuse data are read from the CSV file that the environment variable EMGPR_MEUSE names.
"""

import argparse
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from unittest import mock

import numpy as np
import pandas as pd
from scipy.optimize import minimize

from benchmarks.data import DataNotAvailable, amsua_all, jura, simulated
from emgpr import EMGPR
from emgpr.weights import joint_vecchia
from emgpr.weights.parameters import LMCParameters
from emgpr.weights.posterior_density import PosteriorDensity

Array = np.ndarray
Table = tuple[Array, Array]

MAX_ITERATIONS = 2000
RANDOM_CHANGE = 0.3  # standard deviation of the random changes of a starting point


def meuse() -> Table:
    """Return the coordinates (in km) and the logarithms of four metals at the Meuse."""
    path = os.environ.get("EMGPR_MEUSE", "")
    if not os.path.isfile(path):
        raise DataNotAvailable("set EMGPR_MEUSE to a CSV file with x, y and four metals")
    table = pd.read_csv(path)
    metals = table[["cadmium", "copper", "lead", "zinc"]]
    return table[["x", "y"]].to_numpy() / 1000, np.log(metals).to_numpy()


PROBLEMS: dict[str, Callable[[], Table]] = {
    "jura": lambda: (jura().X, jura().Y),
    "meuse": meuse,
    "amsua": lambda: (amsua_all(200).X, amsua_all(200).Y),
    "simulated": lambda: (simulated(200, 10).X, simulated(200, 10).Y),
}


@dataclass(frozen=True)
class Recorded:
    """A joint optimisation: its result, its starting points, and its processor time."""

    fit: joint_vecchia.JointFit
    points: dict[str, LMCParameters]
    seconds: float
    n_evaluations: int


def record_fit(X: Array, Y: Array) -> Recorded:
    """Fit `EMGPR` to a table, and return what its joint optimisation did."""
    found: list[Recorded] = []
    evaluate, calls = PosteriorDensity.__call__, [0]
    optimise = joint_vecchia.fit_jointly

    def counted(density: PosteriorDensity, x: Array) -> tuple[float, Array]:
        calls[0] += 1
        return evaluate(density, x)

    def recorded(observations, points, *args, **settings):
        start = time.process_time()
        fit = optimise(observations, points, *args, **settings)
        found.append(Recorded(fit, points, time.process_time() - start, calls[0]))
        return fit

    with (
        mock.patch.object(PosteriorDensity, "__call__", counted),
        mock.patch.object(joint_vecchia, "fit_jointly", recorded),
    ):
        EMGPR(output_transform=None, parameter_uncertainty=False, random_state=0).fit(X, Y)
    return found[0]


def best_of_long_runs(recorded: Recorded, n_runs: int) -> tuple[float, int]:
    """Return the highest value of the runs of L-BFGS-B, and how many runs converged."""
    density, rng = recorded.fit.density, np.random.default_rng(0)
    vector = density.vector
    same = [p for p in recorded.points.values() if len(vector.pack(p, p.W)) == vector_size(density)]
    best, n_converged = -np.inf, 0
    for i in range(n_runs):
        point = same[i % len(same)]
        x0 = vector.pack(point, point.W)
        if i >= len(same):
            x0 = x0 + RANDOM_CHANGE * rng.normal(size=len(x0))
        bounds = vector.bounds_around(x0)

        def negative(x: Array) -> tuple[float, Array]:
            value, gradient = density(x)
            return (-value, -gradient) if np.isfinite(value) else (1e10, np.zeros_like(x))

        end = minimize(
            negative, x0, jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": MAX_ITERATIONS, "maxfun": 2 * MAX_ITERATIONS, "ftol": 1e-11},
        )  # fmt: skip
        best, n_converged = max(best, -end.fun), n_converged + bool(end.success)
    return best, n_converged


def vector_size(density: PosteriorDensity) -> int:
    """Return the number of parameters."""
    return len(density.vector.bounds) + density.vector.start.W.size


def main() -> None:
    """Print a row for each problem."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.optimum", description=__doc__)
    parser.add_argument("problems", nargs="*", help="problems to run (default: all)")
    parser.add_argument("--runs", type=int, default=10, help="runs of L-BFGS-B")
    args = parser.parse_args()
    print(
        "| problem | readings | parameters | reached | best of the long runs | difference / n | "
        "evaluations | cost in evaluations on all sites |\n|:--|--:|--:|--:|--:|--:|--:|--:|"
    )
    for name in args.problems or PROBLEMS:
        try:
            X, Y = PROBLEMS[name]()
        except DataNotAvailable as reason:
            print(f"{name} is left out: {reason}")
            continue
        with warnings.catch_warnings(action="ignore"):
            recorded = record_fit(X, Y)
            density, reached = recorded.fit.density, recorded.fit.result
            start = time.process_time()
            for _ in range(5):
                density(reached.x)
            each = (time.process_time() - start) / 5
            best, n_converged = best_of_long_runs(recorded, args.runs)
        n = density.n_readings
        print(
            f"| {name} | {n:.0f} | {vector_size(density)} | {reached.value:.1f} | {best:.1f} "
            f"({n_converged} of {args.runs} converged) | {(reached.value - best) / n:+.2%} | "
            f"{recorded.n_evaluations} | {recorded.seconds / each:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
