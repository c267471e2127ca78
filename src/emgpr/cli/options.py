"""Options that several commands have, and what their words mean."""

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from emgpr.cli.complaints import USAGE, complain

Kernel = Literal["auto", "rbf", "matern12", "matern32", "matern52"]
By = Literal["site", "block", "output"]

TRANSFORMS = ("auto", "none", "log", "yeo-johnson", "normal-score")


def _some(jobs: int) -> int:
    if jobs == 0:
        raise typer.BadParameter("0 processes do nothing; give 1 or more, or -1 for one a core.")
    return jobs


Jobs = Annotated[
    int, typer.Option(help="Fits at a time, each a process; -1: one a core.", callback=_some)
]
Processes = Annotated[
    int, typer.Option("--jobs", help="Processes; -1: one a core.", callback=_some)
]
Inputs = Annotated[
    str | None, typer.Option("-x", "--inputs", help="Columns of the place: Xloc,Yloc.")
]
Outputs = Annotated[
    str | None, typer.Option("-y", "--outputs", help="Columns that were measured: Cd,Ni,Zn.")
]
Log = Annotated[bool, typer.Option("--log", help="Short for --transform log.")]
Transform = Annotated[
    str | None,
    typer.Option(
        help=f"What makes outputs near Gaussian: {', '.join(TRANSFORMS)}; "
        "or by output, Cd=log,pH=none."
    ),
]
Crs = Annotated[
    str | None,
    typer.Option(help="What the places are: EPSG:4326 for longitude and latitude, EPSG:32632, …"),
]
Paper = Annotated[bool, typer.Option("--paper", help="The method as published: quick, RBF.")]
KernelName = Annotated[
    Kernel | None,
    typer.Option("--kernel", help="Of every latent process; matern12 is the exponential."),
]
Seed = Annotated[int, typer.Option(min=0, help="Of starts and batches.")]
Missing = Annotated[
    str | None,
    typer.Option(
        help="What stands for a missing value, beside empty cells: -9999,n.a.; "
        "'none' if values that look like such codes are measurements."
    ),
]
Device = Annotated[str, typer.Option(help="cpu, cuda, torch or auto.")]
Quantiles = Annotated[
    str | None, typer.Option(help="Probabilities of quantiles to add: 0.05,0.95.")
]
Above = Annotated[
    str | None,
    typer.Option(help="Limits whose chance to be exceeded is added: Cd=0.8,Zn=200."),
]
Units = Annotated[
    str | None, typer.Option(help="Of all outputs, mg/kg, or by column: Cd=mg/kg,Xloc=km.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A file that `emgpr fit` wrote.")]


def between_commas(given: str) -> list[str]:
    """What is between the commas; a comma within quotes is part of a name.

    >>> between_commas('Cd, "Zn, total"')
    ['Cd', 'Zn, total']
    """
    parts = next(csv.reader([given], skipinitialspace=True), [])
    return [part.strip() for part in parts]


def words(given: str | None, option: str) -> list[str]:
    """Names between commas, each once.

    >>> words("Xloc, Yloc", "-x")
    ['Xloc', 'Yloc']
    """
    found = between_commas(given or "")
    if not found or not all(found) or len(set(found)) < len(found):
        raise complain(f"{option} {given or ''!r}; expected names, each once, as A,B,C.", USAGE)
    return found


def numbers(given: str | None, option: str) -> list[float] | None:
    """Numbers between commas, or None if the option was not given.

    >>> numbers("0.05,0.95", "--quantiles")
    [0.05, 0.95]
    """
    return None if given is None else [_number(word, option) for word in given.split(",")]


def pairs(given: str, option: str, meaning: Callable[[str, str], Any]) -> dict[str, Any]:
    """A=1,B=2 as a dict, each value as `meaning(value, option)`.

    >>> pairs("Cd=0.8,Zn=200", "--above", _number)
    {'Cd': 0.8, 'Zn': 200.0}
    """
    found = {}
    for word in words(given, option):
        name, equals, value = (part.strip() for part in word.rpartition("="))
        if not (name and equals and value) or name in found:
            raise complain(f"{option} {given!r}; expected A=1,B=2, each name once.", USAGE)
        found[name] = meaning(value, option)
    return found


def limits(above: str | None) -> dict[str, float] | None:
    """The limits of --above."""
    return None if above is None else pairs(above, "--above", _number)


def probabilities(given: str | None) -> list[float] | None:
    """Those of --quantiles."""
    found = numbers(given, "--quantiles")
    if found is not None and (len(set(found)) < len(found) or not all(0 < p < 1 for p in found)):
        raise complain(
            f"--quantiles {given}; expected probabilities between 0 and 1, each once: 0.05,0.95.",
            USAGE,
        )
    return found


def known_to(model: Any, names: Iterable[str] | None, option: str, *, inputs: bool = False) -> None:
    """Refuse names that are no outputs of a fitted model, and no inputs if these may be meant."""
    have = list(model.output_names_)
    have += [str(name) for name in model.training_data()[0].columns] if inputs else []
    for name in names or ():
        if name not in have:
            raise complain(f"{option} names {name!r}; the model has {', '.join(have)}.", USAGE)


def units_of(given: str | None) -> str | dict[str, str] | None:
    """The units of --units: one for all outputs, or by column.

    >>> units_of("mg/kg"), units_of("Cd=mg/kg,Xloc=km")
    ('mg/kg', {'Cd': 'mg/kg', 'Xloc': 'km'})
    """
    if given is None or "=" not in given:
        return given
    return pairs(given, "--units", lambda value, _: value)


def transform_of(log: bool, given: str | None, outputs: Sequence[str], default: Any) -> Any:
    """The transform that --log and --transform ask for; the default where they do not say.

    >>> transform_of(False, "Cd=log,pH=none", ["Cd", "pH", "Zn"], "auto")
    {'Cd': 'log', 'pH': None, 'Zn': 'auto'}
    """
    if log and given is not None:
        raise complain("--log is --transform log: give one of the two.", USAGE)
    if log:
        return "log"
    if given is None:
        return default
    if "=" not in given:
        return _transform(given)
    found = pairs(given, "--transform", _transform)
    for name in found:
        if name not in outputs:
            raise complain(f"--transform names {name!r}, which is not in -y.", USAGE)
    return dict.fromkeys(outputs, default) | found


def _transform(name: str, option: str = "") -> str | None:
    if name not in TRANSFORMS:
        raise complain(
            f"--transform {name!r}; expected {', '.join(TRANSFORMS)}, or these by output: "
            "Cd=log,pH=none.",
            USAGE,
        )
    return None if name == "none" else name


def _number(word: str, option: str) -> float:
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise complain(
            f"{option}: {word.strip()!r} is no number; expected such as 0.5, or 1,2.", USAGE
        )
    return number
