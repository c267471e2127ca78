"""Errors of any kind end in one line on stderr with what to do, and in an exit code."""

import os
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from matplotlib.figure import Figure

import emgpr
from emgpr import EnsembleWarning, ModelFileError
from emgpr.arrays import NumericalError
from emgpr.cli.errors import DataError, exit_code, reading_data
from emgpr.experiments import demo

from .commands import invoke


@pytest.fixture
def run_demo(monkeypatch, tmp_path):
    """Run the demo with another computation."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "draw_maps", lambda **_: Figure())

    def run(compute, *options, **environment):
        monkeypatch.setattr(demo, "compare", lambda **_: compute() or [])
        return invoke(*options, "demo", "--out", ".", env=environment)

    return run


def failing(error):
    def fail():
        raise error

    return fail


def interrupt():
    error = KeyboardInterrupt()
    error.add_note("Finished members are stored in a.ck.")
    return error


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ModelFileError("m.emgpr is damaged. Copy it again."), 3, "m.emgpr is damaged. Copy it"),
        (
            FileNotFoundError(2, "No such file", "a.csv"),
            3,
            "a.csv could not be read or written (No such",
        ),
        (NumericalError("The covariance is not positive definite."), 4, "not positive definite"),
        (np.linalg.LinAlgError("Singular matrix"), 4, "Singular"),
        (interrupt(), 130, "Interrupted. Finished members are stored in a.ck."),
        (
            KeyError("x"),
            1,
            "Unexpected error, KeyError: 'x'. Please run the command again",
        ),
        (MemoryError(), 1, "Out of memory. Use fewer sites"),
        (ImportError("needs torch: pip install 'emgpr[torch]'"), 2, "pip install"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(run_demo, error, code, text):
    result = run_demo(failing(error))
    assert result.exit_code == code
    (line,) = result.stderr.splitlines()
    assert line.startswith("emgpr: ")
    assert text in line


def test_values_that_the_library_rejects_are_data_errors_and_those_that_numpy_does_are_not(
    run_demo,
):
    result = run_demo(lambda: emgpr.EMGPR().fit([[0.0], [np.nan]], [1.0, 2.0]))
    assert result.exit_code == 3
    assert "Drop" in result.stderr
    assert run_demo(lambda: np.random.default_rng(-1)).exit_code == 1


def test_while_data_are_read_all_value_errors_are_data_errors_except_numerical_ones():
    with pytest.raises(DataError, match="no date"), reading_data():
        raise ValueError("no date")
    with pytest.raises(NumericalError), reading_data():
        raise NumericalError("It is singular.")


@pytest.mark.parametrize("how", [(["--traceback"], {}), ([], {"EMGPR_TRACEBACK": "1"})])
def test_a_traceback_is_shown_if_requested(run_demo, how):
    options, environment = how
    result = run_demo(failing(NumericalError("It is singular.")), *options, **environment)
    assert result.exit_code == 4
    first, *_, last = result.stderr.splitlines()
    assert first.startswith("Traceback")
    assert last == "emgpr: It is singular."


def test_members_that_failed_set_the_exit_code_whatever_the_warning_filters(run_demo):
    warning = "2 of 8 members failed twice and are left out"

    def compute():
        warnings.warn(warning, EnsembleWarning, stacklevel=2)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = run_demo(compute)
    assert result.exit_code == 5
    assert result.stderr == f"emgpr: warning: {warning}\n"


def test_a_warning_is_one_line_printed_once(run_demo):
    def compute():
        for _ in range(3):
            warnings.warn("something\nabout the data", UserWarning, stacklevel=1)

    result = run_demo(compute)
    assert result.exit_code == 0
    assert result.stderr == "emgpr: warning: something about the data\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["demo", "--no-such"], "--no-such. Help: emgpr demo --help"),
        (["--no-such", "demo"], "--no-such. Help: emgpr --help"),
        (["dmo"], "No such command 'dmo'."),
        (["swath", "a.h5"], "Missing argument"),
        (["reproduce", "jura", "--n-jobs", "0"], "Expected 1 or more processes, or -1"),
        (["reproduce", "jura", "--restarts", "none"], "--restarts"),
        (["reproduce", "atms"], "--tdr"),
    ],
)
def test_usage_errors_are_one_line_that_names_the_help(arguments, text):
    result = invoke(*arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("emgpr: ")
    assert text in line.replace("'--no-such'", "--no-such")  # as older versions of Typer quote it
    assert "--help" in line


def test_an_interrupt_during_imports_needs_no_import(monkeypatch):
    for name in ("numpy.linalg", "emgpr.arrays"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it fails
    assert exit_code(KeyboardInterrupt()) == 130


@pytest.mark.skipif(os.name != "posix", reason="needs the signals of POSIX")
@pytest.mark.slow
def test_ctrl_c_ends_a_command_with_130_and_no_traceback(tmp_path):
    # A process in the background of a shell ignores SIGINT unless it sets a handler.
    start = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = f"{start}; from emgpr.cli import app; app(['demo', '--out', {str(tmp_path)!r}])"
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", command],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline().startswith("Cadmium")
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    (line,) = stderr.splitlines()
    assert line == "emgpr: Interrupted."
