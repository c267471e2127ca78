"""The two tables that compare settings, computed from the stored results."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from operator import itemgetter

import numpy as np

from emgpr.experiments.choices import NO_TRANSFER
from emgpr.experiments.rows import Row, group_rows
from emgpr.experiments.tables import format_difference, markdown_table
from emgpr.metrics import paired_difference

COORDINATES_CAPTION = """All outputs are predicted from the coordinates of sites that were left
out. The first number is the mean absolute error, in standard deviations of each output. The second
is the difference in mean negative log density from the model without transfer, paired by site,
with its standard error. For that model itself, the second number is the negative log density."""

WITHHELD_CAPTION = """One output is withheld at 30% of the sites and predicted from the others. The
first number is the ratio of the mean absolute error, averaged over the outputs, to that of a
least-squares regression on the other outputs with the same transforms. The number in parentheses
is the difference between the two errors for the output with the worst result, paired by site and
divided by its standard error."""


def coordinates_text(rows: Sequence[Row]) -> str:
    """Return the table of errors when all outputs are predicted from coordinates."""
    return _table(rows, "coordinates", _against_no_transfer)


def withheld_text(rows: Sequence[Row]) -> str:
    """Return the table of errors when a withheld output is predicted from the others."""
    return _table(rows, "withheld", _against_least_squares)


def _table(rows: Sequence[Row], question: str, cell: Callable[[list[Row], list[Row]], str]) -> str:
    """Return a table with a row for each data set and a column for each candidate."""
    rows = [row for row in rows if row["question"] == question]
    methods = list(group_rows(rows))
    body = []
    for data, data_rows in group_rows(rows, itemgetter("data")).items():
        N, P, D = data_rows[0]["size"]
        by_method = group_rows(data_rows)
        cells = (cell(by_method[method], by_method.get(NO_TRANSFER, [])) for method in methods)
        body.append([f"{data} ({N} sites, {P} inputs, {D} outputs)", *cells])
    return markdown_table(["data", *methods], body)


def _against_no_transfer(rows: list[Row], base: list[Row]) -> str:
    error = np.mean(np.concatenate([row["errors"] for row in rows]))
    densities, reference = (
        np.concatenate([row["densities"] for row in part]) for part in (rows, base)
    )
    if rows == base:
        return f"{error:.3f}; {densities.mean():.3f}"
    return f"{error:.3f}; {format_difference(asdict(paired_difference(densities, reference)))}"


def _against_least_squares(rows: list[Row], _: list[Row]) -> str:
    error, reference = (
        np.mean([np.mean(row[key]) for row in rows]) for key in ("errors", "least_squares")
    )
    pairs = [paired_difference(np.array(r["errors"]), np.array(r["least_squares"])) for r in rows]
    worst = max(pair.mean / pair.standard_error for pair in pairs)
    return f"{error / reference:.2f} ({worst:+.1f})"
