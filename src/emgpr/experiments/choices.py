"""Comparison of the default settings with alternatives on several data sets.

Every candidate (a set of settings) is evaluated in two ways. In "coordinates", a quarter of the
sites is left out, and all outputs are predicted at these sites. In "withheld", each output in turn
is withheld at 30% of the sites and predicted from the other outputs. The error is compared with
that of a least-squares regression on the other outputs. The validation sites of the data sets are
never used.

The training part of the Jura data and the AMSU-A swath are included in the package. Additional data
sets are read from a folder of CSV files. Columns whose names begin with `x_` are inputs, all other
columns are outputs, and empty cells are missing readings.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from emgpr.datasets import load_amsua, load_jura
from emgpr.experiments.fitting import Settings, build, one_thread_with_notes
from emgpr.experiments.rows import Job, Row, complete
from emgpr.prediction import Posterior
from emgpr.transforms import OutputScaler

Array = np.ndarray
Table = tuple[pd.DataFrame, pd.DataFrame]  # inputs and outputs

NO_TRANSFER = "no transfer"
CANDIDATES: dict[str, Settings] = {
    NO_TRANSFER: {"estimator": "IndependentGP", "kernel": "auto", "output_transform": "auto"},
    "EMGPR()": {"estimator": "EMGPR"},
    "rank=1": {"estimator": "EMGPR", "rank": 1},
    'transfer="full"': {"estimator": "EMGPR", "transfer": "full"},
    'transfer="none"': {"estimator": "EMGPR", "transfer": "none"},
    'noise="independent"': {"estimator": "EMGPR", "noise": "independent"},
    "kernel=None (RBF)": {"estimator": "EMGPR", "kernel": None},
    "output_transform=None": {"estimator": "EMGPR", "output_transform": None},
    "paper, transform and kernel auto": {
        "estimator": "EMGPR.paper",
        "kernel": "auto",
        "output_transform": "auto",
    },
}
N_FOLDS = 4
WITHHELD_SHARE = 0.3  # of the sites


def embedded() -> dict[str, Table]:
    """Return the training data that are included in the package."""
    jura, swath = load_jura(), load_amsua()
    X = jura.train[list(jura.coordinates)]
    return {
        "jura": (X, jura.train[["Cd", "Ni", "Zn"]]),
        "jura, 7 metals": (X, jura.train[list(jura.metals)]),
        # Degrees are treated as plane coordinates, as in the published tables. These column names
        # avoid a warning about that.
        "amsua": (swath.X.set_axis(["degrees north", "degrees east"], axis=1), swath.Y),
    }


def from_folder(folder: Path) -> dict[str, Table]:
    """Read the CSV files in a folder, and return a dict of tables with the file names as keys."""
    tables = {}
    for file in sorted(folder.glob("*.csv")):
        frame = pd.read_csv(file)
        inputs = [name for name in frame.columns if name.startswith("x_")]
        if not inputs or len(inputs) == len(frame.columns):
            raise ValueError(
                f"{file} has columns {list(frame.columns)}; expected inputs, whose names begin "
                "with 'x_', and outputs, whose names do not. Rename the columns."
            )
        tables[file.stem] = frame[inputs], frame.drop(columns=inputs)
    if not tables:
        raise ValueError(f"{folder} contains no CSV files. Use a folder with CSV files.")
    return tables


def jobs(
    tables: dict[str, Table], candidates: dict[str, Settings] = CANDIDATES, folds: int = 2
) -> list[Job]:
    """Return a job for each data set, candidate, and fold or withheld output."""
    result: list[Job] = []
    for data, (X, Y) in tables.items():
        parts: list[tuple[str, Any]] = [("coordinates", fold) for fold in range(folds)]
        parts += [("withheld", output) for output in map(str, Y.columns)]
        result += [
            {
                "method": method,
                "settings": settings,
                "data": data,
                "size": [*X.shape, Y.shape[1]],
                "question": question,
                "part": part,
            }
            for question, part in parts
            for method, settings in candidates.items()
            if question != "withheld" or method != NO_TRANSFER
        ]
    return result


def reproduce(
    tables: dict[str, Table],
    path: Path,
    *,
    candidates: dict[str, Settings] = CANDIDATES,
    folds: int = 2,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Row]:
    """Run the jobs whose results are not in the file at `path` yet, and return all results."""
    all_jobs, run = jobs(tables, candidates, folds), partial(work, tables)
    return complete(all_jobs, run, path, n_jobs=n_jobs, label="Choices", verbose=verbose)


def work(tables: dict[str, Table], job: Job) -> Row:
    """Return the results of one candidate for one fold or one withheld output."""
    X, frame = tables[job["data"]]
    names = list(map(str, frame.columns))
    Y = frame.to_numpy(dtype=float)
    known = Y.copy()
    if job["question"] == "coordinates":
        train, test = split_fold(len(Y), job["part"])
    else:
        train, test, output = np.arange(len(Y)), _withheld_sites(Y), names.index(job["part"])
        known[test, output] = np.nan
    sd = np.nanstd(Y, axis=0, ddof=1)
    model = build(job["settings"], random_state=0)
    with one_thread_with_notes() as notes:
        model.fit(X.iloc[train], pd.DataFrame(known[train], columns=names))
        scaler, x = model.output_scaler_, model.input_spec_.read(X.iloc[test])
        errors, densities, covered = scores(model.posterior_, scaler, x, Y[test], sd)
    if job["question"] == "coordinates":
        return {
            "errors": np.nanmean(np.abs(errors), axis=1).tolist(),
            "densities": np.nanmean(densities, axis=1).tolist(),
            "coverage": float(np.nanmean(covered)),
            "notes": notes(),
        }
    fitted = _least_squares(scaler, Y, known, test, output)
    return {
        "errors": np.abs(errors[:, output]).tolist(),
        "least_squares": (np.abs(fitted - Y[test, output]) / sd[output]).tolist(),
        "coverage": float(covered[:, output].mean()),
        "notes": notes(),
    }


def split_fold(n: int, fold: int) -> tuple[Int[Array, " t"], Int[Array, " m"]]:
    """Return the numbers of the training rows and of the test rows, a random quarter of all."""
    test = np.sort(_random_order(n)[fold::N_FOLDS])
    return np.setdiff1d(np.arange(n), test), test


def scores(
    posterior: Posterior,
    scaler: OutputScaler,
    x: Float[Array, "M P"],
    truth: Float[Array, "M D"],
    sd: Float[Array, " D"],
) -> tuple[Float[Array, "M D"], Float[Array, "M D"], Float[Array, "M D"]]:
    """Return errors, negative log predictive densities, and whether 95% intervals cover the truth.

    The prediction is the median. Errors and densities are those of the outputs divided by their
    standard deviations.
    """
    distribution = posterior.predict(x)
    low, median, high = scaler.quantiles(distribution, [0.025, 0.5, 0.975])
    covered = np.where(np.isnan(truth), np.nan, (truth >= low) & (truth <= high))
    density = -(scaler.log_density(distribution, truth) + np.log(sd))
    return (median - truth) / sd, density, covered


def _random_order(n: int) -> Int[Array, " n"]:
    return np.random.default_rng(0).permutation(n)


def _withheld_sites(Y: Float[Array, "N D"]) -> Int[Array, " m"]:
    """Choose sites at random, and return those where all outputs are measured."""
    chosen = np.sort(_random_order(len(Y))[: int(WITHHELD_SHARE * len(Y))])
    return chosen[~np.isnan(Y[chosen]).any(axis=1)]


def _least_squares(
    scaler: OutputScaler,
    Y: Float[Array, "N D"],
    known: Float[Array, "N D"],
    test: Int[Array, " m"],
    output: int,
) -> Float[Array, " m"]:
    """Predict the withheld output by regression on the others, using the model's transforms."""
    Z = scaler.standardise(Y)
    others = np.column_stack([np.ones(len(Z)), np.delete(Z, output, axis=1)])
    rows = ~np.isnan(others).any(axis=1) & ~np.isnan(known[:, output])
    slopes = np.linalg.lstsq(others[rows], Z[rows, output], rcond=None)[0]
    prediction = Z[test].copy()
    prediction[:, output] = others[test] @ slopes
    return scaler.to_original(prediction)[:, output]
