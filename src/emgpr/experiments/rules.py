"""The combination rules on real data: error, log density and coverage of each.

The paper's two steps on batches of the training sites; the members' beliefs joined by each rule,
where every member predicts from all readings and where each knows its own batch only.
"""

from functools import partial
from pathlib import Path

import numpy as np

from emgpr import __version__
from emgpr.ensemble import RULES
from emgpr.experiments.choices import FOLDS, Table, embedded, scores
from emgpr.experiments.fitting import Settings, build, quietly
from emgpr.experiments.rows import Job, Row, complete
from emgpr.experiments.text import aligned

CAPTION = """Mean absolute error and negative log density a reading (both in standard deviations of
each output), and the share of readings inside their 95% intervals, of two folds of the training
sites. EMGPR.paper() on batches of 45 sites (Jura, logarithms) and 105 (AMSU-A, six channels)."""

SETTINGS: dict[str, Settings] = {
    "jura": {"estimator": "EMGPR.paper", "transform": "log", "batch_size": 45},
    "amsua": {"estimator": "EMGPR.paper", "partition": "random", "batch_size": 105},
}
CHANNELS = ["ch01", "ch03", "ch05", "ch08", "ch11", "ch15"]


def reproduce(
    path: Path, *, folds: int = 2, n_jobs: int | None = None, verbose: int = 0
) -> list[Row]:
    """Every row; those already in the file at `path` are kept."""
    tables = embedded()
    X, Y = tables["amsua"]
    tables = {"jura": tables["jura"], "amsua": (X, Y[CHANNELS])}
    asked: list[Job] = [
        {
            "data": data,
            "settings": SETTINGS[data] | {"conditioning": conditioning},
            "fold": fold,
            "version": __version__,
        }
        for data in tables
        for conditioning in ("all", "batch")
        for fold in range(folds)
    ]
    label = "Combination rules"
    return complete(asked, partial(work, tables), path, n_jobs=n_jobs, label=label, verbose=verbose)


def work(tables: dict[str, Table], job: Job) -> Row:
    """Every rule on the members of one fit."""
    X, Y = tables[job["data"]]
    spread = Y.std().to_numpy()
    order = np.random.default_rng(0).permutation(len(Y))
    out = np.sort(order[job["fold"] :: FOLDS])
    seen = np.setdiff1d(np.arange(len(Y)), out)
    by_rule = {}
    with quietly() as caught:
        model = build(job["settings"], random_state=0).fit(X.iloc[seen], Y.iloc[seen])
        for rule in RULES:
            model.set_params(combine=rule)
            parts = scores(model, X.iloc[out], Y.iloc[out].to_numpy(), spread)
            error, density, covered = (
                float(np.nanmean(np.abs(parts[0]))),
                *map(np.nanmean, parts[1:]),
            )
            by_rule[rule] = {"mae": error, "nlpd": float(density), "coverage": float(covered)}
    return {"scores": by_rule, "notes": caught()}


def text(rows: list[Row]) -> str:
    """A row a rule, columns for data set and conditioning."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(f"{row['data']}, {row['settings']['conditioning']}", []).append(row)
    body = []
    for rule in RULES:
        cells = []
        for group in groups.values():
            mean = {
                k: np.mean([r["scores"][rule][k] for r in group])
                for k in ("mae", "nlpd", "coverage")
            }
            cells.append(f"{mean['mae']:.3f}; {mean['nlpd']:.2f}; {100 * mean['coverage']:.0f}%")
        body.append([rule, *cells])
    return aligned(["rule", *groups], body)
