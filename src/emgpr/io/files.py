"""Path checks, error messages that name the file, and atomic replacement of files."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from emgpr.persistence import PathLike as PathLike
from emgpr.persistence import replacing

SPREADSHEETS = (".xlsx", ".xls", ".ods")


class FileContentError(ValueError):
    """Error in the content of a file. Its message names the file and says what to do."""


def existing_file(path: PathLike) -> Path:
    """Return the path of a file; raise FileNotFoundError if the file does not exist."""
    file = Path(path)
    if file.is_dir():
        raise FileNotFoundError(f"{file} is a folder; pass the path of a file.")
    if file.is_symlink() and not file.exists():
        raise FileNotFoundError(
            f"{file} is a symbolic link to a file that does not exist. Correct the link."
        )
    if file.exists() and not file.is_file():
        raise FileNotFoundError(
            f"{file} is a pipe or a device, not a file. Write its content to a file first."
        )
    if not file.is_file():
        similar = get_close_matches(file.name, _names(file.parent), n=3)
        hint = f"Did you mean {' or '.join(similar)}?" if similar else "Check the path."
        raise FileNotFoundError(f"There is no file {file}. {hint}")
    return file


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


def file_ending(path: PathLike, endings: Collection[str]) -> str:
    """Return the longest of these endings that a file name has; raise ValueError if it has none.

    >>> file_ending("sites.CSV.gz", [".csv", ".csv.gz"])
    '.csv.gz'
    """
    name = Path(path).name.lower()
    matching = [ending for ending in endings if name.endswith(ending)]
    if not matching:
        is_sheet = ".csv" in endings and name.endswith(SPREADSHEETS)
        hint = " Save the sheet as 'CSV UTF-8'." if is_sheet else ""
        raise ValueError(
            f"The format of {path} cannot be derived from its ending; expected one of "
            f"{', '.join(endings)}.{hint}"
        )
    return max(matching, key=len)


def check_folder_exists(file: Path) -> None:
    """Raise FileNotFoundError if the folder of an output file does not exist."""
    if not file.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {file.parent} to write {file.name} to. Create it, or choose "
            "another folder."
        )


@contextmanager
def read_errors(file: Path, format_name: str) -> Iterator[None]:
    """Convert errors that occur while a file is read to errors that name the file and format."""
    try:
        yield
    except (FileContentError, ImportError, MemoryError):
        raise
    except Exception as error:  # Every library raises its own error classes.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(
            f"{file} cannot be read as {format_name} ({reason}). If this is its format, the "
            "file is damaged or incomplete; download or create it again."
        ) from error


@contextmanager
def replace_when_complete(file: Path, *, is_folder: bool = False) -> Iterator[Path]:
    """Yield the path of a draft with the same ending, which replaces `file` if no error occurs.

    See `emgpr.persistence.replacing`. The message of any OSError names the file.
    """
    check_folder_exists(file)
    try:
        with replacing(file, is_folder=is_folder) as draft:
            yield draft
    except OSError as error:  # Libraries report a full disk, for example, in different ways.
        reason = " ".join(str(error.strerror or error).split())
        raise OSError(
            f"{file} could not be written ({reason}). Free some disk space, or choose another "
            "name or folder."
        ) from error
