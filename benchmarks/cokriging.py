"""Jura's metals by gstat's kriging and co-kriging (R) and by emgpr: same readings, same questions.

`python -m benchmarks.cokriging` runs both on one core, in turn, and keeps the errors of every site
in results/gstat.json; `--docs` writes the tables of docs/geostatistics.md from that file alone.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.run import ONE_THREAD, RESULTS, last_core, machine, say
from benchmarks.scores import NORMAL_95
from benchmarks.table import DOCS, between_markers
from emgpr import EMGPR, IndependentGP
from emgpr.datasets import jura_table
from emgpr.experiments.text import NOTHING, aligned, figure
from emgpr.metrics import PairedDifference, paired_difference

Row = dict[str, Any]
Run = dict[str, Any]

SCRIPT = Path(__file__).with_suffix(".R")
STORED = RESULTS / "gstat.json"
PAGE = DOCS / "geostatistics.md"
METALS = ("Cd", "Ni", "Zn")

# How outputs are asked for: cadmium from its own readings; from nickel and zinc at the place, too;
# all three from coordinates.
ALONE, KNOWN, COORDINATES = "alone", "known", "coordinates"
OURS: dict[str, dict[str, Callable[[], Any]]] = {
    ALONE: {"IndependentGP": lambda: IndependentGP("auto", transform="log", random_state=0)},
    KNOWN: {
        "EMGPR.paper": lambda: EMGPR.paper(transform="log", random_state=0),
        "EMGPR": lambda: EMGPR(random_state=0),
    },
    COORDINATES: {
        "IndependentGP": lambda: IndependentGP("auto", transform="log", random_state=0),
        "EMGPR.paper": lambda: EMGPR.paper(transform="log", random_state=0),
        "EMGPR": lambda: EMGPR(random_state=0),
    },
}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cokriging", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="of which times are the median")
    parser.add_argument("--docs", action="store_true", help="only write the page from what is kept")
    args = parser.parse_args()
    if not args.docs:
        STORED.write_text(json.dumps(measured(args.repeats), indent=1, allow_nan=False) + "\n")
        say(f"written: {os.path.relpath(STORED)}")
    made = tables(json.loads(STORED.read_text()))
    print(made)
    if args.docs:
        PAGE.write_text(between_markers(PAGE.read_text(encoding="utf-8"), made, "cokriging"))


def measured(repeats: int) -> Run:
    """Every method once a repeat, gstat's and ours in turn: the first answer, all the times."""
    versions = gstat_versions()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {last_core()})  # R's process inherits it
    found: dict[tuple[str, str], Row] = {}
    for repeat in range(repeats):
        for row in (*by_gstat(), *by_emgpr()):
            kept = found.setdefault((row["problem"], row["method"]), row | {"seconds": []})
            kept["seconds"].append(row["seconds"])
        say(f"round {repeat + 1} of {repeats}")
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H%MZ")
    return {"date": stamp, "machine": machine() | versions, "rows": list(found.values())}


