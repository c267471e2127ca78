"""Parsing of option values: names, numbers or name=value pairs, separated by commas."""

import csv
import math
from collections.abc import Callable, Collection, Iterable
from typing import TypeVar

from emgpr.cli.errors import UsageError

Value = TypeVar("Value")


def split_commas(text: str) -> list[str]:
    """Split a string at its commas, except those inside quotation marks.

    >>> split_commas('Cd, "Zn, total"')
    ['Cd', 'Zn, total']
    """
    parts = next(csv.reader([text], skipinitialspace=True), [])
    return [part.strip() for part in parts]


def parse_names(text: str | None, option: str, known: Collection[str] = ()) -> list[str]:
    """Return the names in a string, and raise if a name is repeated or unknown.

    If `known` is empty, all names are accepted.

    >>> parse_names("Xloc, Yloc", "-x"), parse_names(None, "--known")
    (['Xloc', 'Yloc'], [])
    """
    if text is None:
        return []
    names = split_commas(text)
    if not names or not all(names) or len(set(names)) < len(names):
        raise UsageError(f"{option} is {text!r}; expected distinct names, such as A,B,C.")
    _check_known(names, option, known)
    return names


def parse_numbers(text: str | None, option: str) -> list[float] | None:
    """Return the numbers in a string, or None if the option was not given.

    >>> parse_numbers("0.05,0.95", "--quantiles")
    [0.05, 0.95]
    """
    return None if text is None else [parse_number(part, option) for part in text.split(",")]


def parse_pairs(
    text: str,
    option: str,
    parse: Callable[[str, str], Value],
    known: Collection[str],
    example: str = "A=1,B=2",
) -> dict[str, Value]:
    """Return a dict of names and parsed values from a string such as the example.

    >>> parse_pairs("Cd=0.8,Zn=200", "--above", parse_number, ["Cd", "Ni", "Zn"])
    {'Cd': 0.8, 'Zn': 200.0}
    """
    pairs: dict[str, Value] = {}
    for part in parse_names(text, option):
        name, equals, value = (piece.strip() for piece in part.rpartition("="))
        if not (name and equals and value) or name in pairs:
            raise UsageError(
                f"{option} is {text!r}; expected distinct names with values, such as {example}."
            )
        pairs[name] = parse(value, option)
    _check_known(pairs, option, known)
    return pairs


def parse_units(
    text: str | None, outputs: Iterable[str], inputs: Iterable[object]
) -> dict[str, str] | None:
    """Return a dict of units by column. A unit without a column name applies to all outputs.

    >>> parse_units("mg/kg", ["Cd", "Zn"], ["Xloc"])
    {'Cd': 'mg/kg', 'Zn': 'mg/kg'}
    >>> parse_units("Cd=mg/kg,Xloc=km", ["Cd", "Zn"], ["Xloc"])
    {'Cd': 'mg/kg', 'Xloc': 'km'}
    """
    if text is None or "=" not in text:
        return None if text is None else dict.fromkeys(outputs, text)
    known = [*outputs, *map(str, inputs)]
    return parse_pairs(text, "--units", lambda unit, _: unit, known, "A=mg/kg,B=km")


def parse_number(text: str, option: str) -> float:
    """Convert a string to a finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(
            f"{option} contains {text.strip()!r}; expected a finite number. Separate several "
            "numbers with commas (1,2)."
        )
    return number


def _check_known(names: Iterable[str], option: str, known: Collection[str]) -> None:
    for name in names:
        if known and name not in known:
            raise UsageError(f"{option} contains {name!r}; expected one of {', '.join(known)}.")
