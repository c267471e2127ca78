"""The command `emgpr reproduce`, which computes the tables of the paper and documentation."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from emgpr.cli.errors import progress, reading_data
from emgpr.cli.files import check_output, create_folder
from emgpr.cli.options import check_processes, expand_groups

Row = dict[str, Any]

ROWS, TABLE = "rows.jsonl", "table.md"
Out = Annotated[Path, typer.Option(help="Folder for rows, tables and figures.")]
Folds = Annotated[int, typer.Option(min=1, max=4, help="Number of folds to use, out of four.")]


@dataclass(frozen=True)
class Study:
    """Options common to all studies. A study stores each fit's result as a line of a file."""

    as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False
    n_jobs: Annotated[
        int,
        typer.Option(
            help="Number of parallel fits; -1 for one per core.", callback=check_processes
        ),
    ] = -1

    def run(self, out: Path, experiment: ModuleType, *data: Any, **settings: Any) -> list[Row]:
        """Run the fits whose results are not in the file yet, and return all results.

        The module of the experiment has the functions `jobs`, which lists the fits, and
        `reproduce`, which runs them.
        """
        from emgpr.experiments.rows import count_finished

        file, jobs = create_folder(out) / ROWS, experiment.jobs(*data, **settings)
        check_output(out / TABLE, force=True)
        with reading_data():
            finished = count_finished(jobs, file)
        if finished:
            again = "which is not run again" if finished == 1 else "which are not run again"
            typer.echo(
                f"{file} contains the results of {_fits(finished)}, {again}. Delete the file to "
                "start from the beginning.",
                err=True,
            )
        try:
            rows: list[Row] = experiment.reproduce(
                *data, file, n_jobs=self.n_jobs, verbose=progress(), **settings
            )
        except KeyboardInterrupt as interrupt:
            finished = count_finished(jobs, file)
            interrupt.add_note(
                f"{file} contains the results of {_fits(finished)}. Run the same command to resume."
            )
            raise
        return rows

    def write(
        self,
        out: Path,
        title: str,
        tables: Mapping[str, str],
        results: dict[str, Any],
        figures: Sequence[Path] = (),
    ) -> None:
        """Write the tables to a file, and print either the tables or, with --json, the results.

        `tables` is a dict of the tables, with their captions as keys.
        """
        sections = [f"# {title}", *(part for pair in tables.items() for part in pair)]
        text, file = "\n\n".join(sections), out / TABLE
        from emgpr.io.files import replace_when_complete

        with replace_when_complete(file) as draft:
            draft.write_text(text + "\n", encoding="utf-8")
        files = [str(path) for path in (file, out / ROWS, *figures)]
        if self.as_json:
            typer.echo(json.dumps(results | {"files": files}, indent=1))
        else:
            typer.echo(f"{text}\n\nWritten: {', '.join(files)}")


def _fits(n: int) -> str:
    return "1 fit" if n == 1 else f"{n} fits"


def jura(
    study: Study,
    out: Out = Path("results/jura"),
    restarts: Annotated[int, typer.Option(min=1, help="Restarts per model in Table 1.")] = 10,
    figure_restarts: Annotated[
        int, typer.Option(min=1, help="Restarts per model in the figures.")
    ] = 10,
) -> None:
    """Reproduce Table 1 and Figures 1 and 2 (metals in the Swiss Jura). Takes minutes.

    \b
    Examples:
      emgpr reproduce jura
      emgpr reproduce jura --restarts 2 --figure-restarts 2 --json
    """
    from emgpr.experiments import jura as experiment
    from emgpr.experiments import jura_results as results

    rows = study.run(out, experiment, restarts=restarts, figure_restarts=figure_restarts)
    table, sizes = results.table_1(rows), results.batch_sizes(rows)
    tables = {
        results.TABLE_1_CAPTION: results.table_1_text(table),
        results.BATCH_SIZES_CAPTION: results.batch_sizes_text(sizes),
    }
    figures = results.draw(sizes, out)
    study.write(out, "Jura", tables, {"table_1": table, "batch_sizes": sizes}, figures)


