"""Ordinary tables with several targets, in ten-fold cross-validation.

The tables are slump, edm, enb, andro and atp1d of the Mulan collection, whose targets are the last
columns. `EMGPR()` is fitted with its defaults to standardised inputs, and predicts the targets of
the left-out rows from the inputs alone. aRRMSE is the mean over targets of the root mean squared
error, relative to that of the training mean; it is averaged over folds. The best published value is
that of ten methods (Melki et al. 2017), whose folds are not published.

The tables are read from the folder that the environment variable EMGPR_MULTITARGET names. Run
`python -m benchmarks.multitarget`, or `python -m benchmarks.multitarget slump --folds 2`.
"""

import argparse
import os
import time
import warnings
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

from benchmarks.data import DataNotAvailable
from emgpr import EMGPR
from emgpr.experiments.tables import markdown_table

Array = np.ndarray

N_FOLDS = 10
N_TARGETS = {"slump": 3, "edm": 2, "enb": 2, "andro": 6, "atp1d": 6}


def folder() -> Path:
    """Return the folder of the tables."""
    path = Path(os.environ.get("EMGPR_MULTITARGET", ""))
    if "EMGPR_MULTITARGET" not in os.environ or not path.is_dir():
        raise DataNotAvailable("set EMGPR_MULTITARGET to the folder with slump.csv and others")
    return path


def read(name: str) -> tuple[Array, Array]:
    """Return inputs and targets."""
    table = pd.read_csv(folder() / f"{name}.csv").to_numpy(float)
    return table[:, : -N_TARGETS[name]], table[:, -N_TARGETS[name] :]


def best_published(name: str) -> float:
    """Return the lowest published aRRMSE."""
    table = pd.read_csv(folder() / "published_aRRMSE.csv", index_col=0)
    return float(table.loc[name].astype(float).min())


def relative_error(truth: Array, prediction: Array, training: Array) -> float:
    """Return the mean over targets of the error relative to that of the training mean.

    >>> truth, training = np.array([[1.0], [3.0]]), np.array([[0.0], [4.0]])
    >>> relative_error(truth, truth + 0.5, training)
    0.5
    """
    error = np.mean((truth - prediction) ** 2, axis=0)
    of_mean = np.mean((truth - training.mean(axis=0)) ** 2, axis=0)
    return float(np.mean(np.sqrt(error / of_mean)))


def run_fold(name: str, fold: int) -> tuple[float, float]:
    """Return the aRRMSE of one fold, and the processor time of fit and prediction."""
    X, Y = read(name)
    folds = np.random.default_rng(0).permutation(len(X)) % N_FOLDS
    training, test = folds != fold, folds == fold
    center, scale = X[training].mean(axis=0), X[training].std(axis=0)
    X = (X - center) / np.where(scale > 0, scale, 1.0)
    start = time.process_time()
    with warnings.catch_warnings(action="ignore"):
        model = EMGPR(random_state=0).fit(X[training], Y[training])
        prediction = model.predict(X[test], statistic="mean")
    seconds = time.process_time() - start
    return relative_error(Y[test], prediction, Y[training]), seconds


def main() -> None:
    """Print a row for each table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.multitarget", description=__doc__)
    parser.add_argument("tables", nargs="*", help="tables to run (default: all)")
    parser.add_argument("--folds", type=int, default=N_FOLDS, help="number of folds to run")
    parser.add_argument("--n-jobs", type=int, default=1, help="number of folds run in parallel")
    args = parser.parse_args()
    rows = []
    for name in args.tables or N_TARGETS:
        run, folds = partial(run_fold, name), range(args.folds)
        found = joblib.Parallel(args.n_jobs)(joblib.delayed(run)(fold) for fold in folds)
        errors, seconds = map(np.array, zip(*found, strict=True))
        spread = errors.std(ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.nan
        rows.append(
            [
                name, f"{errors.mean():.3f} ± {spread:.3f}", f"{best_published(name):.3f}",
                f"{np.median(seconds):.1f}",
            ]
        )  # fmt: skip
        print(" ".join(rows[-1]), flush=True)
    header = ["table", "EMGPR()", "best published", "seconds for a fold"]
    print(markdown_table(header, rows))


if __name__ == "__main__":
    main()
