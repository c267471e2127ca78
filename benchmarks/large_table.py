"""The tables of docs/large.md from stored rows alone: no fitting, no randomness, no clock.

PYTHONPATH=src python -m benchmarks.large_table --docs
"""

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.large import FILE
from benchmarks.table import DOCS, between_markers
from emgpr.experiments.text import NOTHING, aligned, figure

Row = dict[str, Any]


def main() -> None:
    """Tables to stdout, and with --docs to the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_table", description=__doc__)
    parser.add_argument("--docs", action="store_true", help="also write docs/large.md")
    args = parser.parse_args()
    made = page(json.loads(FILE.read_text()))
    print(made)
    if args.docs:
        document = DOCS / "large.md"
        document.write_text(between_markers(document.read_text(encoding="utf-8"), made))


def page(rows: Sequence[Row]) -> str:
    """Everything between the markers."""
    parts = []
    for title, name, table in SECTIONS:
        own = [row for row in rows if row["experiment"] == name]
        if own:
            parts += [f"### {title}", table(own)]
    return "\n\n".join(parts)


def costs(rows: Sequence[Row]) -> str:
    """What a fit and a prediction cost, and how near the truth they are; a line a size."""
    header = [
        "places × outputs", "predicted", "fit (s)", "its CPU (s)", "predict (s)", "its CPU (s)",
        "GiB", "RMSE ÷ truth's", "of signals", "95% holds",
    ]  # fmt: skip
    body = [
        [
            f"{row['N']:,} × {row['D']}" + (f", {row['device']}" if "device" in row else ""),
            f"{row['M']:,}",
            *(f"{row[key]:.0f}" for key in ("fit_s", "fit_cpu_s", "predict_s", "predict_cpu_s")),
            f"{row['peak_gib']:.1f}",
            f"{row['ratio_reading']:.3f}",
            f"{row['ratio_signal']:.3f}",
            held(row),
        ]
        for row in sorted(rows, key=lambda row: (row["N"], "device" in row))
    ]
    return aligned(header, body)


def growth(rows: Sequence[Row]) -> str:
    """The costs, and how processor time grows from the least N to the greatest."""
    text = costs(rows)
    ordered = sorted((row for row in rows if "device" not in row), key=lambda row: row["N"])
    first, last = ordered[0], ordered[-1]
    if first is last:
        return text
    span = np.log(last["N"] / first["N"])
    slopes = {
        what: np.log(sum(last[key] for key in keys) / sum(first[key] for key in keys)) / span
        for what, keys in {
            "fit and prediction": ("fit_cpu_s", "predict_cpu_s"),
            "fit": ("fit_cpu_s",),
        }.items()
    }
    told = ", ".join(f"{what} {slope:.2f}" for what, slope in slopes.items())
    return f"{text}\n\nGrowth of processor time with N (slope of the logarithms): {told}."


def members(rows: Sequence[Row]) -> str:
    """Errors against the number of members, for each way to deal."""
    counts = sorted({row["n_members"] for row in rows})
    ways = dict.fromkeys(row["partition"] for row in rows)
    found = {(row["partition"], row["n_members"]): row for row in rows}
    body = [
        [f"{way}: {what}", *(cell(found.get((way, n))) for n in counts)]
        for way in ways
        for what, cell in {
            "RMSE ÷ truth's": lambda row: figure(row and row["ratio_reading"], ".3f"),
            "of signals": lambda row: figure(row and row["ratio_signal"], ".3f"),
            "95% holds": lambda row: held(row) if row else NOTHING,
            "fit, CPU (s)": lambda row: figure(row and row["fit_cpu_s"], ".0f"),
        }.items()
    ]
    return aligned(["members", *map(str, counts)], body)


def partition(rows: Sequence[Row]) -> str:
    """Squared errors of each way to deal, a column a halving."""
    seeds = sorted({row["seed"] for row in rows})
    ways = dict.fromkeys(row["partition"] for row in rows)
    found = {(row["partition"], row["seed"]): row["mse"] for row in rows}
    body = [[way, *(figure(found.get((way, seed)), ".4f") for seed in seeds)] for way in ways]
    return aligned(["AMSU-A, MSE", *(f"half {seed}" for seed in seeds)], body)


def learners(rows: Sequence[Row]) -> str:
    """Each learner's logarithm and likelihood less the exact maximum, and the error after it."""
    datas = dict.fromkeys(row["data"] for row in rows)
    header = ["learner"]
    for data in datas:
        header += [f"{data}: its own", "likelihood", "error", "÷ exact", "CPU ÷"]
    found = {(row["data"], row["learner"]): row for row in rows}
    body = []
    for learner in dict.fromkeys(row["learner"] for row in rows):
        line = [learner]
        for data in datas:
            row, best = found.get((data, learner)), found[data, "exact"]
            if row is None:
                line += [NOTHING] * 5
                continue
            line += [
                f"{row['own'] - best['own']:+.1f}",
                f"{row['likelihood'] - best['likelihood']:+.1f}",
                f"{row['error']:.4f}",
                f"{row['error'] / best['error']:.3f}",
                f"{row['step_1_s'] / best['step_1_s']:.1f}",
            ]
        body.append(line)
    return aligned(header, body)


def held(row: Row) -> str:
    """The least and the most that intervals of an output hold."""
    low, high = row["coverage"]
    return f"{low:.1%}" if low == high else f"{low:.1%}-{high:.1%}"


SECTIONS: list[tuple[str, str, Callable[[Sequence[Row]], str]]] = [
    ("Growth: three outputs, 100,000 places predicted with their standard deviations", "growth",
     growth),
    ("Ten outputs", "wide", costs),
    ("Members and how sites are dealt: 100,000 places × 3, 3,000 predicted", "members", members),
    ("A real swath in four batches", "partition", partition),
    ("Learners of step 1", "learners", learners),
]  # fmt: skip


if __name__ == "__main__":
    main()
