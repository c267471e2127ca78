"""Base classes for the file formats of tables and maps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from emgpr.optional_imports import import_optional


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """A file format, with its name for messages, its file endings and the packages it needs.

    `extra` is the optional dependency group of emgpr that installs these packages.
    """

    name: str
    endings: tuple[str, ...]
    packages: tuple[str, ...] = ()
    extra: str = "geo"

    def check_installed(self, purpose: str) -> None:
        """Raise ImportError if a package is missing; `purpose` is "Reading" or "Writing"."""
        for package in self.packages:
            import_optional(package, f"{purpose} {self.name}", self.extra)


@dataclass(frozen=True, kw_only=True)
class TableFormat(FileFormat):
    """A file format for tables.

    `read` takes the path and, if `is_text`, also the separator, decimal mark and encoding, each of
    which can be None. `find_header` searches the lines after the header for one that contains all
    given column names. It returns the number of this line, counted from 1, or None. `read_verbatim`
    takes the same arguments as `read` and returns the cells of a text format as text; it is None
    for other formats. `row_numbers` takes the path, the positions of some rows in the table,
    counted from 0, and the other arguments of `read`. It returns the numbers of these rows in the
    file, and `row_words` are the words for such a row.
    """

    read: Callable[..., pd.DataFrame]
    write: Callable[[pd.DataFrame, Path], None]
    read_verbatim: Callable[..., pd.DataFrame] | None = None
    find_header: Callable[[Path, Sequence[str]], int | None] = lambda file, columns: None
    is_text: bool = False
    row_numbers: Callable[..., list[int]] = lambda file, rows: [row + 1 for row in rows]
    row_words: str = "row {} (counted from 1)"


@dataclass(frozen=True, kw_only=True)
class MapFormat(FileFormat):
    """A file format for maps (`xarray.Dataset`); `read` is None if the format is lossy.

    If maps in this format are folders, `is_store` tells whether a folder is such a map.
    """

    write: Callable[[Any, Path], None]
    read: Callable[[Path], Any] | None = None
    is_store: Callable[[Path], bool] | None = None
