"""Which settings to make the default: cross-validation on training data of many data sets.

Two questions are asked of every candidate. `coordinates`: a quarter of the sites is left out
and all their outputs predicted. `withheld`: one output is withheld at 30% of the sites, the others
known there, each output in turn; beside it, least squares on the known outputs. No test
site of any data set takes part.

Jura's prediction sites and the AMSU-A swath are embedded. A folder of CSV files adds others:
columns whose names begin with `x_` are inputs, all others outputs, empty cells not measured.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from emgpr import __version__
from emgpr.datasets import load_amsua, load_jura
from emgpr.estimators.base import MultiOutputGP
from emgpr.experiments.fitting import Settings, build, quietly
from emgpr.experiments.rows import Job, Row, complete

DEFAULT = "EMGPR()"
NO_TRANSFER = "no transfer"
CANDIDATES: dict[str, Settings] = {
    NO_TRANSFER: {"estimator": "IndependentGP", "kernel": "auto", "transform": "auto"},
    DEFAULT: {"estimator": "EMGPR"},
    "rank=1": {"estimator": "EMGPR", "rank": 1},
    'transfer="full"': {"estimator": "EMGPR", "transfer": "full"},
    'noise="independent"': {"estimator": "EMGPR", "noise": "independent"},
    "kernel=None (RBF)": {"estimator": "EMGPR", "kernel": None},
    "transform=None": {"estimator": "EMGPR", "transform": None},
    "paper, transform and kernel auto": {
        "estimator": "EMGPR.paper",
        "kernel": "auto",
        "transform": "auto",
    },
}
FOLDS = 4
SHARE = 0.3

Table = tuple[pd.DataFrame, pd.DataFrame]


def embedded() -> dict[str, Table]:
    """Training data that come with the package."""
    jura, swath = load_jura(), load_amsua()
    X = jura.train[list(jura.coordinates)]
    return {
        "jura": (X, jura.train[["Cd", "Ni", "Zn"]]),
        "jura, 7 metals": (X, jura.train[list(jura.metals)]),
        # Degrees as if flat, knowingly: the rows there are were made so.
        "amsua": (swath.X.set_axis(["degrees north", "degrees east"], axis=1), swath.Y),
    }


def from_folder(folder: Path) -> dict[str, Table]:
    """The CSV files of a folder, by name."""
    tables = {}
    for file in sorted(folder.glob("*.csv")):
        frame = pd.read_csv(file)
        inputs = [name for name in frame.columns if name.startswith("x_")]
        if not inputs or len(inputs) == len(frame.columns):
            raise ValueError(
                f"{file} has columns {list(frame.columns)}; expected inputs, whose names begin "
                "with 'x_', and outputs, whose names do not."
            )
        tables[file.stem] = frame[inputs], frame.drop(columns=inputs)
    if not tables:
        raise ValueError(f"{folder} holds no CSV files.")
    return tables


def jobs(tables: dict[str, Table], candidates: dict[str, Settings], folds: int) -> list[Job]:
    """Every candidate on every fold, and with every output withheld, of every data set."""
    found: list[Job] = []
    for data, (X, Y) in tables.items():
        asked: list[tuple[str, Any]] = [("coordinates", fold) for fold in range(folds)]
        asked += [("withheld", output) for output in map(str, Y.columns)]
        size = [*X.shape, Y.shape[1]]
        for question, part in asked:
            for method, settings in candidates.items():
                if question == "withheld" and method == NO_TRANSFER:
                    continue
                found.append(
                    {
                        "method": method,
                        "settings": settings,
                        "data": data,
                        "size": size,
                        "question": question,
                        "part": part,
                        "version": __version__,
                    }
                )
    return found


def reproduce(
    tables: dict[str, Table],
    path: Path,
    *,
    candidates: dict[str, Settings] = CANDIDATES,
    folds: int = 2,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Row]:
    """Every row; those already in the file at `path` are kept."""
    return complete(
        jobs(tables, candidates, folds),
        partial(work, tables),
        path,
        n_jobs=n_jobs,
        label="Choices",
        verbose=verbose,
    )


def work(tables: dict[str, Table], job: Job) -> Row:
    """What one candidate makes of one fold or one withheld output."""
    X, frame = tables[job["data"]]
    Y = frame.to_numpy(dtype=float)
    spread = np.nanstd(Y, axis=0, ddof=1)
    order = np.random.default_rng(0).permutation(len(Y))
    model = build(job["settings"], random_state=0)
    names = list(map(str, frame.columns))
    if job["question"] == "coordinates":
        out = np.sort(order[job["part"] :: FOLDS])
        seen = np.setdiff1d(np.arange(len(Y)), out)
        with quietly() as notes:
            model.fit(X.iloc[seen], pd.DataFrame(Y[seen], columns=names))
            errors, densities, covered = scores(model, X.iloc[out], Y[out], spread)
        return {
            "errors": np.nanmean(np.abs(errors), axis=1).tolist(),
            "densities": np.nanmean(densities, axis=1).tolist(),
            "coverage": float(np.nanmean(covered)),
            "notes": notes(),
        }
    output = names.index(job["part"])
    out = np.sort(order[: int(SHARE * len(Y))])
    out = out[~np.isnan(Y[out]).any(axis=1)]
    known = Y.copy()
    known[out, output] = np.nan
    with quietly() as notes:
        model.fit(X, pd.DataFrame(known, columns=names))
        errors, _, covered = scores(model, X.iloc[out], Y[out], spread)
    fitted = _least_squares(model, Y, known, out, output)
    return {
        "errors": np.abs(errors[:, output]).tolist(),
        "least_squares": (np.abs(fitted - Y[out, output]) / spread[output]).tolist(),
        "coverage": float(covered[:, output].mean()),
        "notes": notes(),
    }


def scores(
    model: MultiOutputGP, X: pd.DataFrame, truth: Float[np.ndarray, "M D"], spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors of the median and −log densities, in standard deviations; what 95% intervals hold."""
    belief = model._belief(X, None, True)
    scale = model._scale
    low, median, high = scale.quantiles(belief, [0.025, 0.5, 0.975])
    covered = np.where(np.isnan(truth), np.nan, (truth >= low) & (truth <= high))
    density = -(scale.log_density(belief, truth) + np.log(spread))
    return (median - truth) / spread, density, covered


def _least_squares(
    model: MultiOutputGP,
    Y: Float[np.ndarray, "N D"],
    known: Float[np.ndarray, "N D"],
    out: np.ndarray,
    output: int,
) -> np.ndarray:
    """The withheld output by regression on the others, through the transforms of the model."""
    Z = model._scale.forward(Y)
    others = np.column_stack([np.ones(len(Z)), np.delete(Z, output, axis=1)])
    rows = ~np.isnan(others).any(axis=1) & ~np.isnan(known[:, output])
    slopes = np.linalg.lstsq(others[rows], Z[rows, output], rcond=None)[0]
    guess = Z[out].copy()
    guess[:, output] = others[out] @ slopes
    return model._scale.to_user(guess)[:, output]
