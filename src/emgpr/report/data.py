"""The data section: tables of the outputs and inputs, and a summary of the training data."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from emgpr.report.cells import Table, join_names, measured, percent, quantity
from emgpr.report.columns import INPUTS, OUTPUTS

MAX_OUTPUTS_NAMED = 4  # A sentence about more outputs gives only their number.


def output_table(Y: pd.DataFrame, transforms: list[Any], units: Mapping[str, str]) -> Table:
    """Return a table with the number of readings, range and transform of every output."""
    rows = [
        {
            "output": output,
            "unit": units.get(output, ""),
            "values": Y[output].dropna(),
            "n_rows": len(Y),
            "transform": transform_name(transform),
        }
        for output, transform in zip(Y.columns, transforms, strict=True)
    ]
    return Table.build("Outputs", OUTPUTS, rows)


def input_table(X: pd.DataFrame, units: Mapping[str, str]) -> Table:
    """Return a table with the range of every input."""
    rows = [{"input": p, "unit": units.get(p, ""), "values": X[p]} for p in X.columns]
    return Table.build("Inputs", INPUTS, rows)


def transform_name(transform: Any) -> str:
    """Return a transform as it would be written in code, or "none" for None."""
    if transform is None:
        return "none"
    return transform if isinstance(transform, str) else " ".join(repr(transform).split())


def default_title(outputs: list[str], n_sites: int) -> str:
    """Return a title with the outputs and the number of sites.

    >>> default_title(["Cd", "Zn"], 259), default_title(list("abcdef"), 6000)
    ('Cd and Zn at 259 sites', '6 outputs at 6000 sites')
    """
    return f"{_names_or_number(outputs)} at {quantity(n_sites, 'site')}"


def _names_or_number(outputs: list[str]) -> str:
    return join_names(outputs) if len(outputs) <= MAX_OUTPUTS_NAMED else f"{len(outputs)} outputs"


def data_sentence(X: pd.DataFrame, Y: pd.DataFrame, units: Mapping[str, str]) -> str:
    """Describe the outputs, the number and extent of the sites, and the missing readings."""
    outputs = list(Y.columns)
    title = _names_or_number(outputs)
    if len(outputs) > MAX_OUTPUTS_NAMED:
        title += f" ({outputs[0]} to {outputs[-1]})"
    ranges = join_names(_range(X[column], units.get(column, "")) for column in X.columns)
    verb = "was" if len(outputs) == 1 else "were"
    sites = quantity(len(X), "site")
    return f"{title} {verb} measured at {sites} ({ranges}). {_missing_sentence(Y)}"


def _range(column: pd.Series, unit: str) -> str:
    ends = " to ".join(measured(end, 4).text for end in (column.min(), column.max()))
    return f"{column.name} {ends} {unit}".strip()


def _missing_sentence(Y: pd.DataFrame) -> str:
    gaps = Y.isna().sum()
    gaps = gaps[gaps > 0]
    if gaps.empty:
        return "No readings are missing."
    if len(gaps) <= MAX_OUTPUTS_NAMED:
        shares = join_names(f"{percent(n / len(Y)).text} of {output}" for output, n in gaps.items())
        return f"Missing readings: {shares}."
    share = percent(Y.isna().to_numpy().mean()).text
    where = "all" if len(gaps) == Y.shape[1] else f"{len(gaps)} of the {Y.shape[1]}"
    return f"{share} of the readings are missing, affecting {where} outputs."
