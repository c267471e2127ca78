"""Vecchia's likelihood compared with the exact likelihood, each at its own optimum.

Every table is divided into folds of sites. For each fold, the joint model is fitted to the other
sites with Vecchia's likelihood (by default, of the number of neighbours that emgpr chooses), and
with the exact likelihood. The table shows

- the exact log-likelihood of the first model minus that of the second, relative to the number of
  readings n,
- the errors of the left-out sites, predicted from their coordinates, as squared errors in units of
  the variance of each output, and their paired difference with its standard error over sites.

Run `python -m benchmarks.exact`, or `python -m benchmarks.exact jura --folds 2` for less work, and
`--neighbours 15` for another number of neighbours. The Meuse data and the ATMS granule are read
from the files that the environment variables EMGPR_MEUSE and EMGPR_ATMS name.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np

from benchmarks.data import DataNotAvailable, amsua, atms_table, jura
from benchmarks.optimum import meuse
from emgpr import EMGPR
from emgpr.covariance import log_likelihood
from emgpr.kernels import Pairs, evaluate_kernel
from emgpr.metrics import PairedDifference, paired_difference

Array = np.ndarray
Table = tuple[Array, Array]

N_SATELLITE, D_ATMS = 250, 6  # sites and outputs of the satellite data: the exact fit is slow


def jura_logs() -> Table:
    """Return the Jura training sites, without the held-out cadmium."""
    problem = jura()
    complete = ~np.isnan(problem.Y).any(axis=1)
    return problem.X[complete], problem.Y[complete]


def amsua_channels() -> Table:
    """Return six AMSU-A channels at some random sites."""
    problem = amsua()
    return problem.X[:N_SATELLITE], problem.Y[:N_SATELLITE]


def atms_channels() -> Table:
    """Return six ATMS channels at some random sites."""
    X, Y = atms_table(N_SATELLITE)
    return X, Y[:, :D_ATMS]


PROBLEMS: dict[str, Callable[[], Table]] = {
    "jura": jura_logs,
    "meuse": meuse,
    "amsua": amsua_channels,
    "atms": atms_channels,
}


def exact_log_likelihood(model: EMGPR) -> float:
    """Return the exact log-likelihood of the readings to which a model was fitted."""
    posterior = model.posterior_
    lmc, table = posterior.model, posterior.observations
    K = np.stack([evaluate_kernel(k, k.theta, Pairs(table.x, table.x))[0] for k in lmc.kernels])
    return float(log_likelihood(table, lmc.weights[0], lmc.noise, K).value)


def compare(
    X: Array, Y: Array, left_out: Array, n_neighbours: int | str
) -> tuple[float, Array, Array]:
    """Fit both models; return the difference per reading, and their squared errors."""
    mean, scale = Y[~left_out].mean(axis=0), Y[~left_out].std(axis=0)
    Z = (Y - mean) / scale
    values, errors = [], []
    for n in (n_neighbours, None):
        model = EMGPR(
            n_neighbours=n, transfer="full", parameter_uncertainty=False,
            output_transform=None, output_bounds=None, max_iter=500, random_state=0,
        )  # fmt: skip
        model.fit(X[~left_out], Z[~left_out])
        values.append(exact_log_likelihood(model))
        errors.append(((model.predict(X[left_out]) - Z[left_out]) ** 2).mean(axis=1))
    return (values[0] - values[1]) / Z[~left_out].size, errors[0], errors[1]


def run(
    X: Array, Y: Array, n_folds: int, n_neighbours: int | str
) -> tuple[Array, float, float, PairedDifference]:
    """Return the differences of each fold, the mean errors, and their paired difference."""
    folds = np.random.default_rng(0).permutation(len(X)) % n_folds
    found = [compare(X, Y, folds == fold, n_neighbours) for fold in range(n_folds)]
    ours, exact = (np.concatenate(part) for part in list(zip(*found, strict=True))[1:])
    differences = np.array([row[0] for row in found])
    return differences, ours.mean(), exact.mean(), paired_difference(ours, exact)


def main() -> None:
    """Print a row for each table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.exact", description=__doc__)
    parser.add_argument("problems", nargs="*", help="tables to run (default: all)")
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--neighbours", type=int, help="number of neighbours (default: automatic)")
    args = parser.parse_args()
    n_neighbours = "auto" if args.neighbours is None else args.neighbours
    print(
        "| table | sites × outputs | log-likelihood / n (lowest to highest fold) "
        "| error, Vecchia | error, exact | difference | in percent |\n"
        "|:--|--:|--:|--:|--:|--:|--:|"
    )
    for name in args.problems or PROBLEMS:
        try:
            X, Y = PROBLEMS[name]()
        except DataNotAvailable as reason:
            print(f"{name} is left out: {reason}")
            continue
        with warnings.catch_warnings(action="ignore"):
            differences, ours, exact, paired = run(X, Y, args.folds, n_neighbours)
        print(
            f"| {name} | {len(X)} × {Y.shape[1]} | {differences.min():+.2%} to "
            f"{differences.max():+.2%} | {ours:.5f} | {exact:.5f} | {paired.mean:+.5f} ± "
            f"{paired.standard_error:.5f} | {paired.mean / exact:+.1%} ± "
            f"{paired.standard_error / exact:.1%} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
