"""The table of parameters: their values, defaults, and values chosen automatically."""

import inspect
import re
from collections.abc import Mapping
from typing import Any

from emgpr.estimators import MultiOutputGP, ReadingsGP
from emgpr.report.cells import Table
from emgpr.report.columns import PARAMETERS

MEMORY_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def parameter_table(model: MultiOutputGP | ReadingsGP, resolved: Mapping[str, str]) -> Table:
    """Return a table of the parameters and their defaults, with changed parameters first.

    `resolved` holds the values that "auto" and None stand for.
    """
    defaults = type(model)().get_params(deep=False)
    rows = []
    for name, value in model.get_params(deep=False).items():
        text, default = as_code(value), as_code(defaults[name])
        is_open = value is None or (isinstance(value, str) and value == "auto")
        rows.append(
            {
                "name": name,
                "value": text,
                "default": default,
                "is_changed": text != default,
                "resolved": resolved.get(name, "") if is_open else "",
            }
        )
    rows.sort(key=lambda row: not row["is_changed"])
    n = sum(row["is_changed"] for row in rows)
    note = f"{n} of {len(rows)} parameters differ from their defaults."
    return Table.build(f"Parameters of {type(model).__name__}", PARAMETERS, rows, note)


def as_code(value: Any) -> str:
    """Return a value as it would be written in code."""
    if inspect.isroutine(value):
        return f"{value.__name__}()"
    return MEMORY_ADDRESS.sub("", " ".join(repr(value).split()))
