"""From rows to the two tables of choices."""

from collections.abc import Callable, Sequence

import numpy as np

from emgpr.experiments.choices import NO_TRANSFER
from emgpr.experiments.rows import Row
from emgpr.experiments.text import aligned
from emgpr.metrics import paired_difference

COORDINATES_CAPTION = """All outputs from coordinates alone: mean absolute error in standard
deviations of each output, of folds of the training sites; after it the change of the negative log
density a reading against no transfer, paired over sites, with its standard error."""

WITHHELD_CAPTION = """One output withheld at 30% of the sites, the others known there: mean absolute
error over the outputs as a share of that of least squares on the known outputs (both through the
same transforms); in brackets the worst output's paired difference in standard errors."""


def coordinates_text(rows: Sequence[Row]) -> str:
    """A row a data set, a column a candidate."""
    return _table(rows, "coordinates", _against_no_transfer)


def withheld_text(rows: Sequence[Row]) -> str:
    """A row a data set, a column a candidate."""
    return _table(rows, "withheld", _against_least_squares)


def _table(rows: Sequence[Row], question: str, cell: Callable[[list[Row], list[Row]], str]) -> str:
    asked = [row for row in rows if row["question"] == question]
    methods = list(dict.fromkeys(row["method"] for row in asked))
    body = []
    for data in dict.fromkeys(row["data"] for row in asked):
        own = {m: [r for r in asked if r["data"] == data and r["method"] == m] for m in methods}
        N, P, D = next(row["size"] for row in asked if row["data"] == data)
        name = f"{data} ({N} sites, {P} inputs, {D} outputs)"
        body.append([name, *(cell(own[m], own.get(NO_TRANSFER, [])) for m in methods)])
    return aligned(["data", *methods], body)


def _against_no_transfer(rows: list[Row], base: list[Row]) -> str:
    error = np.mean(np.concatenate([row["errors"] for row in rows]))
    if rows == base:
        density = np.mean(np.concatenate([row["densities"] for row in rows]))
        return f"{error:.3f}; {density:.3f}"
    ours, theirs = (np.concatenate([r["densities"] for r in own]) for own in (rows, base))
    change = paired_difference(ours, theirs)
    return f"{error:.3f}; {change.mean:+.3f} ± {change.standard_error:.3f}"


def _against_least_squares(rows: list[Row], _: list[Row]) -> str:
    ours, theirs = (np.mean([np.mean(r[key]) for r in rows]) for key in ("errors", "least_squares"))
    pairs = [paired_difference(np.array(r["errors"]), np.array(r["least_squares"])) for r in rows]
    worst = max(pair.mean / pair.standard_error for pair in pairs)
    return f"{ours / theirs:.2f} ({worst:+.1f})"
