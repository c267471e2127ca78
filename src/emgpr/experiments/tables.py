"""Markdown tables whose columns are aligned for display in a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

NO_VALUE = "–"


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with the first column left-aligned and the others right-aligned.

    >>> print(markdown_table(["Metal", "MAE"], [["Cd", "0.4"], ["Nickel", "12.25"]]))
    | Metal  |   MAE |
    |:-------|------:|
    | Cd     |   0.4 |
    | Nickel | 12.25 |
    """
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
        return "| " + " | ".join(padded) + " |"

    rule = "|:" + "-" * (widths[0] + 1) + "|"
    rule += "".join("-" * (width + 1) + ":|" for width in widths[1:])
    return "\n".join([line(header), rule, *(line(row) for row in rows)])


def format_number(value: float | None, form: str, unit: str = "") -> str:
    """Return a formatted number with its unit, or a dash for None.

    >>> format_number(0.25, ".3f"), format_number(25, ".1f", "%"), format_number(None, ".3f")
    ('0.250', '25.0%', '–')
    """
    return NO_VALUE if value is None else format(value, form) + unit


def format_difference(difference: Mapping[str, float] | None, digits: int = 3) -> str:
    """Return a paired difference with its standard error, or a dash for None.

    >>> format_difference({"mean": -0.25, "standard_error": 0.03125})
    '-0.250 ± 0.031'
    """
    if difference is None:
        return NO_VALUE
    return f"{difference['mean']:+.{digits}f} ± {difference['standard_error']:.{digits}f}"


def warning_lines(entries: Sequence[Mapping[str, Any]], name: str, repetitions: str) -> list[str]:
    """Return a line for each warning of each entry, with the number of fits that raised it.

    >>> entry = {"method": "EMGPR", "notes": {"it did not converge.": 2}, "folds": 10}
    >>> warning_lines([entry], "method", "folds")
    ['EMGPR, 2 of 10 folds: it did not converge.']
    """
    return [
        f"{entry[name]}, {count} of {entry[repetitions]} {repetitions}: {note}"
        for entry in entries
        for note, count in entry["notes"].items()
    ]
