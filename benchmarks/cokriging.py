"""Kriging and co-kriging with gstat (R) compared with emgpr on the Jura data.

`python -m benchmarks.cokriging` runs both in turn on one core, and stores the error at every site
in results/gstat.json. With `--only CoKriging`, only this estimator of emgpr is run, and all other
stored rows are kept. With `--docs`, it only writes the tables of docs/geostatistics.md from that
file.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shutil import which
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.run import ONE_THREAD, RESULTS, last_core, log, machine
from benchmarks.scores import NORMAL_95
from benchmarks.table import DOCS, between_markers
from emgpr import EMGPR, CoKriging, IndependentGP
from emgpr.datasets import jura_table
from emgpr.experiments.tables import (
    NO_VALUE,
    format_difference,
    format_number,
    markdown_table,
)
from emgpr.metrics import PairedDifference, paired_difference

Row = dict[str, Any]
Run = dict[str, Any]

SCRIPT = Path(__file__).with_suffix(".R")
STORED = RESULTS / "gstat.json"
PAGE = DOCS / "geostatistics.md"
METALS = ("Cd", "Ni", "Zn")

# In the three problems, cadmium is predicted only from its own readings, cadmium is predicted also
# from nickel and zinc at the same location, and all three metals are predicted from coordinates.
ALONE, KNOWN, COORDINATES = "alone", "known", "coordinates"
OURS: dict[str, dict[str, Callable[[], Any]]] = {
    ALONE: {
        "IndependentGP": lambda: IndependentGP("auto", output_transform="log", random_state=0),
        "CoKriging": lambda: CoKriging(output_transform="log"),
    },
    KNOWN: {
        "CoKriging": lambda: CoKriging(output_transform="log"),
        "EMGPR.paper": lambda: EMGPR.paper(output_transform="log", random_state=0),
        "EMGPR": lambda: EMGPR(random_state=0),
    },
    COORDINATES: {
        "IndependentGP": lambda: IndependentGP("auto", output_transform="log", random_state=0),
        "CoKriging": lambda: CoKriging(output_transform="log"),
        "EMGPR.paper": lambda: EMGPR.paper(output_transform="log", random_state=0),
        "EMGPR": lambda: EMGPR(random_state=0),
    },
}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cokriging", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="number of runs; times are medians")
    parser.add_argument("--only", help="estimator of emgpr to run, keeping all other stored rows")
    parser.add_argument("--docs", action="store_true", help="only write the tables")
    args = parser.parse_args()
    if not args.docs:
        run = measure_only(args.only, args.repeats) if args.only else measure(args.repeats)
        STORED.write_text(json.dumps(run, indent=1, allow_nan=False) + "\n")
        log(f"written: {os.path.relpath(STORED)}")
    text = tables(json.loads(STORED.read_text()))
    print(text)
    if args.docs:
        PAGE.write_text(between_markers(PAGE.read_text(encoding="utf-8"), text, "cokriging"))


def measure(repeats: int) -> Run:
    """Run gstat and emgpr in turn, and return the first predictions and all times."""
    versions = gstat_versions()
    rows = _repeat(repeats, by_gstat, by_emgpr)
    return {"date": _now(), "machine": machine() | versions, "rows": rows}


def measure_only(estimator: str, repeats: int) -> Run:
    """Run one estimator of emgpr, and return its rows together with all other stored rows."""
    stored = json.loads(STORED.read_text())
    kept = [row for row in stored["rows"] if row["method"] != f"emgpr, {estimator}"]
    rows = _repeat(repeats, partial(by_emgpr, estimator))
    dates = stored.get("dates", {}) | {f"emgpr, {estimator}": _now()}
    return stored | {"dates": dates, "rows": [*kept, *rows]}


def _repeat(repeats: int, *measurements: Callable[[], Iterator[Row]]) -> list[Row]:
    """Run measurements in turn; return rows with the first predictions and all times."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {last_core()})  # The R process inherits the affinity.
    rows: dict[tuple[str, str], Row] = {}
    for repeat in range(repeats):
        for row in (row for measurement in measurements for row in measurement()):
            stored = rows.setdefault((row["problem"], row["method"]), row | {"seconds": []})
            stored["seconds"].append(row["seconds"])
        log(f"Repeat {repeat + 1} of {repeats} is complete.")
    return list(rows.values())


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H%MZ")


def gstat_versions() -> dict[str, str]:
    """Return the versions of R and gstat, or exit if one of them is not installed."""
    if which("Rscript") is None:
        raise SystemExit("R is not installed (no Rscript); on Debian: apt install r-cran-gstat")
    code = "cat(as.character(getRversion()), as.character(packageVersion('gstat')))"
    done = subprocess.run(["Rscript", "-e", code], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit("R has no package gstat; on Debian: apt install r-cran-gstat")
    r, gstat = done.stdout.split()
    return {"r": r, "gstat": gstat}


def by_gstat() -> Iterator[Row]:
    """Yield the predictions computed by cokriging.R."""
    jura = jura_table()
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("sites.csv", "answers.csv", "costs.csv")]
        jura.X.join(jura.Y).to_csv(files[0], index=False)
        command = ["Rscript", str(SCRIPT), *map(str, files)]
        subprocess.run(command, check=True, env=os.environ | ONE_THREAD, capture_output=True)
        answers, costs = (pd.read_csv(file) for file in files[1:])
    keys = ["method", "structure", "nmax"]
    groups = dict(list(answers.groupby(keys)))
    for cost in costs.to_dict("records"):
        problem, structure, nmax = (cost[key] for key in keys)
        group = groups[problem, structure, nmax]
        metals = list(METALS if problem == COORDINATES else METALS[:1])
        mean, variance = (
            group.pivot_table(index="site", columns="metal", values=name)[metals].to_numpy()
            for name in ("mean", "variance")
        )
        half = NORMAL_95 * np.sqrt(variance)
        values = np.exp([mean, mean - half, mean + half])
        neighbours = "" if np.isinf(nmax) else f", nmax = {nmax:.0f}"
        row = _row(problem, f"gstat, {structure}{neighbours}", cost["seconds"], metals, values)
        if not np.isnan(cost["training_error"]):
            row["training"] = {key: cost[f"training_{key}"] for key in ("error", "seconds")}
        yield row


