"""Jura's table and figures, from stored rows alone: no fitting, no randomness, no clock."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from emgpr.experiments.jura import BASELINES, ENSEMBLE, METALS, NO_TRANSFER, REFERENCES, TABLE_1
from emgpr.experiments.published import published
from emgpr.experiments.rows import Row, by_method, count_notes, spread
from emgpr.experiments.text import NOTHING, aligned, figure, warned
from emgpr.metrics import paired_difference

Entry = dict[str, Any]

OVERALL = "overall"
COLUMNS = (
    "Approach", "MAE", "SD", "printed", "printed SD", "minus no transfer", "time", "printed time",
)  # fmt: skip
SHORT = ("Approach", "MAE", "printed", "minus no transfer")


def table_1(rows: Sequence[Row]) -> list[Entry]:
    """Ours beside the printed, an entry for each approach that was run or printed.

    `minus_no_transfer` is the mean over the 100 sites of the difference of absolute errors (each
    the mean over restarts) from the no-transfer model, with its standard error.
    """
    runs = by_method([row for row in rows if row["experiment"] == "cadmium"])
    printed = published()["jura"]
    named = (*BASELINES, *TABLE_1)
    order = [name for name in named if name in runs or name in printed]
    order += [name for name in runs if name not in named]
    order += [name for name in printed if name not in order]
    return [_entry(name, runs, printed.get(name)) for name in order]


def table_1_text(entries: Sequence[Entry], columns: Sequence[str] = COLUMNS) -> str:
    """Table 1 as Markdown, and under it what the fits warned of."""
    lines = [[_cells(entry)[column] for column in columns] for entry in entries]
    notes = [
        line
        for entry in entries
        for line in warned(entry["approach"], entry["notes"], entry["restarts"], "restarts")
    ]
    return "\n\n".join([aligned(columns, lines), *notes])


TABLE_1_CAPTION = (
    "Cadmium at Jura's 100 validation sites: mean absolute error in mg/kg, its mean and standard "
    "deviation over restarts, beside what the paper prints. 'Minus no transfer' is the difference "
    "of absolute errors from GP, paired over the sites, ± its standard error: less than two of "
    "these is no difference. Time is that of training, relative to GP in the same run (median of "
    "restarts). * is without logarithms; ML is maximum likelihood. VB is variational Bayes, which "
    "emgpr does not do: those, GPRN, CMOGP and co-kriging are as printed, and not run."
)


def batch_sizes(rows: Sequence[Row]) -> list[Entry]:
    """MAE and SD over restarts of every model, overall and by metal; then by batch size."""
    rows = [row for row in rows if row["experiment"] == "batch size"]
    alone = [row for row in rows if row["method"] != ENSEMBLE]
    entries = [_errors(method, None, runs) for method, runs in by_method(alone).items()]
    sizes = sorted({row["settings"]["batch_size"] for row in rows if row["method"] == ENSEMBLE})
    for size in sizes:
        runs = [
            row
            for row in rows
            if row["method"] == ENSEMBLE and row["settings"]["batch_size"] == size
        ]
        entries.append(_errors(ENSEMBLE, size, runs))
    return entries


def batch_sizes_text(entries: Sequence[Entry]) -> str:
    """The figures' numbers as Markdown."""
    parts = (OVERALL, *METALS)
    header = ["Approach", "N0", *parts, "SD (overall)", "standardised logs"]
    return aligned(
        header,
        [
            [
                entry["approach"],
                figure(entry["batch_size"], "d"),
                *(figure(entry["mae"][part], ".4f") for part in parts),
                figure(entry["sd"][OVERALL], ".1e"),
                figure(entry["mae_standardised_log"][OVERALL], ".4f"),
            ]
            for entry in entries
        ],
    )


BATCH_SIZES_CAPTION = (
    "All three metals at the 100 validation sites, from the other 259, against the size N0 of a "
    "mini-batch. Learned on standardised logarithms as in the paper, which does not say on which "
    "scale it measures errors: these are in mg/kg as in Table 1, 'overall' their mean over the "
    "metals, which zinc dominates; the last column is the overall MAE on standardised logarithms."
)


