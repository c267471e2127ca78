"""Whatever goes wrong in a command: one line on stderr, the remedy, and the code that says what."""

import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import emgpr
from emgpr import EnsembleWarning, ModelFileError
from emgpr.arrays import NumericalError
from emgpr.cli import app
from emgpr.cli.complaints import Foreseen, code_of, reading
from emgpr.experiments import demo


def demo_says(*options, **environment):
    return CliRunner().invoke(app, [*options, "demo", "--out", "."], env=environment)


@pytest.fixture
def failing(monkeypatch, tmp_path):
    """A demo that ends in an error."""
    monkeypatch.chdir(tmp_path)

    def fail(error):
        def work(**_):
            raise error

        monkeypatch.setattr(demo, "compare", work)

    return fail


def interrupted():
    stop = KeyboardInterrupt()
    stop.add_note("What was finished is kept in a.ck.")
    return stop


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ModelFileError("m.emgpr is damaged. Copy it again."), 3, "m.emgpr is damaged. Copy it"),
        (FileNotFoundError(2, "No such file", "a.csv"), 3, "No such file: 'a.csv'"),
        (NumericalError("The covariance is not positive definite."), 4, "not positive definite"),
        (np.linalg.LinAlgError("Singular matrix"), 4, "Singular"),
        (interrupted(), 130, "stopped. What was finished is kept in a.ck."),
        (KeyError("x"), 1, "KeyError: 'x' (unforeseen; run again with --traceback"),
        (MemoryError(), 1, "not enough memory. Use fewer sites"),
        (ImportError("needs torch: pip install 'emgpr[torch]'"), 2, "pip install"),
    ],
)
def test_every_error_is_one_line_and_its_code(failing, error, code, line):
    failing(error)
    result = demo_says()
    assert result.exit_code == code
    (said,) = result.stderr.splitlines()
    assert said.startswith("emgpr: ")
    assert line in said


def test_what_the_door_refuses_is_bad_data_and_what_numpy_does_is_not_foreseen(
    monkeypatch, failing
):
    def refused(**_):
        emgpr.EMGPR().fit([[0.0], [np.nan]], [1.0, 2.0])

    def mistaken(**_):
        np.random.default_rng(-1)

    monkeypatch.setattr(demo, "compare", refused)
    result = demo_says()
    assert result.exit_code == 3
    assert "Drop" in result.stderr
    monkeypatch.setattr(demo, "compare", mistaken)
    assert demo_says().exit_code == 1


@pytest.mark.parametrize("asked", [(["--traceback"], {}), ([], {"EMGPR_TRACEBACK": "1"})])
def test_a_traceback_is_shown_if_asked_for(failing, asked):
    options, environment = asked
    failing(NumericalError("It is singular."))
    result = demo_says(*options, **environment)
    assert result.exit_code == 4
    first, *_, last = result.stderr.splitlines()
    assert first.startswith("Traceback")
    assert last == "emgpr: It is singular."


def test_an_ensemble_that_lost_members_is_done_but_partial(monkeypatch, failing):
    def work(**_):
        warnings.warn("2 of 8 members failed twice and are left out", EnsembleWarning, stacklevel=2)
        return []

    monkeypatch.setattr(demo, "compare", work)
    monkeypatch.setattr(demo, "draw_maps", lambda **_: a_figure())
    result = demo_says()
    assert result.exit_code == 5
    assert result.stderr == "emgpr: warning: 2 of 8 members failed twice and are left out\n"


def a_figure():
    from matplotlib.figure import Figure

    return Figure()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["demo", "--no-such"], "--no-such. Help: emgpr demo --help"),
        (["--no-such", "demo"], "--no-such. Help: emgpr --help"),
        (["dmo"], "No such command 'dmo'."),
        (["swath", "a.h5"], "Missing argument"),
        (["reproduce", "jura", "--n-jobs", "0"], "give 1 or more, or -1 for one a core."),
        (["reproduce", "jura", "--restarts", "none"], "--restarts"),
    ],
)
def test_usage_errors_are_one_line_that_says_where_help_is(arguments, line):
    result = CliRunner().invoke(app, arguments, prog_name="emgpr")
    assert result.exit_code == 2
    (said,) = result.stderr.splitlines()
    assert said.startswith("emgpr: ")
    assert line in said.replace("'--no-such'", "--no-such")  # as older typers quote it
    assert "--help" in said


def test_a_command_that_needs_arguments_shows_its_help_without_them():
    result = CliRunner().invoke(app, ["swath"])
    assert result.exit_code == 2
    assert "Examples:" in result.output


def test_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "emgpr", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"emgpr {emgpr.__version__}\n"


def test_a_traceback_is_shown_of_what_is_wrong_with_a_file_too(tmp_path):
    (tmp_path / "rows.jsonl").write_text("mae = 0.4\n")
    asked = ["--traceback", "reproduce", "jura", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 3
    first, *_, last = result.stderr.splitlines()
    assert first.startswith("Traceback")
    assert last.startswith("emgpr: ")


def test_numbers_that_fail_while_a_file_is_read_are_no_bad_data():
    def fail():
        with reading():
            raise NumericalError("It is singular.")

    with pytest.raises(Foreseen) as told:
        fail()
    assert code_of(told.value) == 4


def test_ctrl_c_amid_the_imports_is_told_without_them(monkeypatch):
    for name in ("numpy.linalg", "emgpr.arrays"):
        monkeypatch.setitem(sys.modules, name, None)  # whose import fails
    assert code_of(KeyboardInterrupt()) == 130


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_ends_the_command_with_130_and_no_traceback(tmp_path):
    # What is started in the background of a shell ignores ctrl-C, unless it says otherwise.
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = f"{heed}; from emgpr.cli import app; app(['demo', '--out', {str(tmp_path)!r}])"
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", command], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline().startswith("Cadmium")
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130
    (line,) = stderr.splitlines()
    assert line.startswith("emgpr: stopped.")
