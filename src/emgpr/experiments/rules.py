"""Comparison of the rules for combining the predictions of ensemble members, on real data.

An ensemble is fitted using the paper's two steps, and the predictions of its members are combined
with each rule in turn. Each member predicts either from all readings or only from the readings in
its batch.
"""

from functools import partial
from pathlib import Path

import numpy as np

from emgpr.ensemble import RULES
from emgpr.experiments.choices import Table, embedded, scores, split_fold
from emgpr.experiments.fitting import Settings, build, one_thread_with_notes
from emgpr.experiments.rows import Job, Row, complete, group_rows
from emgpr.experiments.tables import markdown_table

CAPTION = """Mean absolute error, mean negative log density, and share of readings inside their 95%
intervals, from cross-validation on the training sites. Each output is divided by its standard
deviation. The model is EMGPR.paper(), with batches of 45 sites for the logarithms of the Jura data
and batches of 105 sites for six AMSU-A channels."""

SETTINGS: dict[str, Settings] = {
    "jura": {"estimator": "EMGPR.paper", "output_transform": "log", "batch_size": 45},
    "amsua": {"estimator": "EMGPR.paper", "partition": "random", "batch_size": 105},
}
CHANNELS = ["ch01", "ch03", "ch05", "ch08", "ch11", "ch15"]
SCORES = ("mae", "nlpd", "coverage")


def jobs(*, folds: int = 2) -> list[Job]:
    """Return one job for each data set, conditioning and fold."""
    return [
        {"data": data, "settings": SETTINGS[data] | {"conditioning": conditioning}, "fold": fold}
        for data in ("jura", "amsua")
        for conditioning in ("all", "batch")
        for fold in range(folds)
    ]


def reproduce(
    path: Path, *, folds: int = 2, n_jobs: int | None = None, verbose: int = 0
) -> list[Row]:
    """Run the jobs whose results are not in the file at `path` yet, and return all results."""
    tables = embedded()
    X, Y = tables["amsua"]
    tables = {"jura": tables["jura"], "amsua": (X, Y[CHANNELS])}
    run, label = partial(work, tables), "Combination rules"
    return complete(jobs(folds=folds), run, path, n_jobs=n_jobs, label=label, verbose=verbose)


def work(tables: dict[str, Table], job: Job) -> Row:
    """Fit one ensemble, and return the scores of its predictions combined with every rule."""
    X, Y = tables[job["data"]]
    train, test = split_fold(len(Y), job["fold"])
    truth, sd = Y.iloc[test].to_numpy(), Y.std().to_numpy()
    by_rule = {}
    with one_thread_with_notes() as notes:
        model = build(job["settings"], random_state=0).fit(X.iloc[train], Y.iloc[train])
        scaler, x = model.output_scaler_, model.input_spec_.read(X.iloc[test])
        for rule in RULES:
            posterior = model.posterior_.with_rule(rule)
            errors, densities, covered = scores(posterior, scaler, x, truth, sd)
            means = (float(np.nanmean(part)) for part in (np.abs(errors), densities, covered))
            by_rule[rule] = dict(zip(SCORES, means, strict=True))
    return {"scores": by_rule, "notes": notes()}


def text(rows: list[Row]) -> str:
    """Return a table with a row per rule and a column per data set and value of `conditioning`."""
    groups = group_rows(rows, lambda row: f"{row['data']}, {row['settings']['conditioning']}")
    body = []
    for rule in RULES:
        cells = []
        for group in groups.values():
            mae, nlpd, coverage = (np.mean([r["scores"][rule][k] for r in group]) for k in SCORES)
            cells.append(f"{mae:.3f}; {nlpd:.2f}; {100 * coverage:.0f}%")
        body.append([rule, *cells])
    return markdown_table(["rule", *groups], body)
