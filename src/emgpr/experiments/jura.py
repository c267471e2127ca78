"""The Jura experiments: jobs, and how one job becomes a row.

"cadmium" is Table 1: all 359 sites, Cd withheld at the 100 validation sites and predicted there.
"batch size" is the paper's Figures 1 and 2 and the supplement's 1 to 8: all three metals withheld
there, so learned from the other 259, for mini-batches of many sizes.
"""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

from emgpr import __version__
from emgpr.datasets import JuraTable, jura_table
from emgpr.experiments.fitting import Outcome, Settings, fit_and_predict
from emgpr.experiments.rows import Job, Row, complete
from emgpr.metrics import mean_absolute_error

METALS = ("Cd", "Ni", "Zn")

ENSEMBLE = "EMGPR (Ensemble)"
NO_TRANSFER = "GP"
BASELINES: dict[str, Settings] = {
    "Median of Cd": {"baseline": "median"},
    "Least squares": {"baseline": "least squares of log Cd on log Ni and log Zn"},
}
_STRIDED: Settings = {"estimator": "EMGPR.paper", "batch_size": 9, "partition": "strided"}
TABLE_1: dict[str, Settings] = {
    ENSEMBLE: {**_STRIDED, "transform": "log"},
    "EMGPR": {"estimator": "EMGPR.paper", "batch_size": None, "transform": "log"},
    "EMGPR* (Ensemble)": _STRIDED,
    "EMGPR*": {"estimator": "EMGPR.paper", "batch_size": None},
    NO_TRANSFER: {"estimator": "IndependentGP", "transform": "log"},
    "ICM": {"estimator": "ICM", "rank": 2, "transform": "log"},
    "SLFM": {"estimator": "SLFM", "n_latents": 2, "transform": "log"},
    "SLFM* (ML)": {"estimator": "SLFM", "n_latents": 2},
}
REFERENCES = (NO_TRANSFER, "EMGPR", "ICM")

# Of the sizes that deal 259 sites to equally many members, one: 45 and 51 are both five.
BATCH_SIZES = (9, 12, 15, 18, 21, 27, 33, 39, 45, 64, 86, 129)


def cadmium_jobs(methods: dict[str, Settings], restarts: int) -> list[Job]:
    """Table 1: every method from every start; a baseline has no start, so once."""
    return [
        _job("cadmium", method, settings, restart)
        for restart in range(restarts)
        for method, settings in methods.items()
        if restart == 0 or "baseline" not in settings
    ]


def batch_size_jobs(sizes: Sequence[int], restarts: int) -> list[Job]:
    """The figures: the ensemble for every size, and the models they are compared with."""
    models = [(method, TABLE_1[method]) for method in REFERENCES]
    models += [(ENSEMBLE, {**TABLE_1[ENSEMBLE], "batch_size": size}) for size in sizes]
    return [_job("batch size", *model, restart) for restart in range(restarts) for model in models]


def reproduce(
    path: Path,
    *,
    restarts: int = 10,
    figure_restarts: int = 10,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Row]:
    """Every row of the table and the figures; rows already in the file at `path` are kept."""
    jobs = cadmium_jobs(BASELINES | TABLE_1, restarts)
    jobs += batch_size_jobs(BATCH_SIZES, figure_restarts)
    return complete(jobs, work, path, n_jobs=n_jobs, label="Jura", verbose=verbose)


def work(job: Job) -> Row:
    """The results of one job."""
    return _cadmium(job) if job["experiment"] == "cadmium" else _batch_size(job)


def _job(experiment: str, method: str, settings: Settings, restart: int) -> Job:
    return {
        "experiment": experiment,
        "method": method,
        "settings": settings,
        "restart": restart,
        "version": __version__,
    }


def _cadmium(job: Job) -> Row:
    jura = jura_table(METALS, withheld="Cd")
    settings = job["settings"]
    if "baseline" in settings:
        outcome = _baseline(settings["baseline"], jura)
    else:
        new = jura.X[jura.test]
        outcome = fit_and_predict(settings, jura.X, jura.Y, new, job["restart"])
    # Site by site, so that methods can be compared in pairs.
    errors = np.abs(outcome.prediction[:, 0] - jura.truth["Cd"].to_numpy())
    return {
        "mae": float(errors.mean()),
        "errors": errors.round(6).tolist(),
        "seconds": outcome.seconds,
        "notes": outcome.notes,
    }


def _batch_size(job: Job) -> Row:
    jura = jura_table(METALS, withheld="all")
    X, Y = jura.X[~jura.test], jura.Y[~jura.test]
    outcome = fit_and_predict(job["settings"], X, Y, jura.X[jura.test], job["restart"])
    truth = jura.truth.to_numpy()
    spread = np.log(Y.to_numpy()).std(axis=0)
    on_logs = np.log(truth) / spread, np.log(outcome.prediction) / spread
    return {
        "mae": _by_metal(mean_absolute_error(truth, outcome.prediction)),
        "mae_standardised_log": _by_metal(mean_absolute_error(*on_logs)),
        "seconds": outcome.seconds,
        "notes": outcome.notes,
    }


def _by_metal(values: np.ndarray) -> dict[str, float]:
    return dict(zip(METALS, values.tolist(), strict=True))


def _baseline(name: str, jura: JuraTable) -> Outcome:
    """What needs no model: nothing known but Cd elsewhere, or nothing but Ni and Zn here."""
    start = perf_counter()
    Y = jura.Y
    if name == "median":
        cadmium = np.full(jura.test.sum(), Y["Cd"].median())
    else:
        known = np.column_stack([np.ones(len(Y)), np.log(Y[["Ni", "Zn"]])])
        target = np.log(Y["Cd"].to_numpy())
        learn = ~jura.test
        coefficients, *_ = np.linalg.lstsq(known[learn], target[learn], rcond=None)
        cadmium = np.exp(known[jura.test] @ coefficients)
    return Outcome(cadmium[:, None], perf_counter() - start, [])
