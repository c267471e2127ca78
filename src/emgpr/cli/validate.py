"""The command `emgpr validate`."""

import sys
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from emgpr.cli.errors import UsageError, progress, reading_data
from emgpr.cli.files import check_table_output, is_table, read_model_with_data
from emgpr.cli.long_fits import Yes, confirm_long_validation
from emgpr.cli.options import EstimatorOptions, Force, TableOptions
from emgpr.cli.parsing import parse_names
from emgpr.cli.streams import copy_stdin, is_stdout, shown_name, write_table_to
from emgpr.cli.tables import read_training_data
from emgpr.user_warnings import warn

if TYPE_CHECKING:
    import pandas as pd

By = Literal["site", "block", "output", "gap"]

N_FOLDS = 5  # unless --folds is given


def validate(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="DATA|MODEL",
            help="A table (with -x and -y; - for stdin) or a fitted model.",
            callback=copy_stdin,
        ),
    ],
    options: EstimatorOptions,
    reading: TableOptions,
    by: Annotated[
        By,
        typer.Option(
            help="What to leave out: a site, a block of sites, or one output at a site (output) "
            "or in a block (gap)."
        ),
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
        typer.Option("--out", "-o", help="All readings and predictions: .csv, …; - for stdout."),
    ] = None,
    force: Force = False,
    yes: Yes = False,
) -> None:
    """Measure the accuracy of predictions by cross-validation.

    Given a table, the command cross-validates EMGPR, independent Gaussian processes and ICM, and
    compares their errors, paired by reading. This takes minutes; if it takes more than ten, the
    command asks before it starts. Given a fitted model, the command predicts each reading from
    other readings without refitting the parameters. This takes seconds, but the errors are
    optimistic, since the parameters were fitted to all readings. With --exact, a model that uses
    approximations is compared with an exact model, using about 900 of the readings.

    \b
    mae         mean absolute error; lower is better
    nlpd        mean negative log predictive density; lower is better
    coverage    share of readings inside their 95% prediction intervals; should be near 0.95

    \b
    Examples:
      emgpr validate jura.emgpr
      emgpr validate jura.emgpr --by block --outputs Cd
      emgpr validate jura.emgpr --exact
      emgpr validate jura.csv -x Xloc,Yloc -y Cd,Ni --log --paper --by block --folds 2
      emgpr validate jura.csv -x Xloc,Yloc -y Cd,Ni,Zn --log --by output --folds 3 -o cv.csv
    """
    if out is not None:
        check_table_output(out, force)
    # If the rows are written to stdout, everything else is printed to stderr.
    with redirect_stdout(sys.stderr) if is_stdout(out) else nullcontext():
        if options.inputs is None and not is_table(source):
            rows = _validate_model(source, options, reading, by, exact, folds)
        else:
            if exact:
                raise UsageError("--exact requires a fitted model. Omit -x and -y.")
            rows = _validate_table(source, options, reading, by, folds or N_FOLDS, yes)
    if out is not None and rows.empty:
        typer.echo("There are no rows to write.", err=is_stdout(out))
    elif out is not None:
        with reading_data():
            write_table_to(out, rows)
        typer.echo(f"Written: {shown_name(out)}", err=is_stdout(out))


def _validate_model(
    source: Path,
    options: EstimatorOptions,
    reading: TableOptions,
    by: By,
    exact: bool,
    folds: int | None,
) -> "pd.DataFrame":
    """Print the errors of a fitted model or of its approximations, and return its predictions."""
    if replace(options, outputs=None).has_settings() or reading != TableOptions() or folds:
        raise UsageError(
            "A fitted model accepts only --by, --exact, --outputs, --seed and --out, since it "
            "contains its settings and data. For a table, give its columns with -x and -y."
        )
    if exact and options.outputs is not None:
        raise UsageError("--exact compares all outputs. Omit --outputs.")
    model = read_model_with_data(source, "cross-validation")
    names = model.output_names_
    kept = parse_names(options.outputs, "--outputs", names) or names
    with reading_data():
        if exact:
            from emgpr.estimators import MultiOutputGP

            if not isinstance(model, MultiOutputGP):
                raise UsageError(
                    f"{source} contains a model of class {type(model).__name__}, which cannot be "
                    "compared with an exact model. Omit --exact."
                )
            report = model.approximation_report(random_state=options.seed)
            typer.echo(str(report))
            return report.rows()
        results = model.cross_validate(by).for_outputs(kept)
        typer.echo(f"{results}\n\n{model.transfer_report(by).for_outputs(kept)}")
        return results.rows()


def _validate_table(
    source: Path, options: EstimatorOptions, reading: TableOptions, by: By, n_folds: int, yes: bool
) -> "pd.DataFrame":
    """Print the errors of EMGPR and of simpler models, and return all their predictions."""
    if options.inputs is None:
        raise UsageError(
            f"{source} is a table; give its columns with -x and -y, or give a fitted model."
        )
    model = options.estimator()
    X, Y = read_training_data(source, model, options, reading)
    with reading_data():
        from emgpr import ICM, IndependentGP, compare
        from emgpr.estimators import MultiOutputGP

        params = model.get_params(deep=False)
        shared = {key: params[key] for key in ("kernel", "output_transform", "crs", "random_state")}
        settings = options.model_settings()
        shared |= {
            key: settings[key] for key in ("latent_learner", "conditioning") if key in settings
        }
        models: dict[str, MultiOutputGP] = {"EMGPR": model, "no transfer": IndependentGP(**shared)}
        if Y.shape[1] > 1:
            models["ICM"] = ICM(**shared)
        confirm_long_validation(models, X, Y, n_folds, options.jobs, yes=yes)
        comparison = compare(
            models, X, Y, by=by, n_folds=n_folds, random_state=options.seed, n_jobs=options.jobs,
            verbose=progress(),
        )  # fmt: skip
        for note, n_fits in comparison.notes.items():
            warn(f"In {n_fits} of {n_folds} fits: {note}")
        typer.echo(f"\n{comparison}")
        return comparison.rows()
