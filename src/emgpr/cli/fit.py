"""`emgpr fit`."""

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from time import perf_counter
from typing import Annotated, Any

import typer

from emgpr.cli import options as given
from emgpr.cli.complaints import BAD_DATA, USAGE, complain, progress, reading, say
from emgpr.cli.files import codes, model_to_write, read_columns, with_places


def fit(
    data: Annotated[Path, typer.Argument(help="The table: .csv, .tsv, .parquet, .nc, …")],
    inputs: given.Inputs = None,
    outputs: given.Outputs = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The model: a new file, as jura.emgpr.")
    ] = None,
    log: given.Log = False,
    transform: given.Transform = None,
    crs: given.Crs = None,
    paper: given.Paper = False,
    kernel: given.KernelName = None,
    missing: given.Missing = None,
    seed: given.Seed = 0,
    jobs: given.Processes = 1,
    device: given.Device = "cpu",
    checkpoint: Annotated[
        Path | None, typer.Option(help="File that keeps a long fit: killed, it can go on.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Check the table, and stop.")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show steps, time, memory, approximations, and stop.")
    ] = False,
    force: given.Force = False,
) -> None:
    """Learn a model from a table of places and of what was measured there.

    Empty cells were not measured. First the table is looked at and the time is estimated; then
    kernels, transforms, weights and noise are learned from the data, and kept in one file.

    \b
    Examples:
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --check
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --plan
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn -o jura.emgpr
      emgpr fit jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --log --paper -o paper.emgpr
      emgpr fit amsua.csv -x lon,lat -y ch01,ch02 --crs EPSG:4326 --paper -o swath.emgpr
    """
    x, y = columns(inputs, outputs)
    model = model_of(
        y, log=log, transform=transform, crs=crs, paper=paper, kernel=kernel, seed=seed, jobs=jobs,
        device=device,
    )  # fmt: skip
    if not (check or plan):
        if out is None:
            raise complain("name the file for the model: -o jura.emgpr", USAGE)
        model_to_write(out, force)
        if checkpoint is not None:
            model_to_write(checkpoint, force=True)
            if checkpoint.resolve() == out.resolve():
                raise complain("--checkpoint and -o name the same file; they are two.", USAGE)
            model.set_params(checkpoint=checkpoint)
    X, Y = read_places(data, x, y, missing)
    doubts = look_at(model, X, Y, missing)
    if check:
        return
    if plan:
        with reading():
            typer.echo(f"\n{model.plan(X, Y)}")
        return
    foresee(model, X, Y)
    assert out is not None
    start = perf_counter()
    with already_told(doubts):
        model.fit(X, Y)
    took = perf_counter() - start
    save(model, out)
    typer.echo("\n" + told(model, took))
    typer.echo(f"Written: {out} ({out.stat().st_size / 1000:.0f} kB)")
    approximated(model, out)


def approximated(model: Any, out: Path) -> None:
    """Say what is not exact, and where to see what that costs."""
    from emgpr.estimators.approximations import of_model

    found = of_model(model)
    if found:
        typer.echo("\n".join(["Approximated:", *(f"  {line}" for line in found)]))
        typer.echo(f"What that costs: emgpr validate {out} --exact")


def columns(inputs: str | None, outputs: str | None) -> tuple[list[str], list[str]]:
    """The names that -x and -y give."""
    if inputs is None or outputs is None:
        raise complain("name the columns: -x those of the place, -y those measured there.", USAGE)
    x, y = given.words(inputs, "-x"), given.words(outputs, "-y")
    both = [name for name in y if name in x]
    if both:
        raise complain(f"{both[0]!r} is in -x and in -y; a column is one or the other.", USAGE)
    return x, y


