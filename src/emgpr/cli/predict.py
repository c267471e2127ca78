"""The command `emgpr predict`."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from emgpr.cli.errors import DataError, reading_data
from emgpr.cli.files import check_table_output, read_model
from emgpr.cli.options import Force, Missing, ModelFile, StatisticsOptions
from emgpr.cli.parsing import parse_names
from emgpr.cli.tables import code_error, read_columns


def predict(
    model: ModelFile,
    at: Annotated[Path, typer.Option(help="Table of locations: .csv, .parquet, .nc, …")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Predictions: .csv, .parquet or .nc.")],
    statistics: StatisticsOptions,
    known: Annotated[
        str | None, typer.Option(help="Outputs measured at the locations, such as Ni,Zn.")
    ] = None,
    missing: Missing = None,
    force: Force = False,
) -> None:
    """Predict all outputs and their standard deviations at the locations in a table.

    The table must have the input columns that the model was fitted to. The output file contains
    these columns and, for each output, the predicted median (<output>), the standard deviation
    (<output>_std), and any quantiles or probabilities requested. Outputs named in --known must be
    columns of the table, and all predictions are also conditioned on their readings. For a known
    output, a second reading at the same location is predicted.

    \b
    Examples:
      emgpr predict jura.emgpr --at new.csv -o predicted.csv
      emgpr predict jura.emgpr --at new.csv --known Ni,Zn -o cadmium.csv
      emgpr predict jura.emgpr --at new.csv --quantiles 0.05,0.95 --above Cd=0.8 -o risk.csv
    """
    check_table_output(out, force)
    fitted = read_model(model)
    outputs = parse_names(known, "--known", fitted.output_names_)
    requested = statistics.requested(fitted.output_names_)
    if fitted.input_spec_.feature_names is None:
        raise DataError(
            "The model was fitted to arrays, so the names of its input columns are unknown. Fit "
            "the model to a DataFrame or with emgpr fit."
        )
    inputs = list(fitted.input_spec_.feature_names)
    table, rows = read_columns(at, inputs, outputs, missing, "they get no predictions")
    with reading_data():
        from emgpr.io import write_table

        observed = rows[outputs] if outputs else None
        with _refusing_codes(missing):
            predictions = fitted.predict_frame(rows[inputs], observed=observed, **requested)
        result = table[inputs].join(predictions)
        result.attrs["units"] = table.attrs.get("units", {})
        write_table(result, out)
    typer.echo(f"{len(rows)} locations, {fitted.n_outputs_} outputs: {out}")


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
