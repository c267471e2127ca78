"""The Jura experiments: a list of their jobs, and the function that runs a job.

The experiment "cadmium" reproduces Table 1 of the paper. Cadmium is withheld at the 100 validation
sites and predicted from all other readings at all 359 sites. The experiment "batch size" reproduces
Figures 1 and 2 of the paper and Figures 1 to 8 of its supplement. Models are fitted to the other
259 sites, with mini-batches of various sizes, and predict all three metals at the validation sites.
"""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np

from emgpr.datasets import JuraTable, jura_table
from emgpr.experiments.fitting import Outcome, Settings, fit_and_predict
from emgpr.experiments.rows import Job, Row, by_name, complete
from emgpr.metrics import mean_absolute_error

METALS = ("Cd", "Ni", "Zn")

ENSEMBLE, ENSEMBLE_RAW = "EMGPR (Ensemble)", "EMGPR* (Ensemble)"
NO_TRANSFER, NO_TRANSFER_RAW = "GP", "GP*"
BASELINES: dict[str, Settings] = {
    "Median of Cd": {"baseline": "median"},
    "Least squares": {"baseline": "least squares of log Cd on log Ni and log Zn"},
}
_STRIDED: Settings = {"estimator": "EMGPR.paper", "batch_size": 9, "partition": "strided"}
_ALL_SITES: Settings = {"estimator": "EMGPR.paper", "batch_size": None}
_ALONE: Settings = {
    "estimator": "IndependentGP",
    "kernel": None,
    "latent_learner": "exact",
    "parameter_uncertainty": False,
}
_MAXIMUM_LIKELIHOOD: Settings = {
    "kernel": None,
    "prior": None,
    "n_neighbours": None,
    "parameter_uncertainty": False,
}
_ICM: Settings = {"estimator": "ICM", **_MAXIMUM_LIKELIHOOD, "rank": 2}
_SLFM: Settings = {"estimator": "SLFM", **_MAXIMUM_LIKELIHOOD, "n_latents": 2}
_CMOGP: Settings = {"estimator": "CMOGP", "prior": None}
# As in the publication, with two nodes and the same noise variance for all metals.
_GPRN: Settings = {"estimator": "GPRN", "equal_noise": True}
_SLFM_VB: Settings = _GPRN | {"constant_weights": True}
_COKRIGING: Settings = {"estimator": "CoKriging"}
_LOG: Settings = {"output_transform": "log"}
_RAW: Settings = {"output_transform": None}
# Names of models fitted to concentrations end in an asterisk, as in the paper.
TABLE_1: dict[str, Settings] = {
    ENSEMBLE: _STRIDED | _LOG,
    "EMGPR": _ALL_SITES | _LOG,
    ENSEMBLE_RAW: _STRIDED | _RAW,
    "EMGPR*": _ALL_SITES | _RAW,
    NO_TRANSFER: _ALONE | _LOG,
    NO_TRANSFER_RAW: _ALONE | _RAW,
    "ICM": _ICM | _LOG,
    "ICM*": _ICM | _RAW,
    "SLFM (ML)": _SLFM | _LOG,
    "SLFM* (ML)": _SLFM | _RAW,
    "CMOGP": _CMOGP | _LOG,
    "CMOGP*": _CMOGP | {"n_latents": 2, "own_processes": False} | _RAW,
    "Co-kriging": _COKRIGING | _LOG,
    "Co-kriging*": _COKRIGING | _RAW,
    "GPRN (VB)": _GPRN | _LOG,
    "GPRN* (VB)": _GPRN | _RAW,
    "SLFM (VB)": _SLFM_VB | _LOG,
    "SLFM* (VB)": _SLFM_VB | _RAW,
}
MAX_RESTARTS = {"GPRN": 3}  # by estimator; its fits take about half a minute
# Rows that the paper prints without an asterisk, beside which they are shown. The errors of the
# first three are those of models fitted to concentrations; for co-kriging, this is not known
# (docs/paper.md).
PRINTED_AS = {
    "ICM*": "ICM",
    "SLFM* (ML)": "SLFM",
    "CMOGP*": "CMOGP",
    "Co-kriging*": "Co-kriging",
}
REFERENCES = (NO_TRANSFER, "EMGPR", "ICM")

