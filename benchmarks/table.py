"""Tables and a plot from stored rows alone: no fitting, no randomness, no clock.

Every problem is shown from the newest run that has it, so ratios never mix runs.
`python -m benchmarks.table` writes them between the markers of docs/benchmarks.md.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.data import PROBLEMS
from benchmarks.environments import BENCH
from benchmarks.plot import draw
from benchmarks.run import RESULTS, YARDSTICK
from emgpr.experiments.rows import by_method
from emgpr.experiments.text import NOTHING, aligned, figure

Run = dict[str, Any]
Row = dict[str, Any]
Entry = dict[str, Any]

DOCS = Path(__file__).parents[1] / "docs"
END = "<!-- end -->"
SIMULATED = "simulated-"
TITLES = {
    "jura": "Jura: cadmium at 100 of 359 sites, nickel and zinc known there",
    "amsua": "AMSU-A: six channels at 315 sites, from 315 others",
    "atms": "ATMS: ten channels at 200 sites, from 800 others",
    "simulated-500x3": "Simulated, 500 sites × 3 outputs",
    "simulated-800x10": "Simulated, 800 sites × 10 outputs",
}
COSTS = ("fit_s", "predict_s", "fit_mib")
SCORES = ("error", "nlpd", "coverage")


def main() -> None:
    """Tables to stdout, and with --docs to the page and its figure too."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="stored runs; all of them if none")
    parser.add_argument("--docs", action="store_true", help="also write docs/benchmarks.md")
    parser.add_argument("--quick", action="store_true", help="only the newest quick look")
    args = parser.parse_args()
    quick = sorted(BENCH.glob("*-cpu.json"))[-1:]
    files = args.files or (quick if args.quick else sorted(RESULTS.glob("*-cpu.json")))
    runs = [json.loads(file.read_text()) for file in files]
    if not runs:
        raise SystemExit("no runs are stored: python -m benchmarks.run")
    made = page(runs)
    print(made)
    if args.docs:
        document = DOCS / "benchmarks.md"
        document.write_text(between_markers(document.read_text(encoding="utf-8"), made))
        draw({name: entries(rows) for name, (_, rows) in newest(runs).items()}, DOCS / "images")


def newest(runs: Sequence[Run]) -> dict[str, tuple[Run, list[Row]]]:
    """Each problem, in order, with the newest run that has it and its rows there."""
    found: dict[str, tuple[Run, list[Row]]] = {}
    for run in sorted(runs, key=lambda run: run["date"]):
        for name in PROBLEMS:
            if rows := [row for row in run.get("rows", ()) if row["problem"] == name]:
                found[name] = run, rows
    return {name: found[name] for name in PROBLEMS if name in found}


def entries(rows: Sequence[Row]) -> list[Entry]:
    """An entry a method: medians over its repeats, and ratios to the yardstick's."""
    made = [_entry(name, group) for name, group in by_method(rows).items()]
    yardstick = next((e for e in made if e["method"] == YARDSTICK and e["status"] == "ok"), None)
    for entry in made:
        for cost in COSTS:
            compared = yardstick is not None and entry["status"] == "ok"
            entry["ratio_" + cost] = entry[cost] / yardstick[cost] if compared else None  # type: ignore[index]
    return made


def page(runs: Sequence[Run]) -> str:
    """Everything between the markers."""
    found = newest(runs)
    parts = []
    for name, title in TITLES.items():
        if name in found:
            run, rows = found[name]
            parts += [f"### {title}", _measured_on(run), text(entries(rows))]
    sizes = {name: entries(rows) for name, (_, rows) in found.items() if name.startswith(SIMULATED)}
    if sizes:
        parts += ["### Growth with N and D (simulated): training ÷ independent GPs"]
        parts += [_measured_on(found[next(iter(sizes))][0]), growth_text(sizes)]
    if measured := [run for run in runs if "inner" in run]:
        run = max(measured, key=lambda run: run["date"])
        parts += ["### Inside emgpr", _measured_on(run), inner_text(run["inner"])]
    return "\n\n".join(parts)


def text(made: Sequence[Entry]) -> str:
    """The entries as Markdown, and under them why some are empty."""
    header = [
        "Method", "training ÷", "training (s)", "prediction ÷", "memory (MiB)",
        made[0]["error_is"], "minus independent", "NLPD", "95% holds", "fits",
    ]  # fmt: skip
    notes = [f"{entry['method']}: {entry['status']}" for entry in made if ": " in entry["status"]]
    return "\n\n".join([aligned(header, [_cells(entry) for entry in made]), *notes])


