"""Options that are common to several commands, and the conversion of their values.

An option of a single command is defined in the file of that command. Options that always occur
together are the fields of a dataclass, and a command takes this dataclass as one parameter. To add
an option to all commands that take the dataclass, add a field to it.
"""

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from emgpr.cli.errors import UsageError, progress
from emgpr.cli.parsing import parse_names, parse_number, parse_numbers, parse_pairs

if TYPE_CHECKING:
    from emgpr.estimators import EMGPR

CONDITIONING = ("auto", "all", "batch")
TRANSFORMS = ("auto", "none", "softplus", "log", "yeo-johnson", "normal-score")


def check_processes(n: int) -> int:
    """Raise if the number of processes is 0."""
    if n == 0:
        raise typer.BadParameter("Expected 1 or more processes, or -1 for one per core.")
    return n


Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file written by emgpr fit.")
]
Outputs = Annotated[
    str | None, typer.Option("--outputs", help="Outputs to keep, such as Cd,Zn; default: all.")
]
Units = Annotated[
    str | None,
    typer.Option(
        help="Unit of all outputs (mg/kg), or units by column (Cd=mg/kg,Xloc=km); default: the "
        "units in the table or model."
    ),
]
Resolution = Annotated[
    int | None,
    typer.Option(
        min=12,
        max=1000,
        help="Grid nodes along the longer side of the maps; default: 70 in a figure, and 40 to 200 "
        "in a report, depending on the number of sites and the cost of predictions.",
    ),
]


@dataclass(frozen=True)
class EstimatorOptions:
    """Column names and model settings, for commands that fit models to a table."""

    inputs: Annotated[
        str | None,
        typer.Option("-x", "--inputs", help="Input columns (coordinates), such as Xloc,Yloc."),
    ] = None
    outputs: Annotated[
        str | None, typer.Option("-y", "--outputs", help="Output columns, such as Cd,Ni,Zn.")
    ] = None
    log: Annotated[bool, typer.Option("--log", help="Short for --transform log.")] = False
    transform: Annotated[
        str | None,
        typer.Option(
            help=f"Output transform: {', '.join(TRANSFORMS)}, or one per output: Cd=log,pH=none."
        ),
    ] = None
    output_bounds: Annotated[
        str | None,
        typer.Option(
            help="Bounds of outputs, such as sand=0:100,T=none, where none means no bound; by "
            "default, outputs without negative readings are bounded by zero."
        ),
    ] = None
    composition: Annotated[
        str | None,
        typer.Option(help="Outputs that are the parts of a whole, such as sand,silt,clay."),
    ] = None
    crs: Annotated[
        str | None,
        typer.Option(
            help="Coordinate reference system, such as EPSG:4326 for longitude and latitude."
        ),
    ] = None
    paper: Annotated[
        bool,
        typer.Option(
            "--paper", help="Use the published method (RBF kernels, two steps), which is faster."
        ),
    ] = False
    kernel: Annotated[
        Literal["auto", "rbf", "matern12", "matern32", "matern52"] | None,
        typer.Option(help="Kernel of every latent process; matern12 is exponential."),
    ] = None
    latents: Annotated[
        int | None, typer.Option(min=1, help="Number of latent processes; fewer are faster.")
    ] = None
    learner: Annotated[
        Literal["auto", "exact", "vecchia", "poe", "dtc", "fitc", "pitc", "vfe", "svi", "variogram"]
        | None,
        typer.Option(
            help="Method that fits kernels and noise; auto: exact, or vecchia (each reading given "
            "its neighbours) if an output has more than 400 readings."
        ),
    ] = None
    members: Annotated[
        int | None,
        typer.Option(min=1, help="Largest number of batches that are fitted; fewer are faster."),
    ] = None
    conditioning: Annotated[
        str | None,
        typer.Option(
            help="Readings to predict from: all, batch, auto, or the number of nearest readings "
            "of each output."
        ),
    ] = None
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed for starting values and batches.")
    ] = 0
    jobs: Annotated[
        int, typer.Option(help="Number of processes; -1: one per core.", callback=check_processes)
    ] = 1

    def has_settings(self) -> bool:
        """Tell whether any option other than --seed and --jobs is given."""
        return replace(self, seed=0, jobs=1) != EstimatorOptions()

    def columns(self) -> tuple[list[str], list[str]]:
        """Return the names of the input and output columns."""
        if self.inputs is None or self.outputs is None:
            raise UsageError(
                "No columns are given. Give the inputs with -x and the outputs with -y."
            )
        inputs, outputs = parse_names(self.inputs, "-x"), parse_names(self.outputs, "-y")
        both = [name for name in outputs if name in inputs]
        if both:
            raise UsageError(
                f"{both[0]!r} is in -x and in -y; a column must be either an input or an output."
            )
        return inputs, outputs

    def estimator(self, **settings: Any) -> "EMGPR":
        """Return an estimator with these options and other settings, after validating them."""
        transform = self.output_transform(None if self.paper else "auto")
        settings |= self.model_settings()
        from emgpr import EMGPR
        from emgpr.arrays import resolve_device

        model = (EMGPR.paper if self.paper else EMGPR)(
            output_transform=transform, crs=self.crs, random_state=self.seed, verbose=progress(),
            **settings,
        )  # fmt: skip
        try:
            model.fit_settings()
            resolve_device(model.device)
        except ValueError as error:
            raise UsageError(str(error)) from error
        return model

    def model_settings(self) -> dict[str, Any]:
        """Return the parameters of an estimator that are set by options, without the transform.

        >>> EstimatorOptions(latents=3, conditioning="16").model_settings()
        {'n_latents': 3, 'conditioning': 16}
        """
        given = {
            "kernel": self.kernel,
            "n_latents": self.latents,
            "latent_learner": self.learner,
            "n_members": self.members,
            "conditioning": _parse_conditioning(self.conditioning),
            "output_bounds": self.bounds_by_name(),
            "compositions": self.parts(),
        }
        return {name: value for name, value in given.items() if value is not None}

    def bounds_by_name(self) -> dict[str, tuple[float, float] | None] | None:
        """Return the bounds of outputs that are named in --output-bounds.

        >>> EstimatorOptions("x", "sand,T", output_bounds="sand=0:100,T=none").bounds_by_name()
        {'sand': (0.0, 100.0), 'T': None}
        """
        if self.output_bounds is None:
            return None
        outputs = self.columns()[1]
        example = "A=0:100,B=none"
        return parse_pairs(self.output_bounds, "--output-bounds", _parse_bounds, outputs, example)

    def parts(self) -> list[list[str]] | None:
        """Return the parts of a whole that are named in --composition."""
        if self.composition is None:
            return None
        parts = parse_names(self.composition, "--composition", self.columns()[1])
        if len(parts) < 2:
            raise UsageError(
                f"--composition is {self.composition!r}; expected two or more outputs that are the "
                "parts of a whole, such as sand,silt,clay."
            )
        return [parts]

    def output_transform(self, default: str | None) -> str | dict[str, str | None] | None:
        """Return one transform for all outputs, or a dict with the transform of each output.

        Outputs that are not named in --transform get the default.

        >>> EstimatorOptions("x", "Cd,pH,Zn", transform="Cd=log,pH=none").output_transform("auto")
        {'Cd': 'log', 'pH': None, 'Zn': 'auto'}
        """
        if self.log and self.transform is not None:
            raise UsageError("--log is short for --transform log. Give only one of the two.")
        if self.transform is None:
            return "log" if self.log else default
        if "=" not in self.transform:
            return _parse_transform(self.transform, "--transform")
        outputs = self.columns()[1]
        named = parse_pairs(
            self.transform, "--transform", _parse_transform, outputs, "A=log,B=none"
        )
        return dict.fromkeys(outputs, default) | named