# One size for each number of batches. For example, 45 is included but 51 is not, because both sizes
# divide the 259 sites into five batches.
BATCH_SIZES = (9, 12, 15, 18, 21, 27, 33, 39, 45, 64, 86, 129)


def cadmium_jobs(methods: dict[str, Settings], restarts: int) -> list[Job]:
    """Return the jobs for Table 1: all restarts of each method, and one of those without any.

    Methods whose fits take long have at most `MAX_RESTARTS` restarts.
    """
    return [
        _job("cadmium", method, settings, restart)
        for restart in range(restarts)
        for method, settings in methods.items()
        if restart == 0 or has_restarts(settings)
        if restart < MAX_RESTARTS.get(settings.get("estimator", ""), restarts)
    ]


def has_restarts(settings: Settings) -> bool:
    """Tell whether the result of a method depends on random starting values.

    >>> has_restarts(TABLE_1["ICM"]), has_restarts(TABLE_1["Co-kriging"])
    (True, False)
    """
    return "baseline" not in settings and settings["estimator"] != "CoKriging"


def is_raw(method: str) -> bool:
    """Tell whether a method is fitted to concentrations instead of their logarithms."""
    return "*" in method


def batch_size_jobs(sizes: Sequence[int], restarts: int) -> list[Job]:
    """Return the jobs for the figures: an ensemble for each batch size, and reference models."""
    models = [(method, TABLE_1[method]) for method in REFERENCES]
    models += [(ENSEMBLE, {**TABLE_1[ENSEMBLE], "batch_size": size}) for size in sizes]
    return [_job("batch size", *model, restart) for restart in range(restarts) for model in models]


def jobs(*, restarts: int = 10, figure_restarts: int = 10) -> list[Job]:
    """Return the jobs for Table 1 and the figures."""
    of_table = cadmium_jobs(BASELINES | TABLE_1, restarts)
    return of_table + batch_size_jobs(BATCH_SIZES, figure_restarts)


def reproduce(
    path: Path,
    *,
    restarts: int = 10,
    figure_restarts: int = 10,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Row]:
    """Run the jobs whose results are not in the file at `path` yet, and return all results."""
    all_jobs = jobs(restarts=restarts, figure_restarts=figure_restarts)
    return complete(all_jobs, work, path, n_jobs=n_jobs, label="Jura", verbose=verbose)


def work(job: Job) -> Row:
    """Return the results of one job."""
    return _cadmium(job) if job["experiment"] == "cadmium" else _batch_size(job)


def _job(experiment: str, method: str, settings: Settings, restart: int) -> Job:
    return {
        "experiment": experiment,
        "method": method,
        "settings": settings,
        "restart": restart,
    }


def _cadmium(job: Job) -> Row:
    jura, settings = jura_table(METALS, withheld="Cd"), job["settings"]
    if "baseline" in settings:
        outcome = _baseline(settings["baseline"], jura)
    else:
        outcome = fit_and_predict(settings, jura.X, jura.Y, jura.X[jura.test], job["restart"])
    # The error at every site is stored, so that methods can be compared site by site.
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
    sd = np.log(Y.to_numpy()).std(axis=0)
    logs = np.log(truth) / sd, np.log(outcome.prediction) / sd
    return {
        "mae": by_name(METALS, mean_absolute_error(truth, outcome.prediction)),
        "mae_standardised_log": by_name(METALS, mean_absolute_error(*logs)),
        "seconds": outcome.seconds,
        "notes": outcome.notes,
    }


def _baseline(name: str, jura: JuraTable) -> Outcome:
    """Predict cadmium as its median at other sites, or from nickel and zinc at the same site."""
    start = perf_counter()
    Y, train = jura.Y, ~jura.test
    if name == "median":
        cadmium = np.full(jura.test.sum(), Y["Cd"].median())
    else:
        A = np.column_stack([np.ones(len(Y)), np.log(Y[["Ni", "Zn"]])])
        log_cadmium = np.log(Y["Cd"].to_numpy())
        coefficients, *_ = np.linalg.lstsq(A[train], log_cadmium[train], rcond=None)
        cadmium = np.exp(A[jura.test] @ coefficients)
    return Outcome(cadmium[:, None], perf_counter() - start, [])
