"""Checks of output files before long computations, and reading of model files."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from emgpr.cli.errors import DataError, UsageError, progress, reading_data
from emgpr.cli.streams import is_stdout

if TYPE_CHECKING:
    from emgpr.estimators import GPRegressor, MultiOutputGP, ReadingsGP

FULL_DISK = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))


def check_output(
    out: Path, force: bool, endings: Sequence[str] = (), *, is_folder: bool = False
) -> None:
    """Raise if the file cannot be written, or if it exists and `force` is False.

    With `is_folder`, the output is a folder, which replaces an existing folder.
    """
    if is_stdout(out):
        raise UsageError("Only tables can be written to stdout (-). Give the name of a file.")
    if endings and not out.name.lower().endswith(tuple(endings)):
        raise UsageError(
            f"{out} does not have a known ending; expected one of {', '.join(endings)}."
        )
    if not out.parent.is_dir():
        raise UsageError(f"There is no folder {out.parent}. Create it, or use another folder.")
    if os.path.isdir(out) and not is_folder:
        raise UsageError(f"{out} is a folder; give the name of a file in it.")
    if os.path.exists(out) and not force:
        raise UsageError(f"{out} exists already. Use another name, or add --force.")
    from emgpr.persistence import check_replaceable

    try:
        check_replaceable(out, is_folder=is_folder)
    except PermissionError as error:
        raise UsageError(f"The folder {out.parent} is not writable. Use another folder.") from error
    except OSError as error:
        reason = f" ({error.strerror})" if error.strerror else f". {str(error).rstrip('.')}"
        code = DataError if error.errno in FULL_DISK else UsageError
        raise code(f"{out} cannot be written{reason}. Use another name or folder.") from error


def check_model_output(out: Path, force: bool) -> None:
    """Raise if a model cannot be written to the file, or if the name has a table's extension."""
    if is_table(out):
        raise UsageError(
            f"{out} has the ending of a table. Use another name for a model, such as jura.emgpr."
        )
    check_output(out, force)


def check_table_output(out: Path, force: bool) -> None:
    """Raise if a table cannot be written to the file. Stdout (-) is always accepted."""
    if is_stdout(out):
        return
    from emgpr.io.registry import TABLE_FORMATS

    check_output(out, force, tuple(TABLE_FORMATS))


def check_map_output(out: Path, force: bool) -> None:
    """Raise if a map cannot be written to the file, or if a required package is missing."""
    from emgpr.io.maps import check_writable
    from emgpr.io.registry import MAP_FORMATS

    folders = tuple(ending for ending, form in MAP_FORMATS.items() if form.is_store is not None)
    is_folder = out.name.lower().endswith(folders)
    check_output(out, force, tuple(MAP_FORMATS), is_folder=is_folder)
    check_writable(out)


def create_folder(path: Path) -> Path:
    """Create the folder given by --out if it does not exist, and return its path."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(
            f"The folder {path} cannot be created ({reason}). Use another folder for --out."
        ) from error
    return path


def is_table(file: Path) -> bool:
    """Tell whether a file name ends in .csv or in the extension of another table format."""
    from emgpr.io.registry import TABLE_FORMATS

    return file.name.lower().endswith(tuple(TABLE_FORMATS))


def read_model(file: Path) -> "GPRegressor":
    """Read a fitted model."""
    with reading_data():
        from emgpr import load
        from emgpr.io.files import existing_file

        if is_table(existing_file(file)):
            raise DataError(
                f"{file} is a table, not a file written by emgpr fit. Fit a model to it with "
                "emgpr fit, and give the model file instead."
            )
        model = load(file)
    model.verbose = progress()
    return model


def read_model_with_data(file: Path, purpose: str) -> "MultiOutputGP | ReadingsGP":
    """Read a fitted model, and raise if it does not contain the training data.

    `purpose` says in the error message what the data are needed for.
    """
    model = read_model(file)
    from emgpr.estimators import MultiOutputGP, ReadingsGP

    if not isinstance(model, MultiOutputGP | ReadingsGP):
        raise DataError(
            f"{file} contains a model of class {type(model).__name__}, which does not keep its "
            f"training data; {purpose} requires them. Use emgpr predict or emgpr grid, or fit an "
            "EMGPR model."
        )
    return model