def draw(entries: Sequence[Entry], folder: Path) -> list[Path]:
    """The two figures, MAE and SD over restarts against batch size; where they were written."""
    from matplotlib.figure import Figure

    from emgpr.plots import error_against_batch_size

    ensemble = [entry for entry in entries if entry["approach"] == ENSEMBLE]
    sizes = np.array([entry["batch_size"] for entry in ensemble])
    names = {NO_TRANSFER: "no transfer", "EMGPR": "no ensemble", "ICM": "ICM, rank 2"}
    written = []
    for what, label in (("mae", "MAE (mg/kg)"), ("sd", "SD over restarts (mg/kg)")):
        if any(entry[what][OVERALL] is None for entry in entries):
            continue  # one restart has no spread to draw
        canvas = Figure(figsize=(9, 6.5), layout="constrained")
        for ax, part in zip(canvas.subplots(2, 2).flat, (OVERALL, *METALS), strict=True):
            references = {
                names[entry["approach"]]: entry[what][part]
                for entry in entries
                if entry["approach"] in REFERENCES
            }
            errors = np.array([entry[what][part] for entry in ensemble])
            error_against_batch_size(sizes, errors, references, log=what == "sd", ax=ax)
            ax.set(title="Overall" if part == OVERALL else part, ylabel=label)
        canvas.legend(
            *canvas.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=4
        )
        written.append(folder / f"batch-size-{what}.png")
        canvas.savefig(written[-1], dpi=150)
    return written


def _entry(name: str, runs: dict[str, list[Row]], printed: Entry | None) -> Entry:
    own = runs.get(name, [])
    maes = [row["mae"] for row in own]
    difference, time = None, None
    if own and name != NO_TRANSFER and NO_TRANSFER in runs:
        baseline = runs[NO_TRANSFER]
        difference = asdict(paired_difference(_site_errors(own), _site_errors(baseline)))
    if own and name not in BASELINES and NO_TRANSFER in runs:
        time = _median_seconds(own) / _median_seconds(runs[NO_TRANSFER])
    return {
        "approach": name,
        "restarts": len(own),
        "mae": float(np.mean(maes)) if maes else None,
        "sd": spread(maes),
        "minus_no_transfer": difference,
        "time": time,
        "printed": printed,
        "notes": count_notes(own),
    }


def _cells(entry: Entry) -> dict[str, str]:
    printed, difference = entry["printed"] or {}, entry["minus_no_transfer"]
    cells = [
        entry["approach"],
        figure(entry["mae"], ".4f"),
        figure(entry["sd"], ".1e"),
        figure(printed.get("mae"), ".4f").removesuffix("00"),  # co-kriging has two digits
        figure(printed.get("sd"), ".1e"),
        "{mean:+.3f} ± {standard_error:.3f}".format(**difference) if difference else NOTHING,
        figure(entry["time"], ".2f"),
        figure(printed.get("time"), ".2f"),
    ]
    return dict(zip(COLUMNS, cells, strict=True))


def _errors(approach: str, size: int | None, runs: Sequence[Row]) -> Entry:
    def over_restarts(key: str) -> dict[str, list[float]]:
        by_metal = {metal: [row[key][metal] for row in runs] for metal in METALS}
        return {OVERALL: np.mean(list(by_metal.values()), axis=0).tolist()} | by_metal

    maes, on_logs = over_restarts("mae"), over_restarts("mae_standardised_log")
    return {
        "approach": approach,
        "batch_size": size,
        "restarts": len(runs),
        "mae": {part: float(np.mean(values)) for part, values in maes.items()},
        "sd": {part: spread(values) for part, values in maes.items()},
        "mae_standardised_log": {part: float(np.mean(v)) for part, v in on_logs.items()},
    }


def _site_errors(rows: Sequence[Row]) -> np.ndarray:
    return np.mean([row["errors"] for row in rows], axis=0)


def _median_seconds(rows: Sequence[Row]) -> float:
    return float(np.median([row["seconds"] for row in rows]))