def model_of(
    outputs: list[str],
    *,
    log: bool,
    transform: str | None,
    crs: str | None,
    paper: bool,
    kernel: str | None,
    seed: int,
    jobs: int = 1,
    device: str = "cpu",
) -> Any:
    """The estimator that the options ask for, its settings checked."""
    chosen = given.transform_of(log, transform, outputs, None if paper else "auto")
    with reading():  # an extra that is missing, a crs that is none
        from sklearn.gaussian_process.kernels import RBF, Matern

        from emgpr import EMGPR
        from emgpr.estimators.settings import check_settings

        kernels = {
            "auto": "auto",
            "rbf": RBF(),
            "matern12": Matern(nu=0.5),
            "matern32": Matern(nu=1.5),
            "matern52": Matern(nu=2.5),
        }
        own: dict[str, Any] = {} if kernel is None else {"kernel": kernels[kernel]}
        make = EMGPR.paper if paper else EMGPR
        model = make(
            **own, transform=chosen, crs=crs, random_state=seed, n_jobs=jobs, device=device,
            verbose=progress(),
        )  # fmt: skip
        try:
            check_settings(model)
        except ValueError as error:
            raise complain(error, USAGE) from error
    return model


def read_places(data: Path, x: list[str], y: list[str], missing: str | None) -> tuple[Any, Any]:
    """Inputs and outputs, of the rows that have a place."""
    table = read_columns(data, [*x, *y], codes(missing))
    table = table[with_places(table, x, "they are left out")]
    if not len(table):
        raise complain(f"{data} has no row with a place: {', '.join(x)}.", BAD_DATA)
    return table[x], table[y]


def look_at(model: Any, X: Any, Y: Any, missing: str | None) -> list[str]:
    """Show what is there; say what is doubtful, and give up on codes taken for measurements."""
    with reading():
        look = model.first_look(X, Y)
    typer.echo(str(look))
    found = [doubt for doubt in look.doubts if doubt.kind == "code"]
    for doubt in look.doubts:
        if doubt.kind != "code" or missing is not None:
            here = " Here: --crs EPSG:4326." if doubt.kind == "degrees" else ""
            say(f"warning: {doubt}{here}")
    if found and missing is None:
        every = ",".join(dict.fromkeys(f"{doubt.code:g}" for doubt in found))
        raise complain(
            f"{found[0]} Here: --missing {every}; or --missing none, if it was measured.", BAD_DATA
        )
    return list(look.doubts)


def foresee(model: Any, X: Any, Y: Any) -> None:
    """Say how long it will take, and whether there is memory enough."""
    with reading():
        plan = model.plan(X, Y)
    typer.echo(f"\nThis takes {plan.in_short()}.")
    try:
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not told on this system
        return
    if plan.device == "cpu" and plan.bytes > there:
        say(
            f"warning: about {plan.bytes / 1e9:.0f} GB are needed, and this machine has "
            f"{there / 1e9:.0f} GB in all. --plan shows for what."
        )


@contextmanager
def already_told(doubts: list[str]) -> Iterator[None]:
    """While the model is fitted: what was said of the table is not said again."""
    with warnings.catch_warnings():
        for doubt in doubts:
            warnings.filterwarnings("ignore", message=re.escape(doubt))
        yield


def save(model: Any, out: Path) -> None:
    """Write the model; if that fails, somewhere else, since it may have taken hours."""
    try:
        model.save(out)
    except OSError as error:
        refuge = Path(gettempdir()) / f"{os.getpid()}-{out.name}"
        model.save(refuge)
        raise complain(
            f"{out} could not be written ({error.strerror or error}); the model is in {refuge}.",
            BAD_DATA,
        ) from error


def told(model: Any, took: float) -> str:
    """What was learned, in a few lines."""
    names = model.output_names_
    transforms = ", ".join(
        f"{name} {spec or 'none'}" for name, spec in zip(names, model.transforms_, strict=True)
    )
    lines = [f"Learned in {took:.1f} s.", f"Transforms: {transforms}"]
    lines.append("Share of each output's variance by latent process, and of noise:")
    lines.append(model.variance_shares_.to_string(float_format="{:.2f}".format))
    alone = model.alone_.get("site", [])
    if alone:
        lines.append(f"Not helped by the others, and predicted alone: {', '.join(alone)}")
    return "\n".join(lines)