def growth_text(sizes: dict[str, list[Entry]]) -> str:
    """Training time of every size in multiples of the yardstick's, which is in seconds."""
    methods = dict.fromkeys(entry["method"] for made in sizes.values() for entry in made)
    tables = [{entry["method"]: entry for entry in made} for made in sizes.values()]
    body = [[method, *(_growth_cell(table.get(method)) for table in tables)] for method in methods]
    return aligned(["N × D", *(name.removeprefix(SIMULATED) for name in sizes)], body)


def inner_text(inner: dict[str, dict[str, Any]]) -> str:
    """The inner measurements, a line a number; words under the table."""
    said = [(f"{name}: {_words(key)}", v) for name, own in inner.items() for key, v in own.items()]
    body = [[what, f"{value:.3g}"] for what, value in said if not isinstance(value, str)]
    notes = [f"- {what}: {value}" for what, value in said if isinstance(value, str)]
    return aligned(["What", "measured"], body) + "\n\n" + "\n".join(notes)


def between_markers(document: str, made: str, by: str = "table") -> str:
    """The document with what is between its markers replaced.

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
    return f"{before}{start}\n\n{made}\n\n{END}{after}"


def _entry(method: str, rows: Sequence[Row]) -> Entry:
    """Medians of costs and scores; one repeat that failed is a method that failed."""
    failed = next((row["status"] for row in rows if row["status"] != "ok"), None)
    entry = {"method": method, "error_is": rows[0]["error_is"], "fits": len(rows)}
    if failed is not None:
        return entry | {"status": failed} | dict.fromkeys((*COSTS, *SCORES, "minus"))
    entry |= {cost: median(row[cost] for row in rows) for cost in COSTS}
    entry |= {score: _middle([row[score] for row in rows]) for score in SCORES}
    differences = [row["minus_yardstick"]["error"] for row in rows if "minus_yardstick" in row]
    return entry | {"status": "ok", "minus": _middle(differences) if differences else None}


def _middle(pairs: Sequence[Sequence[float]]) -> list[float]:
    """The medians of means and of their standard errors."""
    return [median(values) for values in zip(*pairs, strict=True)]


def _cells(entry: Entry) -> list[str]:
    ok = entry["status"] == "ok"
    return [
        entry["method"],
        figure(entry["ratio_fit_s"], ".2f") if ok else _short(entry["status"]),
        figure(entry["fit_s"], ".3g"),
        figure(entry["ratio_predict_s"], ".1f"),
        figure(entry["fit_mib"], ".0f"),
        _with_error(entry["error"], ".4f", ".4f"),
        NOTHING if entry["method"] == YARDSTICK else _with_error(entry["minus"], "+.4f", ".4f"),
        _with_error(entry["nlpd"], ".3f", ".3f"),
        f"{entry['coverage'][0]:.1%}" if ok else NOTHING,
        str(entry["fits"]) if ok else NOTHING,
    ]


def _with_error(pair: Sequence[float] | None, form: str, error: str) -> str:
    return NOTHING if pair is None else f"{pair[0]:{form}} ± {pair[1]:{error}}"


def _growth_cell(entry: Entry | None) -> str:
    if entry is None:
        return NOTHING
    if entry["status"] != "ok":
        return _short(entry["status"])
    if entry["method"] == YARDSTICK:
        return f"{entry['fit_s']:.3g} s"
    return figure(entry["ratio_fit_s"], ".2f")


def _short(status: str) -> str:
    """What happened, without where and why.

    >>> _short("over the limit at 600 readings"), _short("failed: ValueError: no luck")
    ('over the limit', 'failed')
    """
    return status.split(":")[0].split(" at ")[0]


def _words(key: str) -> str:
    return key.replace("_", " ").replace("gaussian process", "gaussian_process")


def _measured_on(run: Run) -> str:
    on = run["machine"]
    return (
        f"One core of {on['cores']}, {on['cpu']}, {on['system']}, Python {on['python']}, "
        f"NumPy {on['numpy']}; {run['date'][:10]}; limit {run['limit_s']:.0f} s a fit."
    )


if __name__ == "__main__":
    main()
