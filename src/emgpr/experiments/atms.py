"""The ATMS experiments: ten random samples of sites, five folds and six methods.

The data are a swath, a DataFrame returned by `emgpr.datasets.read_atms`. The three fields of view
at each end of a scan are left out because they are large. This leaves 12 × 90 sites in a granule,
as in the paper.
"""

from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from emgpr.experiments.fitting import Settings, fit_and_predict
from emgpr.experiments.rows import Job, Row, by_name, complete
from emgpr.metrics import mean_absolute_error, mean_squared_error

N_EDGE_VIEWS = 3  # fields of view left out at each end of a scan
# The paper uses ten channels but does not say which.
CHANNELS = tuple(f"ch{number:02d}" for number in range(1, 11))

NO_TRANSFER = "GP"
_AS_PUBLISHED: Settings = {
    "kernel": None,
    "output_transform": None,
    "conditioning": "all",
    "latent_learner": "exact",
    "parameter_uncertainty": False,
}
_EXACT: Settings = {"prior": None, "n_neighbours": None}
METHODS: dict[str, Settings] = {
    NO_TRANSFER: {"estimator": "IndependentGP", **_AS_PUBLISHED},
    **{
        f"ICM (rank {rank})": {"estimator": "ICM", "rank": rank, **_EXACT, **_AS_PUBLISHED}
        for rank in (1, 2, 3)
    },
    # Batches have D² = 100 sites, as in the paper. They are drawn at random, because a strided
    # batch would contain the same fields of view from every scan. Conditioning on 64 neighbours
    # instead of all sites changes the errors by less than 0.2%.
    "EMGPR": {"estimator": "EMGPR.paper", "partition": "random", "conditioning": 64},
    "EMGPR (no ensemble)": {"estimator": "EMGPR.paper", "batch_size": None, "conditioning": "all"},
}


@dataclass(frozen=True)
class Protocol:
    """The number of sites sampled, the number of folds, and the channels used as outputs."""

    sites: int = 1000
    folds: int = 5
    channels: tuple[str, ...] = CHANNELS


AS_PRINTED = Protocol()


def jobs(
    swath: pd.DataFrame,
    methods: dict[str, Settings] = METHODS,
    experiments: int = 10,
    protocol: Protocol = AS_PRINTED,
) -> list[Job]:
    """Return one job for each combination of method, fold and experiment, ordered by fold."""
    data = " ".join(str(swath.attrs.get(key)) for key in ("platform", "kind", "start"))
    drawn = asdict(protocol) | {"channels": list(protocol.channels)}
    return [
        {
            "method": method,
            "settings": settings,
            "experiment": experiment,
            "fold": fold,
            "drawn": drawn,
            "data": data,
        }
        for fold in range(protocol.folds)
        for experiment in range(experiments)
        for method, settings in methods.items()
    ]


def reproduce(
    swath: pd.DataFrame,
    path: Path,
    *,
    experiments: int = 10,
    methods: dict[str, Settings] = METHODS,
    protocol: Protocol = AS_PRINTED,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> list[Row]:
    """Run the jobs whose results are not in the file at `path` yet, and return all results."""
    all_jobs = jobs(swath, methods, experiments, protocol)
    run = partial(work, usable(swath, protocol))
    return complete(all_jobs, run, path, n_jobs=n_jobs, label="ATMS", verbose=verbose)


def usable(swath: pd.DataFrame, protocol: Protocol) -> pd.DataFrame:
    """Return coordinates and channels of all complete sites that are not at the edges of scans."""
    inside = swath["fov"].between(1 + N_EDGE_VIEWS, swath["fov"].max() - N_EDGE_VIEWS)
    table = swath.loc[inside, ["lat", "lon", *protocol.channels]].dropna().reset_index(drop=True)
    if len(table) < protocol.sites:
        raise ValueError(
            f"Not counting {N_EDGE_VIEWS} fields of view at each end of a scan, the swath has "
            f"{len(table)} sites with all channels; each experiment needs {protocol.sites}. Use a "
            "file with more scans or fewer missing values."
        )
    # Relative to the first site, longitudes are continuous across the date line.
    return table.assign(lon=(table["lon"] - table["lon"].iloc[0] + 180) % 360 - 180)


def work(table: pd.DataFrame, job: Job) -> Row:
    """Return the errors of one method on one fold, divided by each channel's standard deviation."""
    drawn, channels = job["drawn"], job["drawn"]["channels"]
    rng = np.random.default_rng(job["experiment"])
    chosen = table.iloc[rng.permutation(len(table))[: drawn["sites"]]]
    held_out = np.arange(len(chosen)) % drawn["folds"] == job["fold"]
    # The paper treats degrees as plane coordinates. These column names avoid a warning about that.
    X = chosen[["lat", "lon"]].set_axis(["degrees north", "degrees east"], axis=1)
    Y = chosen[channels]
    outcome = fit_and_predict(
        job["settings"], X[~held_out], Y[~held_out], X[held_out], job["experiment"]
    )
    sd = Y.to_numpy().std(axis=0)
    truth, prediction = Y[held_out].to_numpy() / sd, outcome.prediction / sd
    return {
        "mse": by_name(channels, mean_squared_error(truth, prediction)),
        "mae": by_name(channels, mean_absolute_error(truth, prediction)),
        "seconds": outcome.seconds,
        "notes": outcome.notes,
    }
