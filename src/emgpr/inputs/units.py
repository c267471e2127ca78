"""Units of the columns of a table, from its attributes or its column headers."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from emgpr.geo import CoordinateColumns, is_geographic
from emgpr.geo.reference_systems import cf_axes
from emgpr.inputs.convert import is_xarray

_SYMBOL = (
    r"(?:%|‰|°C|°F|°|[kcmµμun]?(?:m|g|mol|eq|l|L|s|S|W|V|J|Pa|Bq)|hPa|m?bar|K|ha|h|d|yr?|a|dB"
    r"|pp[mbt]|degrees?(?:_east|_north)?)(?:\^?[-−]?\d|[²³⁻¹]+)?"
)
# Text in brackets at the end of a header is a unit only if it consists of symbols of units.
UNIT_IN_HEADER = re.compile(
    rf".*\S\s*(?:\((?P<round>{_SYMBOL}(?:[ ·*/]{_SYMBOL})*)\)"
    rf"|\[(?P<square>{_SYMBOL}(?:[ ·*/]{_SYMBOL})*)\])"
)


def units_of(X: Any, y: Any, crs: str | None = None) -> dict[str, str]:
    """Return the known units of the columns of X and y.

    Units are taken from the `units` attribute of xarray variables, or from `attrs["units"]` of
    pandas objects, which is a dict or one unit for all columns. Units of other columns are read
    from headers such as "Cd (mg/kg)". Coordinates in a projection have the unit of its axes.

    >>> X = pd.DataFrame({"depth [m]": [1.0]})
    >>> y = pd.DataFrame({"Cd": [0.5], "Zn (mg/kg)": [70.0], "pH (field)": [6.0]})
    >>> y.attrs["units"] = {"Cd": "mg/kg"}
    >>> units_of(X, y)
    {'depth [m]': 'm', 'Zn (mg/kg)': 'mg/kg', 'Cd': 'mg/kg'}
    """
    columns = [column for table in (X, y) for column in _columns(table)]
    units = _units_of_projection(_columns(X), crs) if crs is not None else {}
    units |= {name: unit for name in columns if (unit := unit_in_header(name))}
    for table in (X, y):
        units |= {name: unit for name, unit in _attributes(table).items() if name in columns}
    return units


def unit_in_header(header: str) -> str:
    """Return the unit in brackets at the end of a header, or "" if there is none.

    >>> [unit_in_header(text) for text in ("Cd (mg/kg)", "T [°C]", "Zn (total)", "(m)", "Cd")]
    ['mg/kg', '°C', '', '', '']
    """
    found = UNIT_IN_HEADER.fullmatch(header.strip())
    return (found["round"] or found["square"]) if found else ""


def _columns(table: Any) -> list[str]:
    if isinstance(table, pd.DataFrame):
        return [str(name) for name in table.columns]
    if isinstance(table, pd.Series):
        return [str(table.name if table.name is not None else 0)]
    return list(_variables(table)) if is_xarray(table) else []


def _variables(table: Any) -> dict[str, Any]:
    """Return the columns of an xarray Dataset, or a one-dimensional DataArray as one column."""
    if hasattr(table, "data_vars"):
        return {str(name): table[name] for name in list(table.data_vars) or list(table.coords)}
    return {str(table.name): table} if table.ndim == 1 else {}


def _attributes(table: Any) -> dict[str, str]:
    """Return the units in the attributes of a table; what is not text is not a unit."""
    given: Any
    if is_xarray(table):
        given = {name: column.attrs.get("units") for name, column in _variables(table).items()}
    else:
        given = getattr(table, "attrs", {}).get("units") if _columns(table) else None
        if not isinstance(given, Mapping):
            given = dict.fromkeys(_columns(table), given)
    return {str(name): unit for name, unit in given.items() if isinstance(unit, str) and unit}


def _units_of_projection(names: Sequence[str], crs: str) -> dict[str, str]:
    if len(names) < 2 or is_geographic(crs):
        return {}
    columns = CoordinateColumns.from_names(names, crs)
    axes = zip((columns.x, columns.y), cf_axes(crs), strict=True)
    short = {"metre": "m", "kilometre": "km"}
    return {
        names[i]: short.get(axis["units"], axis["units"]) for i, axis in axes if "units" in axis
    }