@dataclass(frozen=True)
class TableOptions:
    """Options for commands that read a table."""

    missing: Annotated[
        str | None,
        typer.Option(help="Codes for missing values, such as -9999,n.a.; 'none' keeps all values."),
    ] = None
    separator: Annotated[
        str | None,
        typer.Option(help="Separator of a CSV file: ';', ',', tab or space; default: detected."),
    ] = None
    decimal: Annotated[
        str | None, typer.Option(help="Decimal mark of a CSV file: . or ,; default: detected.")
    ] = None
    encoding: Annotated[
        str | None,
        typer.Option(help="Encoding of a CSV file, such as latin-1; default: UTF-8 or cp1252."),
    ] = None

    def layout(self) -> dict[str, str | None]:
        """Return the options for text files as keyword arguments for `read_table`."""
        return {
            "separator": self.separator, "decimal": self.decimal, "encoding": self.encoding,
        }  # fmt: skip


@dataclass(frozen=True)
class StatisticsOptions:
    """Options for predicting statistics other than the median and standard deviation."""

    quantiles: Annotated[
        str | None, typer.Option(help="Also predict these quantiles, such as 0.05,0.95.")
    ] = None
    above: Annotated[
        str | None,
        typer.Option(help="Also predict the probability of exceeding a threshold, such as Cd=0.8."),
    ] = None

    def requested(self, outputs: Collection[str]) -> dict[str, Any]:
        """Return these options as keyword arguments for a prediction method.

        >>> StatisticsOptions("0.05,0.95", "Cd=0.8").requested(["Cd", "Zn"])
        {'quantiles': [0.05, 0.95], 'exceedance': {'Cd': 0.8}}
        """
        p = parse_numbers(self.quantiles, "--quantiles")
        if p and not (len(set(p)) == len(p) and min(p) > 0 and max(p) < 1):
            raise UsageError(
                f"--quantiles is {self.quantiles}; expected distinct probabilities between 0 and "
                "1, such as 0.05,0.95."
            )
        thresholds = None
        if self.above is not None:
            thresholds = parse_pairs(self.above, "--above", parse_number, outputs)
        return {"quantiles": p, "exceedance": thresholds}


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for Typer, with each dataclass parameter replaced with its fields."""
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            parameters += inspect.signature(groups[name]).parameters.values()
        else:
            parameters.append(parameter)

    def expanded(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    expanded.__name__, expanded.__doc__ = command.__name__, command.__doc__
    options = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
    expanded.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    return expanded


def _parse_conditioning(text: str | None) -> str | int | None:
    if text is None or text in CONDITIONING:
        return text
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise UsageError(
            f"--conditioning is {text!r}; expected {', '.join(CONDITIONING)}, or a number of "
            "nearest readings of each output, such as 16."
        )
    return int(text)


def _parse_bounds(text: str, option: str) -> tuple[float, float] | None:
    if text == "none":
        return None
    lower, colon, upper = text.partition(":")
    try:
        bounds = float(lower or "-inf"), float(upper or "inf")
    except ValueError:
        colon = ""
    if not colon:
        raise UsageError(
            f"{option} contains {text!r}; expected lower:upper, such as 0:100, 0: without an upper "
            "bound, or none."
        )
    return bounds


def _parse_transform(name: str, option: str) -> str | None:
    if name not in TRANSFORMS:
        raise UsageError(
            f"{option} contains {name!r}; expected one of {', '.join(TRANSFORMS)}, or a transform "
            "for each output, such as Cd=log,pH=none."
        )
    return None if name == "none" else name
