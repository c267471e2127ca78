"""Replacement of a file only after its new content has been written completely."""

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

PathLike: TypeAlias = str | os.PathLike[str]

ENDING_LENGTH = 16  # characters of a file name that the name of its draft ends with


@contextmanager
def replacing(path: PathLike, *, is_folder: bool = False) -> Iterator[Path]:
    """Yield the path of a draft beside `path`; after the `with` block, the draft replaces `path`.

    The caller creates the draft, a file or, if `is_folder`, a folder. If `path` is a symbolic link,
    the link is kept and its target is replaced. After an error, the draft is removed and an
    existing file is unchanged.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/a.txt") as draft:
    ...         length = draft.write_text("whole")
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    target = _target(path, is_folder)
    draft = _beside(target)
    try:
        yield draft
        if is_folder:
            _replace_folder(draft, target)
        else:
            _to_disk(draft, os.O_RDWR)  # A disk that is full may report it only now.
            if target.exists():
                shutil.copymode(target, draft)
            os.replace(draft, target)
    except BaseException:
        _remove(draft)
        raise
    with suppress(OSError):  # Some systems cannot write folder entries to disk on request.
        _to_disk(target.parent, os.O_RDONLY)


def check_replaceable(path: PathLike, *, is_folder: bool = False) -> None:
    """Raise OSError if `replacing` could not create a draft for this path."""
    draft = _beside(_target(path, is_folder))
    try:
        draft.touch(exist_ok=False)
    finally:
        _remove(draft)


def _target(path: PathLike, is_folder: bool) -> Path:
    """Return the path with symbolic links resolved, after checking that it can be replaced."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent}; create it first.")
    try:
        mode = target.stat().st_mode  # raises OSError if the name is too long
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode) and not is_folder:  # An empty path denotes the current folder.
        raise IsADirectoryError(f"{str(path)!r} is a folder; give the name of a file in it.")
    if is_folder and not stat.S_ISDIR(mode):
        raise NotADirectoryError(f"{path} is not a folder; give another name.")
    if not (is_folder or stat.S_ISREG(mode)):
        raise OSError(f"{path} is a device or a pipe; give the name of a file.")
    return target


def _beside(target: Path) -> Path:
    """Return a new hidden path beside the target, with its ending, that is short for any name."""
    return target.with_name(f".{secrets.token_hex(4)}.{target.name[-ENDING_LENGTH:]}")


def _replace_folder(draft: Path, target: Path) -> None:
    """Rename the draft to the target. A folder cannot replace another in a single step."""
    if not target.exists():
        draft.rename(target)
        return
    previous = _beside(target)
    target.rename(previous)
    try:
        draft.rename(target)
    except BaseException:
        previous.rename(target)
        raise
    _remove(previous)


def _to_disk(path: Path, access: int) -> None:
    descriptor = os.open(path, access)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
