"""Reading of tables, with checks for text, codes for missing values, and missing coordinates."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from emgpr.cli.errors import DataError, describe_rows_as, reading_data
from emgpr.cli.options import EstimatorOptions, TableOptions
from emgpr.cli.parsing import split_commas
from emgpr.user_warnings import warn

if TYPE_CHECKING:
    import pandas as pd

    from emgpr.estimators import EMGPR
    from emgpr.inputs import DataWarning
    from emgpr.io.cells import Cells, WrongCell

MAX_TEXT_SHARE = 0.5  # in a column of numbers; otherwise it is a column of text
MAX_ROWS_SHOWN, MAX_TEXTS_SHOWN, MAX_CODES = 5, 3, 8  # in messages


def read_training_data(
    data: Path, model: "EMGPR", options: EstimatorOptions, reading: TableOptions
) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Print a summary of a table, and return the inputs and outputs of rows with coordinates.

    Raise an error if some values look like codes for missing values and --missing is not given,
    since a model fitted to such codes would be useless.
    """
    inputs, outputs = options.columns()
    _, table = read_columns(data, inputs, outputs, reading, "they are ignored")
    with reading_data():
        summary = model.first_look(table[inputs], table[outputs])
    typer.echo(str(summary))
    codes = [w for w in summary.warnings if w.kind == "code"] if reading.missing is None else []
    for warning in summary.warnings:
        if warning not in codes:
            option = " Add --crs EPSG:4326." if warning.kind == "degrees" else ""
            warn(f"{warning}{option}")
    if codes:
        raise code_error(codes)
    return table[inputs], table[outputs]


def read_columns(
    file: Path, inputs: Sequence[str], outputs: Sequence[str], reading: TableOptions, effect: str
) -> tuple["pd.DataFrame", "pd.DataFrame"]:
    """Read columns of a table; return a table of all rows and one of the rows with coordinates.

    Codes for missing values are replaced with NaN. `effect` says how rows without coordinates are
    treated; it completes the warning about these rows.
    """
    with reading_data():
        from emgpr.io import read_table
        from emgpr.io.row_names import rows_in_file

        codes = parse_codes(reading.missing)
        table = read_table(file, [*inputs, *outputs], missing=codes, **reading.layout())
        _check_text(table, file, codes, outputs, reading)
    complete = table[list(inputs)].notna().all(axis=1).to_numpy()
    if not complete.any():
        raise DataError(
            f"No row of {file} has all coordinates ({', '.join(inputs)}); expected at least one."
        )
    if not complete.all():
        rows = (~complete).nonzero()[0].tolist()
        shown = rows_in_file(file, rows[:MAX_ROWS_SHOWN], **reading.layout())
        shown += ", …" * (len(rows) > MAX_ROWS_SHOWN)
        warn(f"{len(rows)} of {len(table)} rows ({shown}) have no coordinates; {effect}.")
    used = complete.nonzero()[0]
    describe_rows_as(
        lambda rows: rows_in_file(file, [int(used[row]) for row in rows], **reading.layout())
    )
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
        f"{found[0].removesuffix('.')}, or add --missing {codes}. If these are measurements, add "
        "--missing none."
    )


def _check_text(
    table: "pd.DataFrame",
    file: Path,
    codes: Sequence[str],
    outputs: Sequence[str],
    reading: TableOptions,
) -> None:
    """Raise if a column contains text that cannot be read as numbers, or an output contains dates.

    Dates in inputs are converted to numbers by the estimator.
    """
    from pandas.api.types import is_datetime64_any_dtype

    from emgpr.io.cells import is_text_type, read_cells
    from emgpr.io.row_names import rows_in_file

    found = {}
    for name in table.columns:
        column = table[name]
        if name in outputs and is_datetime64_any_dtype(column.dtype):
            raise ValueError(
                f"Column {name!r} of {file} contains dates ({column.dropna().iloc[0].date()}), "
                "which can only be inputs. Leave it out of -y."
            )
        if not is_text_type(column.dtype):
            continue
        cells = read_cells(column, reading.decimal, assume=table.attrs.get("decimal_comma", False))
        if cells.wrong is None:
            continue
        n_wrong = sum(map(len, cells.wrong_rows.values()))
        if cells.wrong.kind == "text" and n_wrong >= MAX_TEXT_SHARE * cells.n_filled:
            option = "-y" if name in outputs else "-x"
            raise ValueError(
                f"Column {name!r} of {file} contains text, such as {cells.wrong.value!r} in "
                f"{rows_in_file(file, [cells.wrong.row], **reading.layout())}; expected numbers. "
                f"Replace the text with numbers, or leave the column out of {option}."
            )
        found[name] = cells
    if found:
        raise ValueError(_text_message(found, len(table), file, codes, reading))


def _text_message(
    found: Mapping[str, "Cells"],
    n_rows: int,
    file: Path,
    codes: Sequence[str],
    reading: TableOptions,
) -> str:
    """Return the error message about text in numeric columns."""
    from emgpr.io.row_names import rows_in_file

    texts = list(dict.fromkeys(str(text) for cells in found.values() for text in cells.wrong_rows))
    shown = ", ".join(map(repr, texts[:MAX_TEXTS_SHOWN])) + ", …" * (len(texts) > MAX_TEXTS_SHOWN)
    quoted = (f'"{text}"' if "," in text else text for text in [*codes, *texts[:MAX_CODES]])
    option = f"--missing {','.join(quoted)!r}"
    rows = [[row for rows in cells.wrong_rows.values() for row in rows] for cells in found.values()]
    if len(found) > 1 and all(numbers == [0] for numbers in rows):
        return (
            f"The first row of {file} ({rows_in_file(file, [0], **reading.layout())}) contains "
            f"text ({shown}), apparently units. Delete that row, or add {option} to ignore it."
        )
    name, cells = next(iter(found.items()))
    assert cells.wrong is not None
    where = rows_in_file(file, [cells.wrong.row], **reading.layout())
    others = f", and so do {len(found) - 1} other columns" if len(found) > 1 else ""
    return (
        f"Column {name!r} of {file} contains text in {len(rows[0])} of {n_rows} rows{others} "
        f"({shown}); the first is {cells.wrong.value!r} in {where}. "
        f"{_remedy(cells.wrong, option, reading.decimal)}"
    )


def _remedy(wrong: "WrongCell", missing: str, decimal: str | None) -> str:
    """Return a sentence that says how to change a cell, or which option to add."""
    if wrong.kind == "text":
        return f"Replace the text with numbers, or add {missing} to treat it as missing."
    if wrong.kind == "above":
        return (
            "It is above a limit of measurement, and its value is unknown: write a number, or add "
            f"{missing} to treat it as missing."
        )
    if wrong.kind == "comma":
        point = str(wrong.value).replace(",", ".")
        whole = str(wrong.value).replace(",", "")
        return f"Add --decimal , if this is {point}, or --decimal . if it is {whole}."
    if wrong.kind == "thousands":
        mark = "," if wrong.value.rfind(",") > wrong.value.rfind(".") else "."
        return f"It has thousands separators; add --decimal {mark} to read them."
    if wrong.kind == "mark" and decimal is not None:
        return f"This is not a number with --decimal {decimal}; change or leave out this option."
    return wrong.remedy
