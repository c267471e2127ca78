"""The command `emgpr fit`."""

import os
from pathlib import Path
from tempfile import gettempdir
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from emgpr.cli.errors import DataError, UsageError, reading_data
from emgpr.cli.files import check_model_output
from emgpr.cli.options import EstimatorOptions, Force
from emgpr.cli.tables import read_training_data
from emgpr.user_warnings import warn

if TYPE_CHECKING:
    from emgpr.estimators import EMGPR
    from emgpr.planning import Plan


def fit(
    data: Annotated[Path, typer.Argument(help="Training data: .csv, .tsv, .parquet, .nc, …")],
    options: EstimatorOptions,
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
    force: Force = False,
) -> None:
    """Fit a model to a table of coordinates and readings.

    Empty cells are treated as missing readings. The command checks the table and estimates how
    long the fit will take. It then fits the model and writes it to a single file.

    \b
    Examples:
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --check
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --plan
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn -o jura.emgpr
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --log --paper -o paper.emgpr
      emgpr fit amsua.csv -x lon,lat -y ch01,ch02 --crs EPSG:4326 --paper -o swath.emgpr
    """
    model = options.estimator(n_jobs=options.jobs, device=device, checkpoint=checkpoint)
    if not (check or plan):
        _check_outputs(out, checkpoint, force)
    X, Y = read_training_data(data, model, options)
    if check:
        return
    with reading_data():
        expected = model.plan(X, Y)
    if plan or out is None:
        typer.echo(f"\n{expected}")
        return
    typer.echo(f"\nThis takes {expected.summary()}.")
    _warn_of_memory(expected)
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


def _warn_of_memory(plan: "Plan") -> None:
    try:
        available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # The system does not report its memory size.
        return
    if plan.device == "cpu" and plan.bytes > available:
        warn(
            f"The fit needs about {plan.bytes / 1e9:.0f} GB of memory, and this machine has "
            f"{available / 1e9:.0f} GB. --plan shows which step needs the most."
        )


def _save(model: "EMGPR", out: Path) -> None:
    """Write the model to `out` or, if this fails, to the temporary folder, so as not to lose it."""
    try:
        model.save(out)
    except OSError as error:
        elsewhere = Path(gettempdir()) / f"{os.getpid()}-{out.name}"
        model.save(elsewhere)
        raise DataError(
            f"{out} could not be written ({error.strerror or error}); the model was written to "
            f"{elsewhere}."
        ) from error


def _summary(model: "EMGPR") -> str:
    """Describe the transforms, the variance shares, and any outputs predicted independently."""
    outputs = zip(model.output_names_, model.transforms_, strict=True)
    lines = [
        "Transforms: " + ", ".join(f"{name} {transform or 'none'}" for name, transform in outputs),
        "Share of each output's variance from each latent process and from noise:",
        model.variance_shares_.to_string(float_format="{:.2f}".format),
    ]
    alone = model.alone_.get("site", [])
    if alone:
        lines.append(
            "Predicted independently, because the other outputs do not help: " + ", ".join(alone)
        )
    return "\n".join(lines)
