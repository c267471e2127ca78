"""Reading of tables, with checks for text, codes for missing values, and missing coordinates."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from emgpr.cli.errors import DataError, reading_data
from emgpr.cli.options import EstimatorOptions
from emgpr.cli.parsing import split_commas
from emgpr.user_warnings import warn

if TYPE_CHECKING:
    import pandas as pd

    from emgpr.estimators import EMGPR
    from emgpr.inputs import DataWarning

NUMBER_WITH_SEPARATORS = r"[-+]?\d{1,3}(?:[ .,'\u00a0\u202f]\d{3})+(?:[.,]\d+)?"
# If text makes up a smaller share of a column, it is reported here. The estimator rejects columns
# with more text.
MAX_TEXT_SHARE = 0.5
MAX_ROWS_SHOWN, MAX_TEXTS_SHOWN, MAX_CODES = 5, 3, 8  # in messages


def read_training_data(
    data: Path, model: "EMGPR", options: EstimatorOptions
) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Print a summary of a table, and return the inputs and outputs of rows with coordinates.

    Raise an error if some values look like codes for missing values and --missing is not given,
    since a model fitted to such codes would be useless.
    """
    inputs, outputs = options.columns()
    _, table = read_columns(data, inputs, outputs, options.missing, "they are ignored")
    with reading_data():
        summary = model.first_look(table[inputs], table[outputs])
    typer.echo(str(summary))
    codes = [w for w in summary.warnings if w.kind == "code"] if options.missing is None else []
    for warning in summary.warnings:
        if warning not in codes:
            option = " Add --crs EPSG:4326." if warning.kind == "degrees" else ""
            warn(f"{warning}{option}")
    if codes:
        raise code_error(codes)
    return table[inputs], table[outputs]


def read_columns(
    file: Path, inputs: Sequence[str], outputs: Sequence[str], missing: str | None, effect: str
) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Read columns of a table; return a table of all rows and one of the rows with coordinates.

    Codes for missing values are replaced with NaN. `effect` says how rows without coordinates are
    treated; it completes the warning about these rows.
    """
    with reading_data():
        from emgpr.io import read_table, without_codes

        codes = parse_codes(missing)
        table = without_codes(read_table(file, [*inputs, *outputs]), codes)
        _check_text(table, file, codes)
    complete = table[list(inputs)].notna().all(axis=1).to_numpy()
    if not complete.any():
        raise DataError(
            f"No row of {file} has all coordinates ({', '.join(inputs)}); expected at least one."
        )
    if not complete.all():
        rows = [str(row + 1) for row in (~complete).nonzero()[0]]
        shown = ", ".join(rows[:MAX_ROWS_SHOWN]) + ", …" * (len(rows) > MAX_ROWS_SHOWN)
        warn(f"{len(rows)} of {len(table)} rows ({shown}) have no coordinates; {effect}.")
    return table, table[complete]


def parse_codes(missing: str | None) -> list[str]:
    """Return a list of the codes for missing values, or an empty list for 'none'.

    >>> parse_codes("-9999, n.a."), parse_codes("none"), parse_codes(None)
    (['-9999', 'n.a.'], [], [])
    """
    if missing is None or missing.strip().lower() == "none":
        return []
    return [code for code in split_commas(missing) if code]


def code_error(found: Sequence["DataWarning"]) -> DataError:
    """Return the error to raise for values that look like codes for missing values."""
    codes = ",".join(dict.fromkeys(f"{warning.code:g}" for warning in found))
    return DataError(
        f"{found[0]} Add --missing {codes}, or --missing none if these are measurements."
    )


def _check_text(table: "pd.DataFrame", file: Path, codes: Sequence[str]) -> None:
    """Raise if numeric columns contain text such as "<0.2", thousands separators or dates."""
    import pandas as pd

    found = {}
    for name in table.columns:
        column = table[name]
        numbers = pd.to_numeric(column.astype(object), errors="coerce")
        texts = column[numbers.isna() & column.notna()].astype(str).str.strip()
        if len(texts) and texts.str.fullmatch(NUMBER_WITH_SEPARATORS).all():
            raise ValueError(
                f"Column {name!r} of {file} contains numbers with thousands separators, such as "
                f"{texts.iloc[0]!r}; remove the separators."
            )
        if len(texts) and pd.to_datetime(texts, errors="coerce", format="ISO8601").notna().all():
            raise ValueError(
                f"Column {name!r} of {file} contains dates ({texts.iloc[0]!r}); convert them to "
                "numbers, such as days since the first date."
            )
        if 0 < len(texts) < MAX_TEXT_SHARE * column.notna().sum():
            found[name] = texts
    if found:
        raise ValueError(_text_message(found, len(table), file, codes))


def _text_message(
    found: Mapping[str, "pd.Series"], n_rows: int, file: Path, codes: Sequence[str]
) -> str:
    """Return the error message about text in numeric columns."""
    texts = list(dict.fromkeys(text for column in found.values() for text in column))
    shown = ", ".join(map(repr, texts[:MAX_TEXTS_SHOWN])) + ", …" * (len(texts) > MAX_TEXTS_SHOWN)
    quoted = (f'"{text}"' if "," in text else text for text in [*codes, *texts[:MAX_CODES]])
    option = f"--missing {','.join(quoted)!r}"
    if len(found) > 1 and all(list(column.index) == [0] for column in found.values()):
        return (
            f"The first row of {file} contains text ({shown}), apparently units. Delete that row, "
            f"or add {option} to ignore it."
        )
    name, column = next(iter(found.items()))
    others = f", and so do {len(found) - 1} other columns" if len(found) > 1 else ""
    return (
        f"Column {name!r} of {file} contains text in {len(column)} of {n_rows} rows{others} "
        f"({shown}). Replace the text with numbers, or add {option} to treat it as missing."
    )
