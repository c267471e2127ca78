"""Files that commands read and write: asked about before anything long starts."""

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
    if out.is_dir():
        raise complain(f"{out} is a folder; name a file in it.", USAGE)
    if out.exists() and not force:
        raise complain(f"{out} is there already. Name another file, or add --force.", USAGE)
    return out


def read_columns(file: Path, columns: Sequence[str], missing: Sequence[str]) -> Any:
    """These columns of a table, with what stands for missing values as such."""
    with reading():
        from emgpr.io import read_table, without_codes

        table = read_table(file, columns)
        return without_codes(table, missing) if missing else table


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

        return load(file)


def with_places(table: Any, names: Sequence[str], what: str) -> Any:
    """Which rows have numbers in these columns; says how many have not."""
    whole = table[list(names)].notna().all(axis=1).to_numpy()
    if not whole.all():
        bare = [str(row + 1) for row in (~whole).nonzero()[0]]
        rows = ", ".join(bare[:5]) + (", …" if len(bare) > 5 else "")
        say(f"warning: {len(bare)} of {len(table)} rows have no place ({rows}); {what}.")
    return whole
