"""The tables of docs/large.md, computed from stored rows.

PYTHONPATH=src python -m benchmarks.large_table --docs
"""

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.large import FILE
from benchmarks.table import DOCS, between_markers
from emgpr.experiments.tables import NO_VALUE, format_number, markdown_table

Row = dict[str, Any]


def main() -> None:
    """Print the tables and, with --docs, write them to the documentation."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_table", description=__doc__)
    parser.add_argument("--docs", action="store_true", help="also write docs/large.md")
    args = parser.parse_args()
    tables = page(json.loads(FILE.read_text()))
    print(tables)
    if args.docs:
        document = DOCS / "large.md"
        text = between_markers(document.read_text(encoding="utf-8"), tables, "large_table")
        document.write_text(text)


def page(rows: Sequence[Row]) -> str:
    """Return all tables, which are written between the markers of the page."""
    parts = []
    for title, name, table in SECTIONS:
        selected = [row for row in rows if row["experiment"] == name]
        if selected:
            parts += [f"### {title}", table(selected)]
    return "\n\n".join(parts)


def costs(rows: Sequence[Row]) -> str:
    """Return a table of costs and errors, with one line for each size."""
    header = [
        "sites × outputs", "predicted", "fit (s)", "fit, CPU (s)", "predict (s)",
        "predict, CPU (s)", "GiB", "RMSE (ratio)", "signals (ratio)", "95% coverage",
    ]  # fmt: skip
    body = [
        [
            f"{row['N']:,} × {row['D']}" + (f", {row['device']}" if "device" in row else ""),
            f"{row['M']:,}",
            *(f"{row[key]:.0f}" for key in ("fit_s", "fit_cpu_s", "predict_s", "predict_cpu_s")),
            f"{row['peak_gib']:.1f}",
            f"{row['ratio_reading']:.3f}",
            f"{row['ratio_signal']:.3f}",
            _coverage(row),
        ]
        for row in sorted(rows, key=lambda row: (row["N"], "device" in row))
    ]
    return markdown_table(header, body)


def growth(rows: Sequence[Row]) -> str:
    """Return the costs and the growth of processor time from the smallest to the largest N."""
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
    growths = ", ".join(f"{what} {slope:.2f}" for what, slope in slopes.items())
    return f"{text}\n\nGrowth of processor time with N (slope of the logarithms): {growths}."


def members(rows: Sequence[Row]) -> str:
    """Return a table of errors by number of members and partition."""
    counts = sorted({row["n_members"] for row in rows})
    partitions = dict.fromkeys(row["partition"] for row in rows)
    by_key = {(row["partition"], row["n_members"]): row for row in rows}
    body = [
        [f"{name}: {what}", *(cell(by_key.get((name, n))) for n in counts)]
        for name in partitions
        for what, cell in {
            "RMSE (ratio)": lambda row: format_number(row and row["ratio_reading"], ".3f"),
            "signals (ratio)": lambda row: format_number(row and row["ratio_signal"], ".3f"),
            "95% coverage": lambda row: _coverage(row) if row else NO_VALUE,
            "fit, CPU (s)": lambda row: format_number(row and row["fit_cpu_s"], ".0f"),
        }.items()
    ]
    return markdown_table(["members", *map(str, counts)], body)


def partition(rows: Sequence[Row]) -> str:
    """Return a table of squared errors by partition, with a column for each random split."""
    seeds = sorted({row["seed"] for row in rows})
    partitions = dict.fromkeys(row["partition"] for row in rows)
    errors = {(row["partition"], row["seed"]): row["mse"] for row in rows}
    body = [
        [name, *(format_number(errors.get((name, seed)), ".4f") for seed in seeds)]
        for name in partitions
    ]
    return markdown_table(["AMSU-A, MSE", *(f"half {seed}" for seed in seeds)], body)


def learners(rows: Sequence[Row]) -> str:
    """Return a table of learners: their errors, and how far they are from the exact maximum."""
    data_sets = dict.fromkeys(row["data"] for row in rows)
    header = ["learner"]
    for data in data_sets:
        header += [f"{data}: objective", "likelihood", "error", "error (ratio)", "CPU (ratio)"]
    by_key = {(row["data"], row["learner"]): row for row in rows}
    body = []
    for learner in dict.fromkeys(row["learner"] for row in rows):
        line = [learner]
        for data in data_sets:
            row, best = by_key.get((data, learner)), by_key[data, "exact"]
            if row is None:
                line += [NO_VALUE] * 5
                continue
            line += [
                f"{row['own'] - best['own']:+.1f}",
                f"{row['likelihood'] - best['likelihood']:+.1f}",
                f"{row['error']:.4f}",
                f"{row['error'] / best['error']:.3f}",
                f"{row['step_1_s'] / best['step_1_s']:.1f}",
            ]
        body.append(line)
    return markdown_table(header, body)


def _coverage(row: Row) -> str:
    """Return the lowest and highest coverage over the outputs."""
    low, high = row["coverage"]
    return f"{low:.1%}" if low == high else f"{low:.1%}-{high:.1%}"


SECTIONS: list[tuple[str, str, Callable[[Sequence[Row]], str]]] = [
    ("Growth: three outputs, 100,000 locations predicted with standard deviations", "growth",
     growth),
    ("Ten outputs", "wide", costs),
    ("Members and partitions: 100,000 sites × 3 outputs, 3,000 predicted", "members", members),
    ("A real swath in four batches", "partition", partition),
    ("Learners of step 1", "learners", learners),
]  # fmt: skip


if __name__ == "__main__":
    main()
