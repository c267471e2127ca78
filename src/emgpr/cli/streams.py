"""Tables from stdin and to stdout, for which "-" is given instead of a file name."""

import atexit
import sys
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    import pandas as pd

STREAM = Path("-")
STDIN = "emgpr.stdin"  # key under which the context of a command stores the copy of stdin


def is_stdout(out: Path | None) -> bool:
    """Tell whether an output file is stdout."""
    return out == STREAM


def shown_name(out: Path) -> str:
    """Return the name of an output file in messages."""
    return "stdout" if is_stdout(out) else str(out)


def copy_stdin(context: typer.Context, file: Path | None) -> Path | None:
    """Return the path of a temporary copy of stdin if the file is "-", otherwise the same path.

    A copy is needed, because the layout of a table is detected before its rows are read.
    """
    if file != STREAM:
        return file
    folder = mkdtemp(prefix="emgpr-")
    atexit.register(rmtree, folder, ignore_errors=True)
    copy = Path(folder) / "stdin.csv"
    copy.write_bytes(sys.stdin.buffer.read())
    context.meta[STDIN] = str(copy)
    return copy


def write_table_to(out: Path, table: "pd.DataFrame") -> None:
    """Write a table to a file, or to stdout as CSV."""
    from emgpr.io import write_table

    if is_stdout(out):
        typer.echo(table.to_csv(index=False, lineterminator="\n"), nl=False)
    else:
        write_table(table, out)
