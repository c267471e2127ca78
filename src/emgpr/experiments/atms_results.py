"""The ATMS tables, from stored rows alone: no fitting, no randomness, no clock."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from emgpr.experiments.atms import NO_TRANSFER
from emgpr.experiments.published import published
from emgpr.experiments.rows import Row, by_method, count_notes, spread
from emgpr.experiments.text import NOTHING, aligned, warned
from emgpr.metrics import paired_difference

Metric = Literal["mse", "mae"]
Entry = dict[str, Any]

OVERALL = "overall"


def summary(rows: Sequence[Row], metric: Metric) -> list[Entry]:
    """An entry for each method: its error by channel and overall, with SDs over experiments.

    `gain` is by how much the method's overall error is below no transfer's, in percent;
    `minus_no_transfer` the difference, paired over experiments. `printed` is the paper's column.
    """
    runs = by_method(rows)
    errors = {method: _by_experiment(own, metric) for method, own in runs.items()}
    entries = []
    for method, own in errors.items():
        difference = None
        shared = sorted(own.keys() & errors.get(NO_TRANSFER, {}).keys())
        if method != NO_TRANSFER and len(shared) > 1:
            ours = np.array([own[experiment][OVERALL] for experiment in shared])
            theirs = np.array([errors[NO_TRANSFER][e][OVERALL] for e in shared])
            difference = asdict(paired_difference(ours, theirs))
        entries.append(
            {
                "method": method,
                "metric": metric,
                "experiments": len(own),
                "folds": len(runs[method]),
                "error": _over_experiments(own, np.mean),
                "sd": _over_experiments(own, spread),
                "gain": None,
                "minus_no_transfer": difference,
                "seconds": float(np.median([row["seconds"] for row in runs[method]])),
                "printed": published()["atms"][metric].get(method),
                "notes": count_notes(runs[method]),
            }
        )
    base = next((e["error"][OVERALL] for e in entries if e["method"] == NO_TRANSFER), None)
    for entry in entries:
        if base is not None and entry["method"] != NO_TRANSFER:
            entry["gain"] = 100 * (1 - entry["error"][OVERALL] / base)
    return entries


def text(entries: Sequence[Entry]) -> str:
    """The table as Markdown: for each channel a line of ours and a line of the printed."""
    tasks = [task for task in entries[0]["error"] if task != OVERALL]
    lines = []
    for number, task in enumerate((*tasks, OVERALL)):
        lines.append([task, "ours", *(_cell(e["error"][task], e["sd"][task]) for e in entries)])
        lines.append(["", "printed", *(_printed(e["printed"], number, task) for e in entries)])
    lines.append(["gain on GP", "ours", *(_percent(e["gain"]) for e in entries)])
    lines.append(["", "printed", *(_percent(_printed_gain(e)) for e in entries)])
    lines.append(["minus GP", "± s.e.", *(_difference(e["minus_no_transfer"]) for e in entries)])
    lines.append(["training", "s", *(f"{e['seconds']:.1f}" for e in entries)])
    notes = [line for e in entries for line in warned(e["method"], e["notes"], e["folds"], "folds")]
    return "\n\n".join([aligned(["Task", "", *(e["method"] for e in entries)], lines), *notes])


def caption(metric: Metric, entries: Sequence[Entry]) -> str:
    """What the table shows, and how much of it there is."""
    name = {"mse": "Mean squared error", "mae": "Mean absolute error"}[metric]
    done = ", ".join(f"{e['method']} {e['folds']}" for e in entries)
    return (
        f"{name} on standardised channels, and in parentheses its standard deviation over "
        "experiments, each the mean of its folds. 'Gain on GP' is by how much the overall error is "
        "below that of no transfer. 'Minus GP' is the difference, paired over experiments, which "
        "share most sites: its standard error is of the draw, not of the swath. "
        "The paper used another granule (2014-06-01) and does not name its channels, so compare "
        f"gains, not errors. Folds done: {done}."
    )


def _by_experiment(rows: Sequence[Row], metric: Metric) -> dict[int, dict[str, float]]:
    """Each experiment's error by channel and overall: the mean of its folds."""
    folds: dict[int, list[dict[str, float]]] = {}
    for row in rows:
        folds.setdefault(row["experiment"], []).append(row[metric])
    answer = {}
    for experiment, errors in folds.items():
        tasks = {task: float(np.mean([fold[task] for fold in errors])) for task in errors[0]}
        answer[experiment] = tasks | {OVERALL: float(np.mean(list(tasks.values())))}
    return answer


def _over_experiments(
    errors: dict[int, dict[str, float]], statistic: Callable[[Sequence[float]], Any]
) -> dict[str, Any]:
    first, *_ = errors.values()
    values = {task: [error[task] for error in errors.values()] for task in first}
    return {task: statistic(numbers) for task, numbers in values.items()}


def _cell(error: float, sd: float | None) -> str:
    return f"{error:.5f}" + ("" if sd is None else f" ({sd:.1e})")


def _printed(column: Entry | None, number: int, task: str) -> str:
    if column is None or (task != OVERALL and number >= len(column["tasks"])):
        return NOTHING
    if task == OVERALL:
        return _cell(column["overall"], column["overall_sd"])
    return _cell(column["tasks"][number], column["task_sds"][number])


def _printed_gain(entry: Entry) -> float | None:
    """From the printed errors, as ours is from ours."""
    column = entry["printed"]
    if column is None or entry["method"] == NO_TRANSFER:
        return None
    base = published()["atms"][entry["metric"]][NO_TRANSFER]["overall"]
    return 100 * (1 - column["overall"] / base)


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.1f}%"


def _difference(difference: Entry | None) -> str:
    if difference is None:
        return NOTHING
    return "{mean:+.5f} ± {standard_error:.5f}".format(**difference)
