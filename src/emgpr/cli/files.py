"""Files that commands read and write: asked about before anything long starts."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emgpr.cli.complaints import BAD_DATA, USAGE, complain, reading, say
from emgpr.cli.options import between_commas

THOUSANDS = r"[-+]?\d{1,3}(?:[ .,'\u00a0\u202f]\d{3})+(?:[.,]\d+)?"


TABLES = (".csv", ".csv.gz", ".tsv", ".txt", ".parquet", ".pq", ".nc", ".nc4", ".h5")


def model_to_write(out: Path, force: bool) -> Path:
    """As `to_write`, and the file is no table: --force must not cost the data."""
    if out.name.lower().endswith(TABLES):
        raise complain(f"{out} is named as a table is; name it such as jura.emgpr.", USAGE)
    return to_write(out, force)


def to_write(out: Path, force: bool, kinds: Sequence[str] = ()) -> Path:
    """The path of a file that can be written, and is not there yet unless it may be replaced."""
    if kinds and not out.name.lower().endswith(tuple(kinds)):
        raise complain(
            f"{out}: the format is told by the ending; expected {', '.join(kinds)}.", USAGE
        )
    if not out.parent.is_dir():
        raise complain(
            f"there is no folder {out.parent} to write {out.name} to. Make it, or name another.",
            USAGE,
        )
    if not os.access(out.parent, os.W_OK):
        raise complain(f"{out.parent} may not be written to. Name another folder.", USAGE)
    if out.is_dir():
        raise complain(f"{out} is a folder; name a file in it.", USAGE)
    if out.exists() and not force:
        raise complain(f"{out} is there already. Name another file, or add --force.", USAGE)
    return out


def read_columns(file: Path, columns: Sequence[str], missing: Sequence[str]) -> Any:
    """These columns of a table, with what stands for missing values as such."""
    with reading():
        from emgpr.io import read_table, without_codes

        table = without_codes(read_table(file, columns), missing)
        _refuse_some_text(table, file, missing)
        return table


def _refuse_some_text(table: Any, file: Path, missing: Sequence[str]) -> None:
    """Text here and there in columns of numbers, such as "<0.2"; of all text others complain."""
    import pandas as pd

    found = {}
    for name in table.columns:
        column = table[name]
        numbers = pd.to_numeric(column.astype(object), errors="coerce")
        words = column[numbers.isna() & column.notna()].astype(str).str.strip()
        if len(words) and words.str.fullmatch(THOUSANDS).all():
            raise ValueError(
                f"Column {name!r} of {file} holds numbers such as {words.iloc[0]!r}, with marks "
                "between the thousands: write them without."
            )
        if len(words) and pd.to_datetime(words, errors="coerce", format="ISO8601").notna().all():
            raise ValueError(
                f"Column {name!r} of {file} holds dates ({words.iloc[0]!r}): write numbers, such "
                "as days since the first."
            )
        if 0 < len(words) < 0.5 * column.notna().sum():
            found[name] = words
    if not found:
        return
    kinds = list(dict.fromkeys(word for words in found.values() for word in words))
    every = ",".join(f'"{word}"' if "," in word else word for word in [*missing, *kinds[:8]])
    shown = ", ".join(map(repr, kinds[:3])) + (", …" if len(kinds) > 3 else "")
    if len(found) > 1 and all(list(words.index) == [0] for words in found.values()):
        raise ValueError(
            f"The first row of {file} holds text ({shown}): units, it seems. Delete that row; or "
            f"add --missing {every!r}, and it is left out."
        )
    name, words = next(iter(found.items()))
    more = f", and so do {len(found) - 1} more columns" if len(found) > 1 else ""
    raise ValueError(
        f"Column {name!r} of {file} holds text in {len(words)} of {len(table)} rows{more} "
        f"({shown}). Write numbers there; or add --missing {every!r}, and they were not measured."
    )


def codes(missing: str | None) -> list[str]:
    """What --missing names; nothing, if it says that nothing is a code.

    >>> codes("-9999, n.a."), codes("none"), codes(None)
    (['-9999', 'n.a.'], [], [])
    """
    if missing is None or missing.strip().lower() == "none":
        return []
    return [code for code in between_commas(missing) if code]


def read_model(file: Path, *, for_readings: str = "") -> Any:
    """The fitted model of a file, which must have kept its readings if they are for something."""
    with reading():
        from emgpr import load
        from emgpr.io.files import existing

        found = existing(file)
        if found.name.lower().endswith(TABLES):
            raise complain(
                f"{file} is not a file written by emgpr but a table. Learn a model from it with "
                "emgpr fit, and give that.",
                BAD_DATA,
            )
        model = load(found)
        if for_readings and not hasattr(model, "training_data"):
            raise complain(
                f"{file} holds a model of class {type(model).__name__}, which keeps no readings; "
                f"{for_readings} is made from them. emgpr predict and emgpr grid work with it.",
                BAD_DATA,
            )
        return model


def with_places(table: Any, names: Sequence[str], what: str) -> Any:
    """Which rows have numbers in these columns; says how many have not."""
    whole = table[list(names)].notna().all(axis=1).to_numpy()
    if not whole.all():
        bare = [str(row + 1) for row in (~whole).nonzero()[0]]
        rows = "row " + ", ".join(bare[:5]) + (", …" if len(bare) > 5 else "")
        say(f"warning: {len(bare)} of {len(table)} rows have no place ({rows}); {what}.")
    return whole
