"""Files that commands read and write: asked about before anything long starts."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emgpr.cli.complaints import USAGE, complain, reading, say


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
        for name in table.columns:
            _refuse_some_text(table[name], file)
        return table


def _refuse_some_text(column: Any, file: Path) -> None:
    """Text here and there in a column of numbers, such as "<0.2"; of all text others complain."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        return
    numbers = pd.to_numeric(column.astype(object), errors="coerce")
    words = column[numbers.isna() & column.notna()].astype(str)
    if 0 < len(words) < 0.5 * column.notna().sum():
        kinds = list(dict.fromkeys(words.str.strip()))
        shown = ", ".join(map(repr, kinds[:3])) + (", …" if len(kinds) > 3 else "")
        raise ValueError(
            f"Column {column.name!r} of {file} holds text in {len(words)} of {len(column)} rows "
            f"({shown}). Write numbers there; or add --missing {','.join(kinds[:3])!r}, and they "
            "were not measured."
        )


def codes(missing: str | None) -> list[str]:
    """What --missing names; nothing, if it says that nothing is a code.

    >>> codes("-9999, n.a."), codes("none"), codes(None)
    (['-9999', 'n.a.'], [], [])
    """
    if missing is None or missing.strip().lower() == "none":
        return []
    return [code.strip() for code in missing.split(",") if code.strip()]


def read_model(file: Path) -> Any:
    """The fitted model of a file."""
    with reading():
        from emgpr import load
        from emgpr.io.files import existing

        return load(existing(file))


def with_places(table: Any, names: Sequence[str], what: str) -> Any:
    """Which rows have numbers in these columns; says how many have not."""
    whole = table[list(names)].notna().all(axis=1).to_numpy()
    if not whole.all():
        bare = [str(row + 1) for row in (~whole).nonzero()[0]]
        rows = "row " + ", ".join(bare[:5]) + (", …" if len(bare) > 5 else "")
        say(f"warning: {len(bare)} of {len(table)} rows have no place ({rows}); {what}.")
    return whole
