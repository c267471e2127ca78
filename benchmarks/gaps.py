"""Outputs withheld in long gaps, while other outputs are known there, filled by several methods.

- eeg: three electrodes in the last 100 of 256 samples of ten trials, four others known.
- air: two of four air-temperature sensors, each withheld for more than half a day.
- walks: 13 simulated random walks of 250 steps that share five processes; three of them are
  withheld in 60 successive steps each.
- jura: cadmium in the western third of the region, among the sites of the training data.
- sites: as jura, but predicted at half of the sites there, at which nothing is known (eight draws).
- amsua: each of 14 channels in a quarter of the swath; atms: each of ten channels likewise.

The first two are read from the folder that the environment variable EMGPR_GAPS names, and ATMS from
EMGPR_ATMS. SMSE is the mean squared error divided by the variance of the withheld values (for
`air`, by their mean square about the training mean), averaged over the withheld outputs.
`python -m benchmarks.gaps` writes the rows to benchmarks/results/gaps.json and prints a table;
`--table` prints the table of stored rows only.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.data import DataNotAvailable, Problem, atms_table
from benchmarks.environments import METHODS, Method, NotInstalled, methods, python_for
from benchmarks.run import RESULTS, last_core, log, run_fit
from emgpr.experiments.rows import group_rows
from emgpr.experiments.tables import markdown_table

Array = np.ndarray
Row = dict[str, Any]

STORED = RESULTS / "gaps.json"
NORMAL_95 = 1.959964
AIR_GAPS = {"cambermet": (10.2, 10.8), "chimet": (13.5, 14.2)}  # days
EEG_WITHHELD, N_EEG_LAST = ("FZ", "F1", "F2"), 100
N_WALKS, N_STEPS, N_SHARED, WALK_GAP = 13, 250, 5, 60
OURS = METHODS / "emgpr.py"
VARIANTS = {
    "emgpr, nothing set": {"preset": "nothing set"},
    "emgpr, joint model": {"preset": "nothing set", "transfer": "full"},
    "emgpr, own processes": {"preset": "nothing set", "transfer": "none"},
    "emgpr, ConditionalGP": {"preset": "ConditionalGP"},
}
PEERS = ("least squares", "GPAR")


class Case(NamedTuple):
    """A table with withheld readings, and the variances that squared errors are divided by."""

    name: str
    problem: Problem
    variance: Array  # (D,), NaN for outputs that are not withheld


def eeg() -> Iterator[Case]:
    """Return a case for each trial."""
    frame = pd.read_csv(_folder() / "eeg_trials.csv")
    for trial, rows in frame.groupby("trial"):
        Y = rows.drop(columns=["time_s", "trial"])
        withheld = np.zeros(Y.shape, bool)
        withheld[-N_EEG_LAST:, [Y.columns.get_loc(name) for name in EEG_WITHHELD]] = True
        yield _case(f"eeg {trial}", rows[["time_s"]].to_numpy(), Y.to_numpy(), withheld)


def air() -> Iterator[Case]:
    """Return the case of Nguyen & Bonilla (2014)."""
    frame = pd.read_csv(_folder() / "air_temperature.csv")
    day, Y = frame["day"], frame.drop(columns="day")
    withheld = np.zeros(Y.shape, bool)
    for name, (start, end) in AIR_GAPS.items():
        withheld[:, Y.columns.get_loc(name)] = day.between(start, end) & Y[name].notna()
    yield _case("air", frame[["day"]].to_numpy(), Y.to_numpy(), withheld, training_mean=True)


def walks(n_draws: int = 20) -> Iterator[Case]:
    """Return simulated random walks, such as exchange rates."""
    for seed in range(n_draws):
        rng = np.random.default_rng([seed, N_WALKS])
        shared = rng.normal(size=(N_STEPS, N_SHARED)).cumsum(axis=0)
        own = 0.3 * rng.normal(size=(N_STEPS, N_WALKS)).cumsum(axis=0)
        Y = shared @ rng.normal(size=(N_SHARED, N_WALKS)) + own
        Y += 0.1 * rng.normal(size=Y.shape)
        withheld = np.zeros(Y.shape, bool)
        for d, start in enumerate(rng.integers(20, N_STEPS - WALK_GAP - 20, size=3)):
            withheld[start : start + WALK_GAP, d] = True
        yield _case(f"walks {seed}", np.arange(N_STEPS, dtype=float)[:, None], Y, withheld)


def jura() -> Iterator[Case]:
    """Return the training part of Jura without cadmium in the western third of the sites."""
    yield _case("jura", *_jura_without_west())


def sites(n_draws: int = 8) -> Iterator[Case]:
    """Return cases in which nothing is known at half of the sites in the gap of `jura`."""
    X, Y, withheld = _jura_without_west()
    west = np.flatnonzero(withheld[:, 0])
    for seed in range(n_draws):
        some = np.random.default_rng(seed).permutation(west)[: len(west) // 2]
        removed = np.isin(np.arange(len(X)), some)
        yield _case(f"sites {seed}", X, Y, withheld, removed=removed)


def amsua() -> Iterator[Case]:
    """Return a case for each channel of the AMSU-A swath, withheld in a quarter of it."""
    from emgpr.datasets import load_amsua

    swath = load_amsua()
    Y = swath.Y.to_numpy()
    yield from _quarters("amsua", swath.X.to_numpy(), Y[:, ~np.isnan(Y).any(axis=0)])


def atms() -> Iterator[Case]:
    """Return a case for each of ten channels, withheld in a quarter of 500 sites of a granule."""
    X, Y = atms_table(500)
    yield from _quarters("atms", X, Y)


CASES: dict[str, Callable[[], Iterator[Case]]] = {
    "eeg": eeg,
    "air": air,
    "walks": walks,
    "jura": jura,
    "sites": sites,
    "amsua": amsua,
    "atms": atms,
}


def score(case: Case, mean: Array, low: Array, high: Array) -> Row:
    """Return the SMSE of each withheld output, and the share of readings in 95% intervals."""
    truth = case.problem.truth
    outputs = np.flatnonzero(~np.isnan(truth).all(axis=0))
    error = truth - mean
    smse = _mean(error**2) / case.variance
    inside = np.where(np.isnan(truth), np.nan, (low <= truth) & (truth <= high))
    return {
        "smse": smse[outputs].tolist(),
        "inside": _mean(inside)[outputs].tolist(),
    }


def run(groups: Sequence[str], chosen: Sequence[Method], args: argparse.Namespace) -> list[Row]:
    """Run every method on every case; failures are stored with their reason."""
    rows = []
    pythons = {}
    for method in chosen:
        try:
            pythons[method.name] = python_for(method, log)
        except NotInstalled as reason:
            log(f"{method.name} is left out, because it does not install: {reason}")
    for group in groups:
        try:
            cases = list(CASES[group]())[:: args.every]
        except DataNotAvailable as reason:
            log(f"{group} is left out: {reason}")
            continue
        for case in cases:
            for method in chosen:
                if method.name in pythons:
                    row = {"group": group, "case": case.name, "method": method.name}
                    rows.append(row | run_case(case, method, pythons[method.name], args))
                    log(json.dumps(rows[-1]))
    return rows


def run_case(case: Case, method: Method, python: Path, args: argparse.Namespace) -> Row:
    """Return the scores and the cost of one method on one case."""
    with tempfile.TemporaryDirectory() as folder:
        case.problem.save(Path(folder) / "data.npz")
        answer = run_fit(method, python, Path(folder), 0, args)
        if answer["status"] != "ok":
            return answer
        with np.load(Path(folder) / "answer.npz") as predicted:
            mean, half = predicted["mean"], NORMAL_95 * predicted["std"]
            # Methods without intervals of their own have normal distributions.
            has_intervals = "low" in predicted
            low = predicted["low"] if has_intervals else mean - half
            high = predicted["high"] if has_intervals else mean + half
            scores = score(case, mean, low, high)
    return {"status": "ok", "fit_s": answer["fit_s"], "predict_s": answer["predict_s"], **scores}


def table(rows: Sequence[Row]) -> str:
    """Return a Markdown table with a row for each group of cases and method."""
    body = []
    for group in dict.fromkeys(row["group"] for row in rows):
        found = group_rows([row for row in rows if row["group"] == group])
        for name, of_method in found.items():
            ok = [row for row in of_method if row["status"] == "ok"]
            if not ok:
                body.append([group, name, of_method[0]["status"], *[""] * 5])
                continue
            smse = np.array([np.mean(row["smse"]) for row in ok])
            inside = np.concatenate([row["inside"] for row in ok])
            seconds = np.median([row["fit_s"] + row["predict_s"] for row in ok])
            body.append(
                [
                    group, name, f"{smse.mean():.3f}", f"{np.median(smse):.3f}",
                    f"{smse.max():.2f}", f"{inside.mean():.2f}", f"{inside.min():.2f}",
                    f"{seconds:.1f}",
                ]
            )  # fmt: skip
    header = [
        "data", "method", "SMSE, mean", "median", "largest", "inside 95%", "least inside",
        "time (s)",
    ]  # fmt: skip
    return markdown_table(header, body)


def main() -> None:
    """Run the cases, store the rows and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gaps", description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--methods", nargs="*", default=[], help="parts of method names")
    parser.add_argument("--every", type=int, default=1, help="run only every n-th case")
    parser.add_argument("--limit", type=float, default=600.0, help="processor time of a fit")
    parser.add_argument("--core", type=int, default=last_core())
    parser.add_argument("--out", type=Path, default=STORED)
    parser.add_argument("--table", action="store_true", help="print the table of stored rows")
    args = parser.parse_args()
    stored: list[Row] = json.loads(args.out.read_text()) if args.out.exists() else []
    if not args.table:
        ours = [Method(name, OURS, settings, ("emgpr",)) for name, settings in VARIANTS.items()]
        peers = [method for method in methods() if method.name.startswith(PEERS)]
        chosen = [
            method
            for method in [*ours, *peers]
            if not args.methods or any(word in method.name for word in args.methods)
        ]
        rows = run(args.only, chosen, args)
        replaced = {(row["case"], row["method"]) for row in rows}
        stored = [row for row in stored if (row["case"], row["method"]) not in replaced] + rows
        args.out.write_text(json.dumps(stored, indent=1) + "\n")
    print(table(stored))


