"""What went wrong, in one line that says what to do, and the exit code that scripts read.

    0  all is well            3  data: files or values      5  done, but members failed
    1  something unforeseen   4  numerical                  130  interrupted
    2  usage

A traceback is shown if asked for, with --traceback or EMGPR_TRACEBACK=1.
"""

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

UNFORESEEN, USAGE, BAD_DATA, NUMERICAL, PARTIAL, INTERRUPTED = 1, 2, 3, 4, 5, 130

THEIRS = (typer.Abort, SystemExit, BrokenPipeError)  # and usage errors, which have their exit code


class Foreseen(Exception):
    """A command's own complaint: what to say, and the exit code."""

    def __init__(self, what: object, code: int) -> None:
        super().__init__(str(what))
        self.code = code


class Complaining(TyperGroup):
    """Commands whose errors, of whatever kind, end in one line and the right code."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """As usual; mistakes in the options before the command are one line too."""
        with _usage_in_one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            with _usage_in_one_line(), _warnings_as_lines() as failed:
                answer = super().invoke(ctx)
        except BaseException as error:
            if isinstance(error, THEIRS) or hasattr(error, "exit_code"):
                raise
            if ctx.params.get("traceback"):
                traceback.print_exc()
            code = code_of(error)
            say(_remedied(error, code))
            raise typer.Exit(code) from error
        if failed:
            raise typer.Exit(PARTIAL)
        return answer


@contextmanager
def _usage_in_one_line() -> Iterator[None]:
    """Typer's usage errors say what is wrong and where help is, without the help itself."""
    try:
        yield
    except Exception as error:
        # By name: a command without arguments that answers with its help is one of them.
        if hasattr(error, "format_message") and type(error).__name__ != "NoArgsIsHelpError":
            error.show = partial(_say_usage, error)  # type: ignore[attr-defined]
        raise


def _say_usage(error: Any, file: Any = None) -> None:
    context = getattr(error, "ctx", None)
    command = "emgpr" if context is None else context.command_path
    said = " ".join(error.format_message().split())
    say(f"{said}{'' if said.endswith(('.', '?')) else '.'} Help: {command} --help")


def code_of(error: BaseException) -> int:
    """The exit code that says what kind of error this is."""
    if isinstance(error, KeyboardInterrupt):  # first: it may have come amid these imports
        return INTERRUPTED
    if isinstance(error, Foreseen):
        return error.code
    from numpy.linalg import LinAlgError

    from emgpr.arrays import NumericalError

    if isinstance(error, NumericalError | LinAlgError | ArithmeticError):
        return NUMERICAL
    if isinstance(error, ImportError):  # an extra that was not installed
        return USAGE
    if isinstance(error, OSError) or (isinstance(error, ValueError) and _is_refusal(error)):
        return BAD_DATA
    return UNFORESEEN


def _is_refusal(error: BaseException) -> bool:
    """Whether we raised it, or who checks arrays for us: else it is a mistake of ours."""
    raised = Path(traceback.extract_tb(error.__traceback__)[-1].filename).parts
    ours = type(error).__module__.startswith("emgpr.") or "emgpr" in raised
    return ours or ("sklearn" in raised and "validation.py" in raised)


def _remedied(error: BaseException, code: int) -> str:
    """What is said of it: the message, and what to do."""
    said = [str(error), *getattr(error, "__notes__", [])]
    if isinstance(error, Foreseen):
        return " ".join(said)
    if code == INTERRUPTED:
        return " ".join(["stopped.", *said])
    if isinstance(error, MemoryError):
        return " ".join(["not enough memory. Use fewer sites, or a computer with more.", *said])
    if code == UNFORESEEN:
        name = type(error).__name__
        return f"{name}: {' '.join(said)} (unforeseen; run again with --traceback and report it)"
    return " ".join(said)


@contextmanager
def _warnings_as_lines() -> Iterator[list[str]]:
    """Warnings are lines on stderr; those of members that failed are also returned."""
    failed: list[str] = []

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if category.__name__ == "EnsembleWarning":
            failed.append(str(message))
        say(f"warning: {message}")

    with warnings.catch_warnings():
        # By their words and name: importing their class would make every command wait for SciPy.
        warnings.filterwarnings("always", message=r"\d+ of \d+ members failed")
        warnings.showwarning = show
        yield failed


def say(what: object) -> None:
    """One line on stderr."""
    typer.echo("emgpr: " + " ".join(str(what).split()), err=True)


def complain(what: object, code: int) -> Foreseen:
    """Raise what is returned to say it on stderr and leave with this code."""
    return Foreseen(what, code)


@contextmanager
def reading() -> Iterator[None]:
    """While a user's files are read: whatever is wrong with their values is wrong with the data."""
    try:
        yield
    except ImportError as error:
        raise complain(error, USAGE) from error
    except (OSError, ValueError) as error:
        code = code_of(error)
        said = [str(error), *getattr(error, "__notes__", [])]
        raise complain(" ".join(said), code if code == NUMERICAL else BAD_DATA) from error


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
