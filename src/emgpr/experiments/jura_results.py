"""The Jura tables and figures, computed from the stored results."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from emgpr.experiments.jura import (
    BASELINES,
    ENSEMBLE,
    ENSEMBLE_RAW,
    METALS,
    NO_TRANSFER,
    NO_TRANSFER_RAW,
    PRINTED_AS,
    REFERENCES,
    TABLE_1,
    is_raw,
)
from emgpr.experiments.published import published
from emgpr.experiments.rows import Row, count_notes, group_rows, standard_deviation
from emgpr.experiments.tables import (
    format_difference,
    format_number,
    markdown_table,
    warning_lines,
)
from emgpr.metrics import paired_difference

Entry = dict[str, Any]

OVERALL = "overall"
COLUMNS = (
    "Approach", "MAE", "SD", "paper", "paper SD", "minus no transfer", "ensemble minus it", "time",
    "paper time",
)  # fmt: skip
SHORT = ("Approach", "MAE", "paper", "minus no transfer")

TABLE_1_CAPTION = (
    "Cadmium at the 100 validation sites of the Jura data: mean absolute error (MAE) in mg/kg "
    "and its standard deviation (SD) over restarts, next to the values published in the paper. "
    "An asterisk marks models fitted to concentrations instead of their logarithms. The paper's "
    "ICM, SLFM, CMOGP and co-kriging are next to models fitted to concentrations, although it "
    "prints them without an asterisk. 'Minus no transfer' is the mean difference between the "
    "absolute errors of a model and of GP on the same data, paired by site, ± its standard error, "
    "and 'ensemble minus it' is that between the paper's ensemble on the same data and the model. "
    "A difference of less than two standard errors is not significant. Time is the training time "
    "relative to that of GP in the same run (medians over restarts). ML stands for maximum "
    "likelihood and VB for variational Bayes. Approaches without an MAE were not run, so only "
    "their published values are shown."
)
BATCH_SIZES_CAPTION = (
    "Mean absolute errors for all three metals at the 100 validation sites, predicted from the "
    "other 259 sites with mini-batches of N0 sites. Models are fitted to standardised logarithms, "
    "as in the paper, which does not state the scale of its errors. Here, errors are in mg/kg, as "
    "in Table 1. 'Overall' is the mean over the metals; it is dominated by zinc. The last column "
    "is the overall MAE for standardised logarithms."
)


def table_1(rows: Sequence[Row]) -> list[Entry]:
    """Return a dict for each approach, with our results and the published results.

    `minus_no_transfer` is the difference in mean absolute error from the model without transfer
    that was fitted to the same data, concentrations or logarithms, paired by site, and its standard
    error. `ensemble_minus_it` is the difference of the paper's ensemble from the approach. Errors
    are first averaged over restarts.
    """
    runs = group_rows(row for row in rows if row["experiment"] == "cadmium")
    printed = published()["jura"]
    by_approach = {name: printed.get(PRINTED_AS.get(name, name)) for name in (*TABLE_1, *runs)}
    for name in PRINTED_AS.values():  # whose errors are next to another approach
        by_approach[name] = None
    by_approach |= {name: printed[name] for name in printed if name not in by_approach}
    ours = [name for name in (*BASELINES, *TABLE_1) if name in runs or by_approach.get(name)]
    order = dict.fromkeys([*ours, *runs, *(n for n, found in by_approach.items() if found)])
    return [_entry(name, runs, by_approach.get(name)) for name in order]


def table_1_text(entries: Sequence[Entry], columns: Sequence[str] = COLUMNS) -> str:
    """Return Table 1 as Markdown, followed by the warnings from the fits."""
    lines = [[_cells(entry)[column] for column in columns] for entry in entries]
    notes = warning_lines(entries, "approach", "restarts")
    return "\n\n".join([markdown_table(columns, lines), *notes])


def batch_sizes(rows: Sequence[Row]) -> list[Entry]:
    """Return a dict with MAE and SD for each reference model and for each batch size."""
    runs = group_rows(row for row in rows if row["experiment"] == "batch size")
    sizes = group_rows(runs.pop(ENSEMBLE, ()), lambda row: row["settings"]["batch_size"])
    return [
        *(_errors(method, None, results) for method, results in runs.items()),
        *(_errors(ENSEMBLE, size, sizes[size]) for size in sorted(sizes)),
    ]


def batch_sizes_text(entries: Sequence[Entry]) -> str:
    """Return the numbers shown in the figures as a Markdown table."""
    parts = (OVERALL, *METALS)
    lines = [
        [
            entry["approach"],
            format_number(entry["batch_size"], "d"),
            *(format_number(entry["mae"][part], ".4f") for part in parts),
            format_number(entry["sd"][OVERALL], ".1e"),
            format_number(entry["mae_standardised_log"][OVERALL], ".4f"),
        ]
        for entry in entries
    ]
    return markdown_table(["Approach", "N0", *parts, "SD (overall)", "standardised logs"], lines)


def draw(entries: Sequence[Entry], folder: Path) -> list[Path]:
    """Draw MAE and SD over restarts against batch size, and return the paths of the figures."""
    from matplotlib.figure import Figure

    from emgpr.plots import error_against_batch_size
    from emgpr.plots.save import save_figure

    ensemble = [entry for entry in entries if entry["approach"] == ENSEMBLE]
    sizes = np.array([entry["batch_size"] for entry in ensemble])
    names = {NO_TRANSFER: "no transfer", "EMGPR": "no ensemble", "ICM": "ICM, rank 2"}
    written = []
    for what, label in (("mae", "MAE (mg/kg)"), ("sd", "SD over restarts (mg/kg)")):
        if any(entry[what][OVERALL] is None for entry in entries):
            continue  # There is only one restart, so there is no standard deviation.
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
        save_figure(canvas, written[-1])
    return written


def _entry(name: str, runs: dict[str, list[Row]], printed: Entry | None) -> Entry:
    rows, alone = runs.get(name, []), runs.get(NO_TRANSFER)
    maes = [row["mae"] for row in rows]
    no_transfer = NO_TRANSFER_RAW if is_raw(name) else NO_TRANSFER
    ensemble = ENSEMBLE_RAW if is_raw(name) else ENSEMBLE
    time = None
    if rows and alone and name not in BASELINES:
        time = _median_seconds(rows) / _median_seconds(alone)
    return {
        "approach": name,
        "restarts": len(rows),
        "mae": float(np.mean(maes)) if maes else None,
        "sd": standard_deviation(maes),
        "minus_no_transfer": _difference(name, no_transfer, runs),
        "ensemble_minus_it": _difference(ensemble, name, runs),
        "time": time,
        "printed": printed,
        "notes": count_notes(rows),
    }


def _difference(first: str, second: str, runs: dict[str, list[Row]]) -> dict[str, float] | None:
    """Return the difference of two approaches paired by site, or None if one was not run."""
    if first == second or not (first in runs and second in runs):
        return None
    return asdict(paired_difference(*(_site_errors(runs[name]) for name in (first, second))))


def _cells(entry: Entry) -> dict[str, str]:
    printed = entry["printed"] or {}
    cells = [
        entry["approach"],
        format_number(entry["mae"], ".4f"),
        format_number(entry["sd"], ".1e"),
        # For co-kriging, the paper gives only two decimals.
        format_number(printed.get("mae"), ".4f").removesuffix("00"),
        format_number(printed.get("sd"), ".1e"),
        format_difference(entry["minus_no_transfer"]),
        format_difference(entry["ensemble_minus_it"]),
        format_number(entry["time"], ".2f"),
        format_number(printed.get("time"), ".2f"),
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
        "sd": {part: standard_deviation(values) for part, values in maes.items()},
        "mae_standardised_log": {part: float(np.mean(v)) for part, v in on_logs.items()},
    }


def _site_errors(rows: Sequence[Row]) -> np.ndarray:
    return np.mean([row["errors"] for row in rows], axis=0)


def _median_seconds(rows: Sequence[Row]) -> float:
    return float(np.median([row["seconds"] for row in rows]))