def gstat_versions() -> dict[str, str]:
    """Of R and gstat, or an explanation of what is missing."""
    if which("Rscript") is None:
        raise SystemExit("R is not installed (no Rscript); with Debian: apt install r-cran-gstat")
    ask = "cat(as.character(getRversion()), as.character(packageVersion('gstat')))"
    done = subprocess.run(["Rscript", "-e", ask], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit("R has no gstat; with Debian: apt install r-cran-gstat")
    r, gstat = done.stdout.split()
    return {"r": r, "gstat": gstat}


def by_gstat() -> Iterator[Row]:
    """The answers of cokriging.R."""
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
        of = groups[problem, structure, nmax]
        metals = list(METALS if problem == COORDINATES else METALS[:1])
        mean, variance = (
            of.pivot_table(index="site", columns="metal", values=name)[metals].to_numpy()
            for name in ("mean", "variance")
        )
        half = NORMAL_95 * np.sqrt(variance)
        values = np.exp([mean, mean - half, mean + half])
        near = "" if np.isinf(nmax) else f", nmax = {nmax:.0f}"
        row = _row(problem, f"gstat, {structure}{near}", cost["seconds"], metals, values)
        if not np.isnan(cost["training_error"]):
            row["training"] = {key: cost[f"training_{key}"] for key in ("error", "seconds")}
        yield row


def by_emgpr() -> Iterator[Row]:
    """The same questions to our estimators."""
    for problem, models in OURS.items():
        withheld = "Cd" if problem == KNOWN else "all"
        jura = jura_table(METALS[:1] if problem == ALONE else METALS, withheld=withheld)
        rows = slice(None) if problem == KNOWN else ~jura.test
        asked = METALS if problem == COORDINATES else METALS[:1]
        for name, model in models.items():
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of kernels at a bound; the errors tell
                fitted = model().fit(jura.X[rows], jura.Y[rows])
            values = fitted.predict_quantiles(jura.X[jura.test], [0.5, 0.025, 0.975])
            spent = time.process_time() - start
            yield _row(problem, f"emgpr, {name}", spent, asked, values[..., : len(asked)])


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
    """What the page shows, from stored rows alone."""
    of = run["machine"]
    rows = [row | {"seconds": median(row["seconds"])} for row in run["rows"]]
    chosen = best_on_training_sites(rows)
    title = (
        f"One core of {of['cores']}, {of['cpu']}, {of['system']}; R {of['r']}, gstat "
        f"{of['gstat']}, Python {of['python']}; {run['date'][:10]}."
    )
    choosing = sum(row["training"]["seconds"] for row in rows if "training" in row)
    share = choosing / _one(rows, KNOWN, chosen)["seconds"]
    note = (
        f"Choosing gstat's structure by ten folds took {share:.0f} times as long as its bold row."
    )
    return "\n\n".join([title, _cadmium(rows, chosen), note, _all_metals(rows, chosen)])


def best_on_training_sites(rows: Sequence[Row]) -> str:
    """The co-kriging that left the smallest error when training sites were left out."""
    tried = [row for row in rows if "training" in row]
    return str(min(tried, key=lambda row: row["training"]["error"])["method"])


def _cadmium(rows: Sequence[Row], chosen: str) -> str:
    mine = _one(rows, KNOWN, chosen)
    body = []
    for problem in (ALONE, KNOWN):
        for row in (row for row in rows if row["problem"] == problem):
            errors = np.array(row["errors"]["Cd"])
            error = errors.std(ddof=1) / np.sqrt(len(errors))
            name = row["method"] + (", Cd alone" if problem == ALONE else "")
            training = row.get("training", {}).get("error")
            body.append(
                [
                    f"**{name}**" if row is mine else name,
                    figure(training, ".3f"),
                    f"{errors.mean():.3f} ± {error:.3f}",
                    NOTHING if row is mine else _signed(minus(row, mine, "Cd")),
                    f"{row['inside']['Cd']:.0%}",
                    f"{row['seconds'] / mine['seconds']:.2g}",
                ]
            )
    header = ["Cadmium", "folds", "MAE (mg/kg)", "minus bold", "95% holds", "time ÷"]
    return aligned(header, body)


def _all_metals(rows: Sequence[Row], chosen: str) -> str:
    mine = _one(rows, COORDINATES, chosen)
    body = [
        [
            f"**{row['method']}**" if row is mine else row["method"],
            *(_mean_and_difference(row, mine, metal) for metal in METALS),
            f"{np.mean(list(row['inside'].values())):.0%}",
            f"{row['seconds'] / mine['seconds']:.2g}",
        ]
        for row in rows
        if row["problem"] == COORDINATES
    ]
    header = ["From coordinates", *(f"{metal} (mg/kg)" for metal in METALS), "95% holds", "time ÷"]
    return aligned(header, body)


def minus(ours: Row, theirs: Row, metal: str) -> PairedDifference:
    """Difference of the absolute errors, paired over the sites."""
    return paired_difference(*(np.array(row["errors"][metal]) for row in (ours, theirs)))


def _mean_and_difference(row: Row, mine: Row, metal: str) -> str:
    digits = 3 if metal == "Cd" else 2
    mean = f"{np.mean(row['errors'][metal]):.{digits}f}"
    return mean if row is mine else f"{mean} ({_signed(minus(row, mine, metal), digits)})"


def _signed(pair: PairedDifference, digits: int = 3) -> str:
    return f"{pair.mean:+.{digits}f} ± {pair.standard_error:.{digits}f}"


def _one(rows: Sequence[Row], problem: str, method: str) -> Row:
    return next(row for row in rows if (row["problem"], row["method"]) == (problem, method))


if __name__ == "__main__":
    main()
