"""What went wrong, in one line that says what to do; no traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

USAGE, BAD_DATA = 2, 3


def complain(error: BaseException | str, code: int) -> typer.Exit:
    """Say it on stderr; raise what is returned to leave with this code."""
    typer.echo("emgpr: " + " ".join(str(error).split()), err=True)
    return typer.Exit(code)


@contextmanager
def reading() -> Iterator[None]:
    """While a user's files are read: they may be missing, or not what they should be."""
    try:
        yield
    except (FileNotFoundError, ImportError) as error:
        raise complain(error, USAGE) from error
    except (OSError, ValueError) as error:
        raise complain(error, BAD_DATA) from error


def folder(path: Path) -> Path:
    """The folder, made if need be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise complain(
            f"cannot write to {path} ({reason}). Name another folder with --out.", USAGE
        ) from error
    return path


def progress() -> int:
    """Whether to show progress: when somebody is watching."""
    return int(sys.stderr.isatty())
