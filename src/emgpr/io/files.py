"""What can go wrong with any file, said in one way."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TypeAlias

PathLike: TypeAlias = str | os.PathLike[str]


def existing(path: PathLike) -> Path:
    """The path of a file that is there."""
    found = Path(path)
    if found.is_dir():
        raise FileNotFoundError(f"{found} is a folder; give a file in it.")
    if not found.is_file():
        near = get_close_matches(found.name, _names(found.parent), n=3)
        hint = f" There is {', '.join(near)} beside it." if near else " Check the path."
        raise FileNotFoundError(f"There is no file {found}.{hint}")
    return found


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


def kind(path: PathLike, kinds: Sequence[str]) -> str:
    """How the name ends, which says the format.

    >>> kind("sites.CSV.gz", [".csv", ".csv.gz"])
    '.csv.gz'
    """
    name = Path(path).name.lower()
    ends = [end for end in kinds if name.endswith(end)]
    if not ends:
        sheet = ".csv" in kinds and name.endswith((".xlsx", ".xls", ".ods"))
        hint = " Save the sheet as 'CSV UTF-8'." if sheet else ""
        raise ValueError(
            f"{path}: the format is told by the ending; expected {', '.join(kinds)}.{hint}"
        )
    return max(ends, key=len)


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """While a library reads: its errors say which file, and what it should have been."""
    try:
        yield
    except (ImportError, MemoryError):
        raise
    except Exception as error:  # each library has errors of its own
        said = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"{path} cannot be read as {what} ({said}). If it should be one, it may be damaged or "
            "incomplete: fetch it again."
        ) from error


def folder(path: Path) -> Path:
    """The folder that a file is to be written to, which must be there."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {path.parent} to write {path.name} to. Make it, or name another."
        )
    return path.parent


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` when all went well."""
    folder(path)
    partial = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:  # a full disk, a folder that is not ours: each library says its own
        said = " ".join(str(error.strerror or error).split())
        raise OSError(
            f"{path} could not be written ({said}). Make room there, or name another folder."
        ) from error
    finally:
        partial.unlink(missing_ok=True)