def by_emgpr(only: str | None = None) -> Iterator[Row]:
    """Yield the predictions of emgpr, or of only one of its estimators, for the same problems."""
    for problem, estimators in OURS.items():
        models = {name: model for name, model in estimators.items() if only in (None, name)}
        withheld = "Cd" if problem == KNOWN else "all"
        jura = jura_table(METALS[:1] if problem == ALONE else METALS, withheld=withheld)
        rows = slice(None) if problem == KNOWN else ~jura.test
        metals = METALS if problem == COORDINATES else METALS[:1]
        for name, model in models.items():
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about kernel parameters at their bounds
                fitted = model().fit(jura.X[rows], jura.Y[rows])
            values = fitted.predict_quantiles(jura.X[jura.test], [0.5, 0.025, 0.975])
            spent = time.process_time() - start
            yield _row(problem, f"emgpr, {name}", spent, metals, values[..., : len(metals)])


def _row(
    problem: str, method: str, seconds: float, metals: Sequence[str], values: np.ndarray
) -> Row:
    truth = jura_table(METALS).truth[list(metals)].to_numpy()
    middle, lower, upper = values[..., : len(metals)]
    inside = (lower <= truth) & (truth <= upper)
    return {
        "problem": problem,
        "method": method,
        "seconds": seconds,
        "errors": dict(zip(metals, np.abs(middle - truth).T.round(6).tolist(), strict=True)),
        "inside": dict(zip(metals, inside.mean(axis=0).tolist(), strict=True)),
    }


def tables(run: Run) -> str:
    """Return the tables of the documentation page, computed from stored rows."""
    host = run["machine"]
    rows = [row | {"seconds": median(row["seconds"])} for row in run["rows"]]
    chosen = best_on_training_sites(rows)
    title = (
        f"One core of {host['cores']}, {host['cpu']}, {host['system']}; R {host['r']}, gstat "
        f"{host['gstat']}, Python {host['python']}; {run['date'][:10]}."
    )
    for method, date in run.get("dates", {}).items():
        title += f" {method} was run on a machine of the same kind on {date[:10]}."
    choosing = sum(row["training"]["seconds"] for row in rows if "training" in row)
    share = choosing / _find(rows, KNOWN, chosen)["seconds"]
    note = (
        f"Choosing the structure of gstat by ten folds took {share:.0f} times as long as the bold "
        "row."
    )
    return "\n\n".join([title, _cadmium(rows, chosen), note, _all_metals(rows, chosen)])


def best_on_training_sites(rows: Sequence[Row]) -> str:
    """Return the co-kriging model with the smallest cross-validated error on training sites."""
    tried = [row for row in rows if "training" in row]
    return str(min(tried, key=lambda row: row["training"]["error"])["method"])


def _cadmium(rows: Sequence[Row], chosen: str) -> str:
    bold = _find(rows, KNOWN, chosen)
    body = []
    for problem in (ALONE, KNOWN):
        for row in (row for row in rows if row["problem"] == problem):
            errors = np.array(row["errors"]["Cd"])
            error = errors.std(ddof=1) / np.sqrt(len(errors))
            name = row["method"] + (", Cd alone" if problem == ALONE else "")
            training = row.get("training", {}).get("error")
            body.append(
                [
                    f"**{name}**" if row is bold else name,
                    format_number(training, ".3f"),
                    f"{errors.mean():.3f} ± {error:.3f}",
                    NO_VALUE if row is bold else format_difference(asdict(minus(row, bold, "Cd"))),
                    f"{row['inside']['Cd']:.0%}",
                    f"{row['seconds'] / bold['seconds']:.2g}",
                ]
            )
    header = ["Cadmium", "folds", "MAE (mg/kg)", "minus bold", "95% coverage", "time (ratio)"]
    return markdown_table(header, body)


def _all_metals(rows: Sequence[Row], chosen: str) -> str:
    bold = _find(rows, COORDINATES, chosen)
    body = [
        [
            f"**{row['method']}**" if row is bold else row["method"],
            *(_mean_and_difference(row, bold, metal) for metal in METALS),
            f"{np.mean(list(row['inside'].values())):.0%}",
            f"{row['seconds'] / bold['seconds']:.2g}",
        ]
        for row in rows
        if row["problem"] == COORDINATES
    ]
    metals = (f"{metal} (mg/kg)" for metal in METALS)
    return markdown_table(["From coordinates", *metals, "95% coverage", "time (ratio)"], body)


def minus(ours: Row, theirs: Row, metal: str) -> PairedDifference:
    """Return the mean difference between absolute errors, paired by site."""
    return paired_difference(*(np.array(row["errors"][metal]) for row in (ours, theirs)))


def _mean_and_difference(row: Row, bold: Row, metal: str) -> str:
    digits = 3 if metal == "Cd" else 2
    mean = f"{np.mean(row['errors'][metal]):.{digits}f}"
    if row is bold:
        return mean
    return f"{mean} ({format_difference(asdict(minus(row, bold, metal)), digits)})"


def _find(rows: Sequence[Row], problem: str, method: str) -> Row:
    return next(row for row in rows if (row["problem"], row["method"]) == (problem, method))


if __name__ == "__main__":
    main()