def atms(
    tdr: Annotated[Path, typer.Option(help="Temperatures: a TATMS… or SATMS… file.")],
    geo: Annotated[Path, typer.Option(help="Geolocation: the matching GATMO… file.")],
    study: Study,
    out: Out = Path("results/atms"),
    experiments: Annotated[
        int, typer.Option(min=1, help="Number of random samples of 1000 sites.")
    ] = 10,
) -> None:
    """Reproduce Tables 2 and 3 and Supplementary Table 1 (satellite sounder). Takes up to 2 hours.

    The 300 fits take 1.7 hours of processor time, or six and a half minutes on 16 cores.

    \b
    Examples:
      emgpr reproduce atms --tdr TATMS_….h5 --geo GATMO_….h5
      emgpr reproduce atms --tdr TATMS_….h5 --geo GATMO_….h5 --experiments 1 --n-jobs 2
    """
    with reading_data():
        from emgpr.datasets import read_atms
        from emgpr.experiments import atms as experiment

        swath = read_atms(tdr, geo)
        experiment.usable(swath, experiment.AS_PRINTED)

    from emgpr.experiments import atms_results as results

    rows = study.run(out, experiment, swath, experiments=experiments)
    mse, mae = results.summary(rows, "mse"), results.summary(rows, "mae")
    tables = {
        results.caption("mse", mse): results.text(mse),
        results.caption("mae", mae): results.text(mae),
    }
    study.write(out, "ATMS", tables, {"mse": mse, "mae": mae})


def choices(
    study: Study,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with additional CSV files, whose input columns have names such as x_1."
        ),
    ] = None,
    out: Out = Path("results/choices"),
    folds: Folds = 2,
) -> None:
    """Compare the default settings with alternatives by cross-validation. Takes hours.

    \b
    Examples:
      emgpr reproduce choices
      emgpr reproduce choices --data more --folds 1
    """
    from emgpr.experiments import choices as experiment
    from emgpr.experiments import choices_results as results

    with reading_data():
        data_sets = experiment.embedded() | ({} if data is None else experiment.from_folder(data))
    rows = study.run(out, experiment, data_sets, folds=folds)
    tables = {
        results.COORDINATES_CAPTION: results.coordinates_text(rows),
        results.WITHHELD_CAPTION: results.withheld_text(rows),
    }
    study.write(out, "Choices", tables, {"rows": rows})


def rules(study: Study, out: Out = Path("results/rules"), folds: Folds = 2) -> None:
    """Compare the rules for combining ensemble members on two data sets. Takes minutes.

    \b
    Examples:
      emgpr reproduce rules
      emgpr reproduce rules --folds 1
    """
    from emgpr.experiments import rules as experiment

    rows = study.run(out, experiment, folds=folds)
    study.write(
        out, "Combination rules", {experiment.CAPTION: experiment.text(rows)}, {"rows": rows}
    )


def truth(
    study: Study,
    out: Out = Path("results/truth"),
    draws: Annotated[int, typer.Option(min=2, help="Number of simulated tables.")] = 50,
    sites: Annotated[int, typer.Option(min=20, help="Number of sites in each table.")] = 400,
) -> None:
    """Compare parameters fitted to simulated data with their true values. Takes half an hour.

    \b
    Examples:
      emgpr reproduce truth
      emgpr reproduce truth --draws 10 --sites 200
    """
    from emgpr.experiments import truth as experiment

    rows = study.run(out, experiment, draws=draws, sites=sites)
    study.write(out, "Known truth", {experiment.CAPTION: experiment.text(rows)}, {"rows": rows})


reproduce = typer.Typer(
    no_args_is_help=True,
    help="Reproduce the tables and figures of the paper and the documentation.\n\n"
    f"The result of each fit is appended to {ROWS} in the folder given by --out. After an "
    "interruption, the same command runs the remaining fits.",
)
for command in (jura, atms, choices, rules, truth):
    reproduce.command()(expand_groups(command))
