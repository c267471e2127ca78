"""The ATMS experiments: ten draws of sites, five folds, six methods; a row for each.

A swath is what `emgpr.datasets.read_atms` returns. Three views at each edge of a scan, where
pixels are large, are left out, as that leaves the paper's 12 × 90 sites of a granule.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from emgpr import __version__
from emgpr.experiments.fitting import Settings, fit_and_predict
from emgpr.experiments.rows import Job, Row, complete
from emgpr.metrics import mean_absolute_error, mean_squared_error

EDGE = 3
CHANNELS = tuple(f"ch{number:02d}" for number in range(1, 11))  # the paper does not say which ten

NO_TRANSFER = "GP"
METHODS: dict[str, Settings] = {
    NO_TRANSFER: {"estimator": "IndependentGP", "conditioning": "all"},
    **{
        f"ICM (rank {rank})": {"estimator": "ICM", "rank": rank, "conditioning": "all"}
        for rank in (1, 2, 3)
    },
    # The paper's: batches of D² = 100, at random, as strides would give a member the same views
    # of every scan. Errors from 64 neighbours are those from all sites to 1 part in 500.
    "EMGPR": {"estimator": "EMGPR.paper", "partition": "random", "conditioning": 64},
    "EMGPR (no ensemble)": {"estimator": "EMGPR.paper", "batch_size": None, "conditioning": "all"},
}


@dataclass(frozen=True)
class Protocol:
    """How many sites are drawn, to how many folds they are dealt, which channels are tasks."""

    sites: int = 1000
    folds: int = 5
    channels: tuple[str, ...] = CHANNELS


AS_PRINTED = Protocol()


def jobs(
    swath: pd.DataFrame, methods: dict[str, Settings], experiments: int, protocol: Protocol
) -> list[Job]:
    """Every method on every fold of every experiment; fold by fold, so that all advance alike."""
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
            "version": __version__,
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
    """Every row of the tables; rows already in the file at `path` are kept."""
    table = usable(swath, protocol)
    return complete(
        jobs(swath, methods, experiments, protocol),
        partial(work, table),
        path,
        n_jobs=n_jobs,
        label="ATMS",
        verbose=verbose,
    )


def usable(swath: pd.DataFrame, protocol: Protocol) -> pd.DataFrame:
    """Positions and channels at the sites inside the edges where nothing is missing."""
    inside = swath["fov"].between(1 + EDGE, swath["fov"].max() - EDGE)
    table = swath.loc[inside, ["lat", "lon", *protocol.channels]].dropna().reset_index(drop=True)
    if len(table) < protocol.sites:
        raise ValueError(
            f"The swath has {len(table)} sites with nothing missing, {EDGE} views from the edges; "
            f"each experiment draws {protocol.sites}. Give a file with more scans or fewer gaps."
        )
    # Degrees east of the first site, so that no swath is torn at the date line.
    return table.assign(lon=(table["lon"] - table["lon"].iloc[0] + 180) % 360 - 180)


def work(table: pd.DataFrame, job: Job) -> Row:
    """The errors of one method on one fold, in standard deviations of each channel."""
    drawn, channels = job["drawn"], job["drawn"]["channels"]
    rng = np.random.default_rng(job["experiment"])
    chosen = table.iloc[rng.permutation(len(table))[: drawn["sites"]]]
    held_out = np.arange(len(chosen)) % drawn["folds"] == job["fold"]
    # Degrees as if flat, as the paper has them; by these names that is no slip to warn of.
    X = chosen[["lat", "lon"]].set_axis(["degrees north", "degrees east"], axis=1)
    Y = chosen[channels]
    outcome = fit_and_predict(
        job["settings"], X[~held_out], Y[~held_out], X[held_out], job["experiment"]
    )
    spread = Y.to_numpy().std(axis=0)
    truth, prediction = Y[held_out].to_numpy() / spread, outcome.prediction / spread
    return {
        "mse": _by_channel(channels, mean_squared_error(truth, prediction)),
        "mae": _by_channel(channels, mean_absolute_error(truth, prediction)),
        "seconds": outcome.seconds,
        "notes": outcome.notes,
    }


def _by_channel(channels: Sequence[str], values: np.ndarray) -> dict[str, float]:
    return dict(zip(channels, values.tolist(), strict=True))
