"""The ATMS tables, computed from the stored results."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from operator import itemgetter
from typing import Any, Literal

import numpy as np

from emgpr.experiments.atms import NO_TRANSFER
from emgpr.experiments.published import published
from emgpr.experiments.rows import Row, count_notes, group_rows, standard_deviation
from emgpr.experiments.tables import (
    NO_VALUE,
    format_difference,
    format_number,
    markdown_table,
    warning_lines,
)
from emgpr.metrics import paired_difference

Metric = Literal["mse", "mae"]
Entry = dict[str, Any]
Errors = dict[str, float]  # by channel, and overall

OVERALL = "overall"


def summary(rows: Sequence[Row], metric: Metric) -> list[Entry]:
    """Return each method's errors by channel and overall, with their SDs over experiments.

    `gain` is the reduction of the overall error relative to the model without transfer, in percent.
    `minus_no_transfer` is the difference between these two errors, paired by experiment. `printed`
    holds the published values.
    """
    runs = group_rows(rows)
    errors = {method: _by_experiment(results, metric) for method, results in runs.items()}
    reference = errors.get(NO_TRANSFER, {})
    entries = []
    for method, by_experiment in errors.items():
        mean, gain, difference = _over_experiments(by_experiment, np.mean), None, None
        if reference and method != NO_TRANSFER:
            base = _over_experiments(reference, np.mean)
            gain = _gain(mean[OVERALL], base[OVERALL])
            shared = sorted(by_experiment.keys() & reference.keys())
            if len(shared) > 1:
                pair = ([part[e][OVERALL] for e in shared] for part in (by_experiment, reference))
                difference = asdict(paired_difference(*map(np.array, pair)))
        entries.append(
            {
                "method": method,
                "metric": metric,
                "experiments": len(by_experiment),
                "folds": len(runs[method]),
                "error": mean,
                "sd": _over_experiments(by_experiment, standard_deviation),
                "gain": gain,
                "minus_no_transfer": difference,
                "seconds": float(np.median([row["seconds"] for row in runs[method]])),
                "printed": published()["atms"][metric].get(method),
                "notes": count_notes(runs[method]),
            }
        )
    return entries


def text(entries: Sequence[Entry]) -> str:
    """Return a Markdown table with our result and the published result for each channel."""
    channels = [name for name in entries[0]["error"] if name != OVERALL]
    lines = []
    for number, name in enumerate((*channels, OVERALL)):
        lines.append([name, "ours", *(_cell(e["error"][name], e["sd"][name]) for e in entries)])
        lines.append(["", "paper", *(_printed(e["printed"], number, name) for e in entries)])
    lines += [
        ["gain on GP", "ours", *(format_number(e["gain"], ".1f", "%") for e in entries)],
        ["", "paper", *(format_number(_printed_gain(e), ".1f", "%") for e in entries)],
        ["minus GP", "± s.e.", *(format_difference(e["minus_no_transfer"], 5) for e in entries)],
        ["training", "s", *(f"{e['seconds']:.1f}" for e in entries)],
    ]
    header = ["Output", "", *(e["method"] for e in entries)]
    notes = warning_lines(entries, "method", "folds")
    return "\n\n".join([markdown_table(header, lines), *notes])


def caption(metric: Metric, entries: Sequence[Entry]) -> str:
    """Return the caption of a table, including the number of folds run with each method."""
    name = {"mse": "Mean squared error", "mae": "Mean absolute error"}[metric]
    n_folds = ", ".join(f"{e['method']} {e['folds']}" for e in entries)
    return (
        f"{name} of standardised channels and, in parentheses, its standard deviation over "
        "experiments. The error of an experiment is the mean over its folds. 'Gain on GP' is the "
        "reduction of the overall error relative to GP, the model without transfer. 'Minus GP' is "
        "the difference from the error of GP, paired by experiment. Since the experiments have "
        "most sites in common, the standard error of this difference reflects the random choice of "
        "sites, not the variation between swaths. The paper used another granule (2014-06-01) and "
        "does not name its channels, so only the gains can be compared with the published values, "
        f"not the errors. Number of folds: {n_folds}."
    )


def _by_experiment(rows: Sequence[Row], metric: Metric) -> dict[int, Errors]:
    """Return each experiment's mean error over its folds, by channel and overall."""
    errors = {}
    for experiment, folds in group_rows(rows, itemgetter("experiment")).items():
        channels = folds[0][metric]
        means = {name: float(np.mean([fold[metric][name] for fold in folds])) for name in channels}
        errors[experiment] = means | {OVERALL: float(np.mean(list(means.values())))}
    return errors


def _over_experiments(
    errors: dict[int, Errors], statistic: Callable[[Sequence[float]], Any]
) -> dict[str, Any]:
    first, *_ = errors.values()
    return {name: statistic([error[name] for error in errors.values()]) for name in first}


def _cell(error: float, sd: float | None) -> str:
    return f"{error:.5f}" + ("" if sd is None else f" ({sd:.1e})")


def _printed(column: Entry | None, number: int, name: str) -> str:
    if column is None or (name != OVERALL and number >= len(column["tasks"])):
        return NO_VALUE
    if name == OVERALL:
        return _cell(column["overall"], column["overall_sd"])
    return _cell(column["tasks"][number], column["task_sds"][number])


def _printed_gain(entry: Entry) -> float | None:
    """Return the gain computed from the published errors."""
    if entry["printed"] is None or entry["method"] == NO_TRANSFER:
        return None
    base = published()["atms"][entry["metric"]][NO_TRANSFER]["overall"]
    return _gain(entry["printed"]["overall"], base)


def _gain(error: float, base: float) -> float:
    return 100 * (1 - error / base)
