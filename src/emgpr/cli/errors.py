"""Printing of errors and warnings as single lines on stderr, and the exit codes of commands.

    0  success             3  invalid files or data    5  success, but ensemble members failed
    1  unexpected error    4  numerical error          130  interrupted
    2  wrong usage

With `--traceback` or EMGPR_TRACEBACK=1, the traceback of an error is printed as well.
"""

import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from emgpr.cli.streams import STDIN
from emgpr.cli.wording import command_line_words
from emgpr.printable import escape_controls
from emgpr.row_numbers import replace_rows

UNEXPECTED, USAGE, DATA, NUMERICAL, PARTIAL, INTERRUPTED = 1, 2, 3, 4, 5, 130


# Words for rows of the table that the command has read.
_rows_in_file: ContextVar[Callable[[list[int]], str] | None] = ContextVar("rows", default=None)


class UsageError(Exception):
    """Invalid or conflicting options, or a file that cannot be written."""


class DataError(Exception):
    """A file that cannot be read, or values that cannot be used."""


class CommandGroup(TyperGroup):
    """Command group that prints errors as single lines on stderr and sets the exit code."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the options that precede the command."""
        with _short_usage_errors():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        _rows_in_file.set(None)
        try:
            with _short_usage_errors(), _warnings_as_lines(self, ctx) as failed_members:
                result = super().invoke(ctx)
        except BaseException as error:
            # Typer handles closed pipes and its own errors, which have an exit code.
            handled = isinstance(error, typer.Abort | SystemExit | BrokenPipeError)
            if handled or hasattr(error, "exit_code"):
                raise
            if ctx.params.get("traceback"):
                traceback.print_exc()
            print_line(_in_words(_message(error), self, ctx))
            raise typer.Exit(exit_code(error)) from error
        if failed_members:
            raise typer.Exit(PARTIAL)
        return result


def print_line(text: str) -> None:
    """Print a message to stderr as a single line."""
    typer.echo("emgpr: " + escape_controls(" ".join(text.split())), err=True)


def describe_rows_as(describe: Callable[[list[int]], str]) -> None:
    """Use these words for the rows of a table in later messages; rows are counted from 0."""
    _rows_in_file.set(describe)


def _in_words(text: str, group: TyperGroup, ctx: Any) -> str:
    """Return a message in the words of the command line, for the command that is running."""
    options, fit_options = (
        [
            name
            for param in getattr(group.commands.get(command), "params", ())
            for name in param.opts
        ]
        for command in (ctx.invoked_subcommand or "", "fit")
    )
    copy = ctx.meta.get(STDIN)
    text = text.replace(copy, "stdin") if copy else text
    describe = _rows_in_file.get()
    text = replace_rows(text, describe) if describe else text
    return command_line_words(text, options, fit_options)


def progress() -> int:
    """Return the setting for `verbose`: 1 to show progress if stderr is a terminal, otherwise 0."""
    return int(sys.stderr.isatty())


def exit_code(error: BaseException) -> int:
    """Return the exit code for an error."""
    # Check this before the imports below, because an interrupt may have stopped them halfway.
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, UsageError | ImportError):  # ImportError: a missing optional package
        return USAGE
    if isinstance(error, DataError | OSError):
        return DATA
    from numpy.linalg import LinAlgError

    from emgpr.arrays import NumericalError

    if isinstance(error, NumericalError | LinAlgError | ArithmeticError):
        return NUMERICAL
    return DATA if isinstance(error, ValueError) and _rejects_data(error) else UNEXPECTED


@contextmanager
def reading_data() -> Iterator[None]:
    """Convert any ValueError raised inside the `with` block to a DataError."""
    try:
        yield
    except ValueError as error:
        if exit_code(error) == NUMERICAL:
            raise
        raise DataError(_with_notes(error)) from error


def _rejects_data(error: ValueError) -> bool:
    """Tell whether the error was raised by emgpr or by scikit-learn's input validation.

    A ValueError raised anywhere else is a bug.
    """
    raised_in = Path(traceback.extract_tb(error.__traceback__)[-1].filename).parts
    is_ours = type(error).__module__.startswith("emgpr.") or "emgpr" in raised_in
    return is_ours or ("sklearn" in raised_in and "validation.py" in raised_in)


def _message(error: BaseException) -> str:
    text, code = _with_notes(error), exit_code(error)
    if isinstance(error, OSError) and error.strerror and text.startswith("[Errno"):
        what = error.filename or "The output"
        return f"{what} could not be read or written ({error.strerror}). Check the disk."
    if code == INTERRUPTED:
        return f"Interrupted. {text}"
    if isinstance(error, MemoryError):
        return f"Out of memory. Use fewer sites or a machine with more memory. {text}"
    if code == UNEXPECTED:
        return (
            f"Unexpected error, {type(error).__name__}: {text}. Please run the "
            "command again as 'emgpr --traceback …', and report the output."
        )
    return text


def _with_notes(error: BaseException) -> str:
    return " ".join([str(error), *getattr(error, "__notes__", [])])


@contextmanager
def _short_usage_errors() -> Iterator[None]:
    """Shorten Typer's usage errors to one line that ends with the help command to run."""
    try:
        yield
    except Exception as error:
        # A command without arguments raises NoArgsIsHelpError to print its help, which must not be
        # shortened. Compare class names, since the module of the class depends on Typer's version.
        if hasattr(error, "format_message") and type(error).__name__ != "NoArgsIsHelpError":
            text = " ".join(error.format_message().split())
            context = getattr(error, "ctx", None)
            command = "emgpr" if context is None else context.command_path
            line = f"{text}{'' if text.endswith(('.', '?')) else '.'} Help: {command} --help"
            error.show = lambda file=None: print_line(line)  # type: ignore[attr-defined]
        raise


@contextmanager
def _warnings_as_lines(group: TyperGroup, ctx: Any) -> Iterator[list[str]]:
    """Print each distinct warning once, on one line.

    Warnings about failed ensemble members are also appended to the yielded list.
    """
    printed: list[str] = []
    failed_members: list[str] = []

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = _in_words(str(message), group, ctx)
        # Compare names, since importing the class would make every command wait for SciPy.
        if category.__name__ == "EnsembleWarning":
            failed_members.append(text)
        # A fit repeats the warnings of the table check. Skip them, since they have been printed
        # already, some of them with a remedy appended.
        if not any(text in line for line in printed):
            printed.append(text)
            print_line(f"warning: {text}")

    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("always", UserWarning)
        # The exit code must not depend on the user's warning filters.
        warnings.filterwarnings("always", message=r"\d+ of \d+ members failed")
        warnings.showwarning = show
        yield failed_members
