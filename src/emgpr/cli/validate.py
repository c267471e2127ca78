"""`emgpr validate`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from emgpr.cli import options as given
from emgpr.cli.complaints import USAGE, complain, progress, reading, say
from emgpr.cli.files import TABLES, read_model, to_write
from emgpr.cli.fit import columns, look_at, model_of, read_places


def validate(
    source: Annotated[
        Path,
        typer.Argument(metavar="DATA|MODEL", help="A table, with -x and -y; or a fitted model."),
    ],
    inputs: given.Inputs = None,
    outputs: given.Outputs = None,
    by: Annotated[
        given.By,
        typer.Option(
            help="What is left out together: a place, a block of neighbours, single readings."
        ),
    ] = "site",
    exact: Annotated[
        bool, typer.Option("--exact", help="What approximations cost, of a fitted model.")
    ] = False,
    folds: Annotated[
        int | None, typer.Option(min=2, help="Fits of each model, of a table: 5 if not said.")
    ] = None,
    log: given.Log = False,
    transform: given.Transform = None,
    crs: given.Crs = None,
    paper: given.Paper = False,
    kernel: given.KernelName = None,
    missing: given.Missing = None,
    seed: given.Seed = 0,
    jobs: given.Processes = 1,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Every reading and what was predicted: .csv, …"),
    ] = None,
    force: given.Force = False,
) -> None:
    """How good predictions are, by leaving out what was measured.

    Of a table: EMGPR is fitted again and again without some of the readings, and so are the same
    without transfer and ICM; their errors are compared reading by reading (minutes). Of a fitted
    model: it predicts each reading from the others with what it has learned (seconds). That
    flatters, since what is left out took part in learning. With --exact, a model of very many
    readings, which is approximated, is put beside an exact one on some 900 of them.

    \b
    mae, nlpd   mean absolute error; mean negative log density of the readings: less is better
    coverage    share of readings inside their 95% intervals: 0.95 is honest

    \b
    Examples:
      emgpr validate jura.emgpr
      emgpr validate jura.emgpr --by block
      emgpr validate jura.emgpr --exact
      emgpr validate jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --log --paper --by block --folds 3
      emgpr validate jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --by output --folds 3 -o rows.csv
    """
    if out is not None:
        from emgpr.io.tables import KINDS

        to_write(out, force, KINDS)
    if inputs is None and outputs is None:
        if log or paper or any((transform, crs, kernel, missing, folds)):
            raise complain(
                "a fitted model keeps its settings and its data: only --by, --exact and --out go "
                "with it.",
                USAGE,
            )
        rows = _beside_exact(source, seed) if exact else _of_a_model(source, by)
    else:
        if exact:
            raise complain("--exact is of a fitted model; give no -x and -y.", USAGE)
        x, y = columns(inputs, outputs)
        model = model_of(
            y, log=log, transform=transform, crs=crs, paper=paper, kernel=kernel, seed=seed
        )
        X, Y = read_places(source, x, y, missing)
        look_at(model, X, Y, missing)
        rows = _of_a_table(model, X, Y, by, folds or 5, seed, jobs)
    if out is not None and rows.empty:
        typer.echo("No rows, and none written.")
    elif out is not None:
        with reading():
            from emgpr.io import write_table

            write_table(rows, out)
        typer.echo(f"Written: {out}")


def _of_a_model(source: Path, by: given.By) -> Any:
    """What it says of its own readings, left out; a row for each."""
    model = _read(source)
    with reading():
        checked = model.cross_validate(by)
        typer.echo(f"{checked}\n\n{model.transfer_report(by)}")
        return checked.rows()


def _beside_exact(source: Path, seed: int) -> Any:
    """What its approximations cost; a row for each reading left out and way to predict it."""
    model = _read(source)
    with reading():
        report = model.approximation_report(random_state=seed)
        typer.echo(str(report))
        return report.rows()


def _read(source: Path) -> Any:
    if source.name.lower().endswith(TABLES):
        raise complain(
            f"{source} is a table: name its columns with -x and -y. Or give a fitted model.", USAGE
        )
    model = read_model(source, for_readings="a validation")
    model.verbose = progress()
    return model


def _of_a_table(model: Any, X: Any, Y: Any, by: given.By, folds: int, seed: int, jobs: int) -> Any:
    """EMGPR beside the same without transfer and ICM; a row for each reading and model."""
    with reading():
        from emgpr import ICM, IndependentGP, compare

        same = {
            name: model.get_params(deep=False)[name]
            for name in ("kernel", "transform", "crs", "random_state")
        }
        models = {"EMGPR": model, "no transfer": IndependentGP(**same), "ICM": ICM(**same)}
        found = compare(
            models if Y.shape[1] > 1 else {"EMGPR": model, "no transfer": models["no transfer"]},
            X, Y, by=by, n_folds=folds, random_state=seed, n_jobs=jobs, verbose=progress(),
        )  # fmt: skip
        for note, times in found.notes.items():
            say(f"warning: in {times} of {folds} fits, {note}")
        typer.echo(f"\n{found}")
        return found.rows()
