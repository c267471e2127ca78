"""What was measured, and where."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from emgpr.report.tables import Cell, Table, counted, listed, name, number, percent, plain, words

NAMED = 4  # outputs that are named in a sentence; of more, how many there are


def outputs_table(model: Any, Y: pd.DataFrame, units: Mapping[str, str]) -> Table:
    """Readings of every output: how many, their range, and the transform."""
    rows = []
    for d, output in enumerate(Y.columns):
        values = Y[output].dropna()
        missing = int(Y[output].isna().sum())
        share = percent(missing / len(Y)).text
        gaps = f"{number(missing).text} ({share})" if missing else "none"
        rows.append(
            (
                name(output),
                words(units.get(output, "")),
                number(len(values)),
                Cell(gaps, float(missing), "number"),
                plain(values.min()),
                plain(values.median()),
                plain(values.max()),
                words(transform_name(model.transforms_[d])),
            )
        )
    heads = ("output", "unit", "readings", "missing", "lowest", "median", "highest", "transform")
    return Table("Outputs", heads, rows).full()


def inputs_table(X: pd.DataFrame, units: Mapping[str, str]) -> Table:
    """The range of every input."""
    rows = [
        (
            name(column),
            words(units.get(column, "")),
            plain(X[column].min()),
            plain(X[column].max()),
            number(X[column].nunique()),
        )
        for column in X.columns
    ]
    heads = ("input", "unit", "lowest", "highest", "different values")
    return Table("Inputs", heads, rows).full()


def transform_name(transform: Any) -> str:
    """As the user writes it."""
    if transform is None:
        return "none"
    return transform if isinstance(transform, str) else " ".join(repr(transform).split())


def titled(model: Any) -> str:
    """The outputs, as a title names them."""
    names = model.output_names_
    return listed(names) if len(names) <= NAMED else f"{len(names)} outputs"


def what_where(model: Any, X: pd.DataFrame, Y: pd.DataFrame, units: Mapping[str, str]) -> str:
    """One sentence: sites, outputs, the region, and what is missing."""
    several = "" if len(Y.columns) <= NAMED else f" ({Y.columns[0]} to {Y.columns[-1]})"
    place = listed(_span(X[column], units.get(column, "")) for column in X.columns)
    return f"{titled(model)}{several} at {counted(len(X), 'site')}, {place}; {missing_words(Y)}."


def _span(column: pd.Series, unit: str) -> str:
    ends = " to ".join(plain(end, 4).text for end in (column.min(), column.max()))
    return f"{column.name} {ends} {unit}".strip()


def missing_words(Y: pd.DataFrame) -> str:
    """How many readings are missing, and of which outputs."""
    gaps = Y.isna().sum()
    gaps = gaps[gaps > 0]
    if gaps.empty:
        return "none of the readings is missing"
    if len(gaps) <= NAMED:
        told = (f"{percent(n / len(Y)).text} of {output}" for output, n in gaps.items())
        return f"{listed(told)} missing"
    share = percent(Y.isna().to_numpy().mean()).text
    where = "all outputs" if len(gaps) == Y.shape[1] else f"{len(gaps)} of the outputs"
    return f"{share} of the readings missing, in {where}"


def repeated_sites(X: pd.DataFrame) -> int:
    """Sites that have the inputs of an earlier one."""
    return int(np.sum(X.duplicated()))
