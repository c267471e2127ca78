"""The command `emgpr fit`."""

import os
from pathlib import Path
from tempfile import gettempdir
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from emgpr.cli.errors import DataError, UsageError, reading_data
from emgpr.cli.files import check_model_output
from emgpr.cli.long_fits import Yes, confirm_long_fit
from emgpr.cli.options import EstimatorOptions, Force, TableOptions, Units
from emgpr.cli.parsing import parse_units
from emgpr.cli.streams import copy_stdin
from emgpr.cli.tables import read_training_data
from emgpr.printable import escape_controls

if TYPE_CHECKING:
    from emgpr.estimators import EMGPR


def fit(
    data: Annotated[
        Path,
        typer.Argument(
            help="Training data: .csv, .tsv, .xlsx, .parquet, .nc, …; - for stdin.",
            callback=copy_stdin,
        ),
    ],
    options: EstimatorOptions,
    reading: TableOptions,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Model file to write, such as jura.emgpr.")
    ] = None,
    device: Annotated[str, typer.Option(help="Device: cpu, cuda, torch or auto.")] = "cpu",
    checkpoint: Annotated[
        Path | None, typer.Option(help="Checkpoint file for resuming an interrupted fit.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only check the table.")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only show the steps, time and memory needed.")
    ] = False,
    units: Units = None,
    force: Force = False,
    yes: Yes = False,
) -> None:
    """Fit a model to a table of coordinates and readings.

    Empty cells are treated as missing readings. The command checks the table and estimates how
    long the fit will take. It then fits the model and writes it to a single file. Units are stored
    in this file, and other commands use them. They are given with --units, or read from NetCDF
    attributes or column headers such as "Cd (mg/kg)". Before a fit that takes more than
    ten minutes, or more memory than the machine has, the command asks whether to start.

    \b
    Examples:
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --check
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --plan
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn -o jura.emgpr
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Zn --units Cd=mg/kg,Zn=mg/kg,Xloc=km,Yloc=km -o cd.emgpr
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --log --paper -o paper.emgpr
      emgpr fit amsua.csv -x lon,lat -y ch01,ch02 --crs EPSG:4326 --paper -o swath.emgpr
    """
    inputs, outputs = options.columns()
    by_name = parse_units(units, outputs, inputs) or {}
    model = options.estimator(n_jobs=options.jobs, device=device, checkpoint=checkpoint)
    if not (check or plan):
        _check_outputs(out, checkpoint, force)
    X, Y = read_training_data(data, model, options, reading)
    if check:
        return
    for part in (X, Y):
        part.attrs["units"] = {**part.attrs.get("units", {}), **by_name}
    with reading_data():
        expected = model.plan(X, Y)
    if plan or out is None:
        typer.echo(f"\n{expected}")
        return
    typer.echo(f"\nThis takes {expected.summary()}.")
    confirm_long_fit(model, X, Y, expected, yes=yes)
    start = perf_counter()
    model.fit(X, Y)
    seconds = perf_counter() - start
    _save(model, out)
    typer.echo(f"\nFitted in {seconds:.1f} s.\n{_summary(model)}")
    typer.echo(f"Written: {out} ({out.stat().st_size / 1000:.0f} kB)")
    if model.approximations_:
        typer.echo("\n".join(["Approximated:", *(f"  {line}" for line in model.approximations_)]))
        typer.echo(f"To measure the loss of accuracy: emgpr validate {out} --exact")


def _check_outputs(out: Path | None, checkpoint: Path | None, force: bool) -> None:
    if out is None:
        raise UsageError("No file is given for the model. Add an option such as -o jura.emgpr.")
    check_model_output(out, force)
    if checkpoint is not None:
        check_model_output(checkpoint, force=True)
        if checkpoint.resolve() == out.resolve():
            raise UsageError("--checkpoint and -o are the same file; use two different files.")


def _save(model: "EMGPR", out: Path) -> None:
    """Write the model to `out` or, if this fails, to the temporary folder, so as not to lose it."""
    try:
        model.save(out)
    except OSError as error:
        elsewhere = Path(gettempdir()) / f"{os.getpid()}-{out.name[-40:]}"
        try:
            model.save(elsewhere)
        except OSError:
            raise error from None  # This disk is full, too.
        raise DataError(
            f"{out} could not be written ({error.strerror or error}); the model was written to "
            f"{elsewhere}."
        ) from error


def _summary(model: "EMGPR") -> str:
    """Describe the transforms, the variance shares, and the models that predict each output."""
    outputs = zip(model.output_names_, model.transforms_, strict=True)
    lines = [
        "Transforms: " + ", ".join(f"{name} {transform or 'none'}" for name, transform in outputs),
        "Share of each output's variance from each latent process and from noise:",
        model.variance_shares_.to_string(float_format="{:.2f}".format),
    ]
    weights = model.stacking_weights_
    if len(weights):
        lines += [
            "Weights of the models that predict each output: own process, joint model, regression "
            "on known outputs:",
            weights.to_string(float_format="{:.2f}".format),
        ]
    return escape_controls("\n".join(lines))