def _folder() -> Path:
    folder = Path(os.environ.get("EMGPR_GAPS", ""))
    if "EMGPR_GAPS" not in os.environ or not folder.is_dir():
        raise DataNotAvailable(
            "there are no data; set EMGPR_GAPS to the folder with eeg_trials.csv and "
            "air_temperature.csv"
        )
    return folder


def _jura_without_west() -> tuple[Array, Array, Array]:
    """Return the training part of Jura, and where cadmium is withheld."""
    from emgpr.datasets import load_jura

    data = load_jura()
    X = data.train[list(data.coordinates)].to_numpy()
    withheld = np.zeros((len(X), 3), bool)
    withheld[:, 0] = X[:, 0] <= np.quantile(X[:, 0], 1 / 3)
    return X, np.log(data.train[["Cd", "Ni", "Zn"]].to_numpy()), withheld


def _case(
    name: str,
    X: Array,
    Y: Array,
    withheld: Array,
    *,
    removed: Array | None = None,
    training_mean: bool = False,
) -> Case:
    """Withhold readings, and standardise with statistics of the others.

    The rows in `removed`, if any, are not in the training table, and only they are predicted.
    """
    rows = withheld.any(axis=1) if removed is None else removed
    kept = np.ones(len(X), bool) if removed is None else ~removed
    table = np.where(withheld, np.nan, Y)[kept]
    center, scale = np.nanmean(table, axis=0), np.nanstd(table, axis=0)
    truth = np.where(withheld, (Y - center) / scale, np.nan)[rows]
    with np.errstate(invalid="ignore"):
        about = np.zeros(len(scale)) if training_mean else _mean(truth)
        variance = _mean((truth - about) ** 2)
    return Case(name, Problem(X[kept], (table - center) / scale, X[rows], truth), variance)


def _mean(values: Array) -> Array:
    """Return the mean of the numbers in each column, NaN if there are none."""
    counts = (~np.isnan(values)).sum(axis=0)
    return np.nansum(values, axis=0) / np.where(counts, counts, np.nan)


def _quarters(name: str, X: Array, Y: Array) -> Iterator[Case]:
    """Withhold each output in one quarter of the sites, along the longer side, in turn."""
    along = X[:, int(np.argmax(np.ptp(X, axis=0)))]
    quarter = np.searchsorted(np.quantile(along, [0.25, 0.5, 0.75]), along)
    for d in range(Y.shape[1]):
        withheld = np.zeros(Y.shape, bool)
        withheld[quarter == d % 4, d] = True
        yield _case(f"{name} {d}", X, Y, withheld)


if __name__ == "__main__":
    main()
