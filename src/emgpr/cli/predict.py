"""The command `emgpr predict`."""

import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emgpr.cli.errors import DataError, reading_data
from emgpr.cli.files import check_table_output, read_model
from emgpr.cli.options import Force, ModelFile, Outputs, StatisticsOptions, TableOptions
from emgpr.cli.parsing import parse_names
from emgpr.cli.rounding import round_to_uncertainty
from emgpr.cli.streams import copy_stdin, is_stdout, shown_name, write_table_to
from emgpr.cli.tables import code_error, read_columns
from emgpr.cli.wording import counted

if TYPE_CHECKING:
    import pandas as pd

GIVEN = "_given"  # appended to a column of the table that has the name of a prediction


def predict(
    model: ModelFile,
    at: Annotated[
        Path,
        typer.Option(
            help="Table of locations: .csv, .xlsx, .parquet, .nc, …; - for stdin.",
            callback=copy_stdin,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Predictions: .csv, .xlsx, .parquet or .nc; - for stdout."
        ),
    ],
    statistics: StatisticsOptions,
    reading: TableOptions,
    known: Annotated[
        str | None, typer.Option(help="Outputs measured at the locations, such as Ni,Zn.")
    ] = None,
    outputs: Outputs = None,
    force: Force = False,
) -> None:
    """Predict all outputs and their standard deviations at the locations in a table.

    The table must have the input columns that the model was fitted to. The output file contains
    all columns of the table, unchanged, and then, for each output, the predicted median (<output>),
    the standard deviation (<output>_std), and any quantiles or probabilities requested. If the
    table has a column with such a name, _given is appended to the name of that column. In text
    files, predictions have six significant digits, or more if the standard deviation is small.

    Outputs named in --known must be columns of the table, and all predictions are also conditioned
    on their readings. For a known output, a second reading at the same location is predicted. With
    --at - and -o -, CSV is read from stdin and written to stdout.

    \b
    Examples:
      emgpr predict jura.emgpr --at new.csv -o predicted.csv
      emgpr predict jura.emgpr --at new.csv --known Ni,Zn -o cadmium.csv
      emgpr predict jura.emgpr --at new.csv --quantiles 0.05,0.95 --above Cd=0.8 -o risk.csv
      emgpr predict jura.emgpr --at new.csv --outputs Cd -o only-cadmium.csv
    """
    check_table_output(out, force)
    fitted = read_model(model)
    names = fitted.output_names_
    measured = parse_names(known, "--known", names)
    kept = parse_names(outputs, "--outputs", names) or names
    requested = statistics.requested(names)
    if fitted.input_spec_.feature_names is None:
        raise DataError(
            "The model was fitted to arrays, so the names of its input columns are unknown. Fit "
            "the model to a DataFrame or with emgpr fit."
        )
    inputs = list(fitted.input_spec_.feature_names)
    table, rows = read_columns(at, inputs, measured, reading, "they get no predictions")
    with reading_data():
        from emgpr.statistics import columns_by_output
        from emgpr.statistics import requested as statistics_of

        observed = rows[measured] if measured else None
        with _refusing_codes(reading.missing):
            predictions = fitted.predict_frame(rows[inputs], observed=observed, **requested)
        columns = columns_by_output(names, statistics_of(names, **requested))
        result = _beside_given_columns(
            at, reading, out, predictions, {name: columns[name] for name in kept}
        )
        units = [part.attrs.get("units", {}) for part in (table, predictions)]
        result.attrs["units"] = {**fitted.units_, **units[0], **units[1]}
        write_table_to(out, result)
    counts = f"{counted(len(rows), 'location')}, {counted(len(kept), 'output')}"
    typer.echo(f"{counts}: {shown_name(out)}", err=is_stdout(out))


def _beside_given_columns(
    at: Path,
    reading: TableOptions,
    out: Path,
    predictions: "pd.DataFrame",
    columns: dict[str, list[str]],
) -> "pd.DataFrame":
    """Return a table with all columns of the given table, followed by columns of predictions."""
    from emgpr.io.verbatim import is_text_format, read_columns_to_copy

    is_text = is_stdout(out) or is_text_format(out)
    given = read_columns_to_copy(at, as_text=is_text, **reading.layout())
    kept = [name for names in columns.values() for name in names]
    taken = set(kept)
    renamed = [f"{name}{GIVEN}" if name in taken else str(name) for name in given.columns]
    repeated = [name for name, count in Counter([*renamed, *kept]).items() if count > 1]
    if repeated:
        raise DataError(
            f"Several columns of the predictions would be named {repeated[0]!r}. Rename this "
            f"column of {at}."
        )
    given = given.set_axis(renamed, axis=1)
    for names in columns.values() if is_text else ():
        predictions[names] = round_to_uncertainty(predictions[names])
    return given.join(predictions[kept])


@contextmanager
def _refusing_codes(missing: str | None) -> Iterator[None]:
    """Raise if a reading looks like a code for missing values and --missing is not given."""
    from emgpr.inputs import DataWarning

    show = warnings.showwarning

    def refuse(message: Warning | str, *args: Any, **kwargs: Any) -> None:
        content = message.args[0] if isinstance(message, Warning) else message
        if missing is None and isinstance(content, DataWarning) and content.kind == "code":
            raise code_error([content])
        show(message, *args, **kwargs)

    with warnings.catch_warnings():
        warnings.showwarning = refuse
        yield
