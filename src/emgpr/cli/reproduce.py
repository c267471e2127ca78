"""`emgpr reproduce`: the paper's tables and figures, and our own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from emgpr.cli.complaints import INTERRUPTED, complain, folder, progress, reading
from emgpr.cli.options import Jobs

reproduce = typer.Typer(
    no_args_is_help=True, help="The paper's tables and figures, and ours, run anew."
)

AsJson = Annotated[bool, typer.Option("--json", help="Results as JSON on stdout.")]


@reproduce.command()
def jura(
    out: Annotated[Path, typer.Option(help="Folder for rows, table and figures.")] = Path(
        "results/jura"
    ),
    restarts: Annotated[int, typer.Option(min=1, help="Starts of every model of Table 1.")] = 10,
    figure_restarts: Annotated[
        int, typer.Option(min=1, help="Starts of every model of the figures.")
    ] = 10,
    as_json: AsJson = False,
    n_jobs: Jobs = -1,
) -> None:
    """Table 1 (cadmium in the Swiss Jura) and the errors against mini-batch size.

    Minutes. Every fit is a line of rows.jsonl; stopped, the same command goes on from there.

    \b
    Examples:
      emgpr reproduce jura
      emgpr reproduce jura --restarts 2 --figure-restarts 2 --json
    """
    rows_file = folder(out) / "rows.jsonl"

    from emgpr.experiments import jura as experiment
    from emgpr.experiments import jura_results as results

    with _stoppable(rows_file):
        rows = experiment.reproduce(
            rows_file,
            restarts=restarts,
            figure_restarts=figure_restarts,
            n_jobs=n_jobs,
            verbose=progress(),
        )
    table, sizes = results.table_1(rows), results.batch_sizes(rows)
    figures = results.draw(sizes, out)
    text = "\n\n".join(
        [
            "# Jura",
            results.TABLE_1_CAPTION,
            results.table_1_text(table),
            results.BATCH_SIZES_CAPTION,
            results.batch_sizes_text(sizes),
        ]
    )
    _hand_over(text, {"table_1": table, "batch_sizes": sizes}, [rows_file, *figures], out, as_json)


@reproduce.command()
def atms(
    tdr: Annotated[Path, typer.Option(help="Temperatures: a TATMS… or SATMS… file.")],
    geo: Annotated[Path, typer.Option(help="Their geolocation: the GATMO… file.")],
    out: Annotated[Path, typer.Option(help="Folder for rows and tables.")] = Path("results/atms"),
    experiments: Annotated[int, typer.Option(min=1, help="Draws of 1000 sites.")] = 10,
    as_json: AsJson = False,
    n_jobs: Jobs = -1,
) -> None:
    """Errors on ten channels of a satellite sounder (Table 2 and the supplement's Table 1).

    Hours. Every fit is a line of rows.jsonl; stopped, the same command goes on from there.

    \b
    Examples:
      emgpr reproduce atms --tdr TATMS_….h5 --geo GATMO_….h5
      emgpr reproduce atms --tdr TATMS_….h5 --geo GATMO_….h5 --experiments 1 --n-jobs 2
    """
    rows_file = folder(out) / "rows.jsonl"
    with reading():
        from emgpr.datasets import read_atms
        from emgpr.experiments import atms as experiment

        swath = read_atms(tdr, geo)
        experiment.usable(swath, experiment.AS_PRINTED)

    from emgpr.experiments import atms_results as results

    with _stoppable(rows_file):
        rows = experiment.reproduce(
            swath, rows_file, experiments=experiments, n_jobs=n_jobs, verbose=progress()
        )
    mse, mae = results.summary(rows, "mse"), results.summary(rows, "mae")
    text = "\n\n".join(
        [
            "# ATMS",
            results.caption("mse", mse),
            results.text(mse),
            results.caption("mae", mae),
            results.text(mae),
        ]
    )
    _hand_over(text, {"mse": mse, "mae": mae}, [rows_file], out, as_json)


@reproduce.command()
def choices(
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of further data: CSV files, inputs in columns named x_…."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for rows and tables.")] = Path(
        "results/choices"
    ),
    folds: Annotated[int, typer.Option(min=1, max=4, help="Quarters of the sites left out.")] = 2,
    as_json: AsJson = False,
    n_jobs: Jobs = -1,
) -> None:
    """Why the defaults are what they are: candidates cross-validated on training data.

    Hours. Every fit is a line of rows.jsonl; stopped, the same command goes on from there.

    \b
    Examples:
      emgpr reproduce choices
      emgpr reproduce choices --data more --folds 1
    """
    rows_file = folder(out) / "rows.jsonl"
    from emgpr.experiments import choices as experiment
    from emgpr.experiments import choices_results as results

    with reading():
        tables = experiment.embedded() | ({} if data is None else experiment.from_folder(data))
    with _stoppable(rows_file):
        rows = experiment.reproduce(
            tables, rows_file, folds=folds, n_jobs=n_jobs, verbose=progress()
        )
    text = "\n\n".join(
        [
            "# Choices",
            results.COORDINATES_CAPTION,
            results.coordinates_text(rows),
            results.WITHHELD_CAPTION,
            results.withheld_text(rows),
        ]
    )
    _hand_over(text, {"rows": rows}, [rows_file], out, as_json)


@reproduce.command()
def rules(
    out: Annotated[Path, typer.Option(help="Folder for rows and table.")] = Path("results/rules"),
    folds: Annotated[int, typer.Option(min=1, max=4, help="Quarters of the sites left out.")] = 2,
    as_json: AsJson = False,
    n_jobs: Jobs = -1,
) -> None:
    """The combination rules on Jura and AMSU-A: error, log density, coverage.

    Minutes. Every fit is a line of rows.jsonl; stopped, the same command goes on from there.

    \b
    Examples:
      emgpr reproduce rules
      emgpr reproduce rules --folds 1
    """
    rows_file = folder(out) / "rows.jsonl"
    from emgpr.experiments import rules as experiment

    with _stoppable(rows_file):
        rows = experiment.reproduce(rows_file, folds=folds, n_jobs=n_jobs, verbose=progress())
    text = "\n\n".join(["# Combination rules", experiment.CAPTION, experiment.text(rows)])
    _hand_over(text, {"rows": rows}, [rows_file], out, as_json)


@reproduce.command()
def truth(
    out: Annotated[Path, typer.Option(help="Folder for rows and table.")] = Path("results/truth"),
    draws: Annotated[int, typer.Option(min=2, help="Tables drawn from the model.")] = 50,
    sites: Annotated[int, typer.Option(min=20, help="Sites of each.")] = 400,
    as_json: AsJson = False,
    n_jobs: Jobs = -1,
) -> None:
    """Tables drawn from the model: is the truth found, and do intervals hold what they say?

    Half an hour. Every fit is a line of rows.jsonl; stopped, the same command goes on from there.

    \b
    Examples:
      emgpr reproduce truth
      emgpr reproduce truth --draws 10 --sites 200
    """
    rows_file = folder(out) / "rows.jsonl"
    from emgpr.experiments import truth as experiment

    with _stoppable(rows_file):
        rows = experiment.reproduce(
            rows_file, draws=draws, sites=sites, n_jobs=n_jobs, verbose=progress()
        )
    text = "\n\n".join(["# Known truth", experiment.CAPTION, experiment.text(rows)])
    _hand_over(text, {"rows": rows}, [rows_file], out, as_json)


@contextmanager
def _stoppable(rows_file: Path) -> Iterator[None]:
    """While rows are worked out: tell what is there before, and how to go on after ctrl-C."""
    from emgpr.experiments.rows import read

    with reading():
        n_rows = len(read(rows_file))
    if n_rows:
        typer.echo(
            f"{n_rows} rows are in {rows_file}; those asked for are kept, not run again. "
            "Delete the file to start afresh.",
            err=True,
        )
    try:
        yield
    except KeyboardInterrupt as stop:
        raise complain(
            f"stopped. {len(read(rows_file))} rows are in {rows_file}; the same command goes on "
            "from there.",
            INTERRUPTED,
        ) from stop


def _hand_over(
    text: str, results: dict[str, Any], files: list[Path], out: Path, as_json: bool
) -> None:
    """Table to file and stdout, or JSON to stdout; where everything is."""
    table = out / "table.md"
    table.write_text(text + "\n", encoding="utf-8")
    files = [table, *files]
    if as_json:
        typer.echo(json.dumps(results | {"files": [str(file) for file in files]}, indent=1))
    else:
        typer.echo(text + "\n\nWritten: " + ", ".join(map(str, files)))
