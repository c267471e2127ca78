"""The command `emgpr validate`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from emgpr.cli.errors import UsageError, progress, reading_data
from emgpr.cli.files import check_table_output, is_table, read_model_with_data
from emgpr.cli.options import EstimatorOptions, Force
from emgpr.cli.tables import read_training_data
from emgpr.user_warnings import warn

if TYPE_CHECKING:
    import pandas as pd

By = Literal["site", "block", "output"]

N_FOLDS = 5  # unless --folds is given


def validate(
    source: Annotated[
        Path,
        typer.Argument(metavar="DATA|MODEL", help="A table (with -x and -y) or a fitted model."),
    ],
    options: EstimatorOptions,
    by: Annotated[
        By,
        typer.Option(help="What to leave out: a site, a block of sites, or one output at a site."),
    ] = "site",
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Compare a model that uses approximations with an exact model."
        ),
    ] = False,
    folds: Annotated[
        int | None,
        typer.Option(min=2, help=f"Number of folds, for a table only; default: {N_FOLDS}."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File for all readings and predictions: .csv, …"),
    ] = None,
    force: Force = False,
) -> None:
    """Measure the accuracy of predictions by cross-validation.

    Given a table, the command cross-validates EMGPR, independent Gaussian processes and ICM, and
    compares their errors, paired by reading. This takes minutes. Given a fitted model, the command
    predicts each reading from other readings without refitting the parameters. This takes
    seconds, but the errors are optimistic, since the parameters were fitted to all readings. With
    --exact, a model that uses approximations is compared with an exact model, using about 900 of
    the readings.

    \b
    mae         mean absolute error; lower is better
    nlpd        mean negative log predictive density; lower is better
    coverage    share of readings inside their 95% prediction intervals; should be near 0.95

    \b
    Examples:
      emgpr validate jura.emgpr
      emgpr validate jura.emgpr --by block
      emgpr validate jura.emgpr --exact
      emgpr validate jura.csv -x Xloc,Yloc -y Cd,Ni --log --paper --by block --folds 2
      emgpr validate jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --log --by output --folds 3 -o cv.csv
    """
    if out is not None:
        check_table_output(out, force)
    if options.inputs is not None or options.outputs is not None:
        if exact:
            raise UsageError("--exact requires a fitted model. Do not give -x and -y.")
        rows = _validate_table(source, options, by, folds or N_FOLDS)
    elif options.has_settings() or folds:
        raise UsageError(
            "A fitted model accepts only --by, --exact, --seed and --out, since it contains its "
            "settings and data. For a table, give its columns with -x and -y."
        )
    else:
        rows = _validate_model(source, by, exact, options.seed)
    if out is not None and rows.empty:
        typer.echo("There are no rows to write.")
    elif out is not None:
        with reading_data():
            from emgpr.io import write_table

            write_table(rows, out)
        typer.echo(f"Written: {out}")


def _validate_model(source: Path, by: By, exact: bool, seed: int) -> "pd.DataFrame":
    """Print the errors of a fitted model or of its approximations, and return its predictions."""
    if is_table(source):
        raise UsageError(
            f"{source} is a table; give its columns with -x and -y, or give a fitted model."
        )
    model = read_model_with_data(source, "cross-validation")
    with reading_data():
        if exact:
            report = model.approximation_report(random_state=seed)
            typer.echo(str(report))
            return report.rows()
        results = model.cross_validate(by)
        typer.echo(f"{results}\n\n{model.transfer_report(by)}")
        return results.rows()


def _validate_table(
    source: Path, options: EstimatorOptions, by: By, n_folds: int
) -> "pd.DataFrame":
    """Print the errors of EMGPR and of simpler models, and return all their predictions."""
    model = options.estimator()
    X, Y = read_training_data(source, model, options)
    with reading_data():
        from emgpr import ICM, IndependentGP, compare
        from emgpr.estimators import MultiOutputGP

        params = model.get_params(deep=False)
        shared = {key: params[key] for key in ("kernel", "output_transform", "crs", "random_state")}
        models: dict[str, MultiOutputGP] = {"EMGPR": model, "no transfer": IndependentGP(**shared)}
        if Y.shape[1] > 1:
            models["ICM"] = ICM(**shared)
        comparison = compare(
            models, X, Y, by=by, n_folds=n_folds, random_state=options.seed, n_jobs=options.jobs,
            verbose=progress(),
        )  # fmt: skip
        for note, n_fits in comparison.notes.items():
            warn(f"In {n_fits} of {n_folds} fits: {note}")
        typer.echo(f"\n{comparison}")
        return comparison.rows()
