"""Tables and a figure, computed from stored rows.

The results for a problem come from the newest run that contains it, so that ratios never mix runs.
`python -m benchmarks.table --docs` writes the tables between the markers of docs/benchmarks.md.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.data import OFFSETS, PROBLEMS
from benchmarks.environments import BENCH
from benchmarks.plot import draw
from benchmarks.run import REFERENCE, RESULTS
from emgpr.experiments.rows import group_rows
from emgpr.experiments.tables import NO_VALUE, format_number, markdown_table

Run = dict[str, Any]
Row = dict[str, Any]
Entry = dict[str, Any]

DOCS = Path(__file__).parents[1] / "docs"
END = "<!-- end -->"
SIMULATED = "simulated-"
TITLES = {
    "jura": "Jura: cadmium at 100 of 359 sites, nickel and zinc known there",
    "amsua": "AMSU-A: six channels at 315 sites, from 315 others",
    "amsua-all": "AMSU-A: fourteen channels at 126 sites, from 504 others",
    "atms": "ATMS: ten channels at 200 sites, from 800 others",
    **{
        f"heaton-{i}": f"Land-surface temperature, gaps shifted by {a} × {b} cells"
        for i, (a, b) in enumerate(OFFSETS, start=1)
    },
    "simulated-500x3": "Simulated, 500 sites × 3 outputs",
    "simulated-800x10": "Simulated, 800 sites × 10 outputs",
}
COSTS = ("fit_s", "predict_s", "fit_mib")
SCORES = ("error", "nlpd", "crps", "coverage")
# Present names of measurements and modules that have other names in stored files.
RENAMED = {
    "span against dense": "low-rank against dense likelihood",
    "columns of the span": "columns of the low-rank factor",
    "span s": "low-rank s",
    "predictions by either": "predictions after low-rank and dense fits",
    "of the default's stop (rms)": "with the default stopping rule (rms)",
    "100,000 places": "predictions at 100,000 locations",
    "arrays.lapack": "arrays.factorisation",
    "covariance.dense": "covariance.lmc",
}


def main() -> None:
    """Print the tables and, with --docs, write them and the figure to the documentation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="stored runs (default: all)")
    parser.add_argument("--docs", action="store_true", help="also write docs/benchmarks.md")
    parser.add_argument("--quick", action="store_true", help="use only the newest quick run")
    args = parser.parse_args()
    quick = sorted(BENCH.glob("*-cpu.json"))[-1:]
    files = args.files or (quick if args.quick else sorted(RESULTS.glob("*-cpu.json")))
    runs = [json.loads(file.read_text()) for file in files]
    if not runs:
        raise SystemExit("No runs are stored; run python -m benchmarks.run first.")
    tables = page(runs)
    print(tables)
    if args.docs:
        document = DOCS / "benchmarks.md"
        document.write_text(between_markers(document.read_text(encoding="utf-8"), tables))
        draw({name: entries(rows) for name, (_, rows) in newest(runs).items()}, DOCS / "images")


def newest(runs: Sequence[Run]) -> dict[str, tuple[Run, list[Row]]]:
    """Return, for each problem, the newest run that contains it and its rows in that run."""
    latest: dict[str, tuple[Run, list[Row]]] = {}
    for run in sorted(runs, key=lambda run: run["date"]):
        for name in PROBLEMS:
            if rows := [row for row in run.get("rows", ()) if row["problem"] == name]:
                latest[name] = run, rows
    return {name: latest[name] for name in PROBLEMS if name in latest}


def entries(rows: Sequence[Row]) -> list[Entry]:
    """Return an entry for each method: medians over repeats, and ratios to the reference."""
    result = [_entry(name, group) for name, group in group_rows(rows).items()]
    reference = next((e for e in result if e["method"] == REFERENCE and e["status"] == "ok"), None)
    for entry in result:
        for cost in COSTS:
            compared = reference is not None and entry["status"] == "ok"
            entry["ratio_" + cost] = entry[cost] / reference[cost] if compared else None  # type: ignore[index]
    return result


def page(runs: Sequence[Run]) -> str:
    """Return all tables, which are written between the markers of the page."""
    found = newest(runs)
    parts = []
    for name, title in TITLES.items():
        if name in found:
            run, rows = found[name]
            table = large_text if name.startswith("heaton") else text
            parts += [f"### {title}", _measured_on(run), table(entries(rows))]
    sizes = {name: entries(rows) for name, (_, rows) in found.items() if name.startswith(SIMULATED)}
    if sizes:
        parts += ["### Growth with N and D (simulated): training time relative to independent GPs"]
        parts += [_measured_on(found[next(iter(sizes))][0]), growth_text(sizes)]
    if measured := [run for run in runs if "inner" in run]:
        run = max(measured, key=lambda run: run["date"])
        parts += ["### Inside emgpr", _measured_on(run), inner_text(run["inner"])]
    return "\n\n".join(parts)


def text(found: Sequence[Entry]) -> str:
    """Return the entries as Markdown, followed by the reasons for failures."""
    header = [
        "Method", "training (ratio)", "training (s)", "prediction (ratio)", "memory (MiB)",
        found[0]["error_is"], "minus independent", "NLPD", "95% coverage", "fits",
    ]  # fmt: skip
    notes = [f"{entry['method']}: {entry['status']}" for entry in found if ": " in entry["status"]]
    return "\n\n".join([markdown_table(header, [_cells(entry) for entry in found]), *notes])


