"""`emgpr predict`."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from emgpr.cli import options as given
from emgpr.cli.complaints import BAD_DATA, complain, progress, reading
from emgpr.cli.files import codes, read_columns, read_model, to_write, with_places


def predict(
    model: given.ModelFile,
    at: Annotated[Path, typer.Option(help="Table of the places: .csv, .parquet, .nc, …")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Predictions: .csv, .parquet or .nc.")],
    known: Annotated[
        str | None,
        typer.Option(help="Outputs measured there too, which tell of the others: Ni,Zn."),
    ] = None,
    quantiles: given.Quantiles = None,
    above: given.Above = None,
    missing: given.Missing = None,
    force: given.Force = False,
) -> None:
    """Predict every output at the places of a table, each with its standard deviation.

    The table needs the columns of the place that the model was fitted to. They are kept, and for
    each output come its median, <output>_std, and what else is asked for. Of an output that is
    known at a place, it is what another reading there would give.

    \b
    Examples:
      emgpr predict jura.emgpr --at new.csv -o predicted.csv
      emgpr predict jura.emgpr --at new.csv --known Ni,Zn -o cadmium.csv
      emgpr predict jura.emgpr --at new.csv --quantiles 0.05,0.95 --above Cd=0.8 -o risk.csv
    """
    from emgpr.io.tables import KINDS

    asked: dict[str, Any] = {
        "quantiles": given.probabilities(quantiles),
        "exceedance": given.limits(above),
    }
    others = [] if known is None else given.words(known, "--known")
    to_write(out, force, KINDS)
    fitted = read_model(model)
    fitted.verbose = progress()
    given.known_to(fitted, others, "--known")
    given.known_to(fitted, asked["exceedance"], "--above")
    inputs = input_columns(fitted)
    table = read_columns(at, [*inputs, *others], codes(missing))
    rows = with_places(table, inputs, "nothing is predicted there")
    if not rows.any():
        raise complain(f"{at} has no row with a place: {', '.join(inputs)}.", BAD_DATA)
    with reading():
        from emgpr.io import write_table

        places = table.loc[rows, inputs]
        observed = table.loc[rows, others] if others else None
        with _codes_refused(missing):
            frame = fitted.predict_frame(places, observed=observed, **asked)
        answer = table[inputs].join(frame)
        answer.attrs["units"] = table.attrs.get("units", {})
        write_table(answer, out)
    typer.echo(f"{len(places)} places, {fitted.n_outputs_} outputs: {out}")


def input_columns(model: Any) -> list[str]:
    """The names of the columns that the model was fitted to."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise complain(
            "this model was fitted to arrays, whose columns have no names to find in a table. Fit "
            "it to a DataFrame, or with emgpr fit.",
            BAD_DATA,
        )
    return [str(name) for name in names]


@contextmanager
def _codes_refused(missing: str | None) -> Iterator[None]:
    """While known outputs are used: codes taken for measurements end the command."""
    with warnings.catch_warnings():
        if missing is None:
            warnings.filterwarnings("error", message=".*looks like a code for a missing value")
        try:
            yield
        except UserWarning as doubt:
            code = re.findall(r" holds (\S+) \(", str(doubt))
            raise complain(
                f"{doubt} Here: --missing {' '.join(code)}; or --missing none, if it was measured.",
                BAD_DATA,
            ) from doubt