def large_text(found: Sequence[Entry]) -> str:
    """Return the entries of a problem that is too large for the reference method, as Markdown."""
    header = [
        "Method", "training (s)", "prediction (s)", "memory (MiB)", "RMSE", "CRPS", "NLPD",
        "95% coverage", "fits",
    ]  # fmt: skip
    body = []
    for entry in found:
        if entry["status"] != "ok":
            body.append([entry["method"], _short(entry["status"]), *[NO_VALUE] * 7])
            continue
        costs = [format_number(entry[cost], ".3g") for cost in COSTS]
        scores = [f"{np.sqrt(entry['error'][0]):.4f}", f"{entry['crps'][0]:.4f}"]
        scores += [f"{entry['nlpd'][0]:.3f}", f"{entry['coverage'][0]:.1%}"]
        body.append([entry["method"], *costs, *scores, str(entry["fits"])])
    notes = [f"{entry['method']}: {entry['status']}" for entry in found if ": " in entry["status"]]
    return "\n\n".join([markdown_table(header, body), *notes])


def growth_text(sizes: dict[str, list[Entry]]) -> str:
    """Return a table of training times: seconds for the reference, and ratios for the others."""
    methods = dict.fromkeys(entry["method"] for found in sizes.values() for entry in found)
    tables = [{entry["method"]: entry for entry in found} for found in sizes.values()]
    body = [[method, *(_growth_cell(table.get(method)) for table in tables)] for method in methods]
    return markdown_table(["N × D", *(name.removeprefix(SIMULATED) for name in sizes)], body)


def inner_text(inner: dict[str, dict[str, Any]]) -> str:
    """Return the results of `inner`: a table of the numbers, followed by a list of the texts."""
    results = [
        (_renamed(f"{name}: {_words(key)}"), value)
        for name, measurements in inner.items()
        for key, value in measurements.items()
    ]
    body = [[name, f"{value:.3g}"] for name, value in results if not isinstance(value, str)]
    notes = [f"- {name}: {_renamed(value)}" for name, value in results if isinstance(value, str)]
    return markdown_table(["Measurement", "value"], body) + "\n\n" + "\n".join(notes)


def between_markers(document: str, text: str, by: str = "table") -> str:
    """Replace the text between the markers of a document.

    >>> print(between_markers("a <!-- made by benchmarks/table.py --> old <!-- end --> b", "new"))
    a <!-- made by benchmarks/table.py -->
    <BLANKLINE>
    new
    <BLANKLINE>
    <!-- end --> b
    """
    start = f"<!-- made by benchmarks/{by}.py -->"
    before, rest = document.split(start)
    _, after = rest.split(END)
    return f"{before}{start}\n\n{text}\n\n{END}{after}"


def _entry(method: str, rows: Sequence[Row]) -> Entry:
    """Return medians of costs and scores. A method has failed if any of its repeats failed."""
    failed = next((row["status"] for row in rows if row["status"] != "ok"), None)
    entry = {"method": method, "error_is": rows[0]["error_is"], "fits": len(rows)}
    if failed is not None:
        return entry | {"status": failed} | dict.fromkeys((*COSTS, *SCORES, "minus"))
    entry |= {cost: median(row[cost] for row in rows) for cost in COSTS}
    known = [score for score in SCORES if score in rows[0]]  # older runs have no CRPS
    entry |= {score: _medians([row[score] for row in rows]) for score in known}
    differences = [row["minus_yardstick"]["error"] for row in rows if "minus_yardstick" in row]
    return entry | {"status": "ok", "minus": _medians(differences) if differences else None}


def _medians(pairs: Sequence[Sequence[float]]) -> list[float]:
    """Return the medians of the means and of their standard errors."""
    return [median(values) for values in zip(*pairs, strict=True)]


def _cells(entry: Entry) -> list[str]:
    ok = entry["status"] == "ok"
    return [
        entry["method"],
        format_number(entry["ratio_fit_s"], ".2f") if ok else _short(entry["status"]),
        format_number(entry["fit_s"], ".3g"),
        format_number(entry["ratio_predict_s"], ".1f"),
        format_number(entry["fit_mib"], ".0f"),
        _with_error(entry["error"], ".4f", ".4f"),
        NO_VALUE if entry["method"] == REFERENCE else _with_error(entry["minus"], "+.4f", ".4f"),
        _with_error(entry["nlpd"], ".3f", ".3f"),
        f"{entry['coverage'][0]:.1%}" if ok else NO_VALUE,
        str(entry["fits"]) if ok else NO_VALUE,
    ]


def _with_error(pair: Sequence[float] | None, form: str, error: str) -> str:
    return NO_VALUE if pair is None else f"{pair[0]:{form}} ± {pair[1]:{error}}"


def _growth_cell(entry: Entry | None) -> str:
    if entry is None:
        return NO_VALUE
    if entry["status"] != "ok":
        return _short(entry["status"])
    if entry["method"] == REFERENCE:
        return f"{entry['fit_s']:.3g} s"
    return format_number(entry["ratio_fit_s"], ".2f")


def _short(status: str) -> str:
    """Return a status without its details.

    >>> _short("over the limit at 600 readings"), _short("failed: ValueError: singular")
    ('over the limit', 'failed')
    """
    return status.split(":")[0].split(" at ")[0]


def _words(key: str) -> str:
    return key.replace("_", " ").replace("gaussian process", "gaussian_process")


def _renamed(text: str) -> str:
    for old, new in RENAMED.items():
        text = text.replace(old, new)
    return text


def _measured_on(run: Run) -> str:
    on = run["machine"]
    return (
        f"One core of {on['cores']}, {on['cpu']}, {on['system']}, Python {on['python']}, "
        f"NumPy {on['numpy']}; {run['date'][:10]}; limit {run['limit_s']:.0f} s for each fit."
    )


if __name__ == "__main__":
    main()
