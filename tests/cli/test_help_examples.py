"""Every example of every command's help, run as printed after `emgpr example`."""

import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from emgpr.cli import app

BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)
NEEDS_FILES_OR_MINUTES = ("swath", "demo", "reproduce")  # each with tests of its own


def commands(group=None, path=()):
    """Every command and its path, those of groups too."""
    group = group or get_command(app)
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


def examples_of(command):
    text = (command.help or "").partition("Examples:")[2]
    # What is said of an example stands beside it, two spaces or more away.
    return [re.split(r"\s{2,}", line.strip())[0] for line in text.splitlines() if "emgpr " in line]


EXAMPLES = {
    " ".join(path): examples_of(command)
    for path, command in commands()
    if not hasattr(command, "commands") or not path
}
RUN = [
    example
    for path, examples in EXAMPLES.items()
    for example in examples
    if path and shlex.split(example)[1] not in NEEDS_FILES_OR_MINUTES
]


@pytest.mark.parametrize("path", EXAMPLES)
def test_every_command_has_examples_of_its_own(path):
    assert EXAMPLES[path]
    assert all(example.startswith(f"emgpr {path}") for example in EXAMPLES[path])


@pytest.mark.parametrize("command", [path.split()[0] for path in EXAMPLES if path])
def test_the_first_page_names_every_command(command):
    page = CliRunner().invoke(app, ["--help"]).stdout
    assert re.search(rf"^  {command} ", page, re.MULTILINE)


def test_the_first_page_shows_only_what_the_commands_show():
    known = {example for examples in EXAMPLES.values() for example in examples}
    for example in EXAMPLES[""]:
        if shlex.split(example)[1] not in ("grid", "plot"):  # shorter there
            assert example in known


def test_the_examples_run_as_printed(tmp_path, monkeypatch):
    pytest.importorskip("xarray")
    pytest.importorskip("rasterio")
    monkeypatch.chdir(tmp_path)
    assert RUN[0] == "emgpr example"
    done = set()
    for example in RUN:
        result = CliRunner().invoke(app, shlex.split(example)[1:], prog_name="emgpr")
        assert result.exit_code == 0, (example, result.output, result.exception)
        assert result.stderr == "", example
        assert result.stdout, example
        done.add(shlex.split(example)[1])
        if " -o " in example:
            assert (tmp_path / example.split(" -o ")[1]).stat().st_size > 500, example
    every = {path.split()[0] for path in EXAMPLES if path}
    assert done == every - set(NEEDS_FILES_OR_MINUTES)


@pytest.mark.parametrize("page", ["README.md", "docs/command-line.md"])
def test_what_the_pages_show_is_in_the_help(page):
    """So it is run, above."""
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    shown = [line for block in BLOCK.findall(text) for line in block.splitlines() if line]
    shown = [re.split(r"\s{2,}#", line)[0] for line in shown if line.startswith("emgpr ")]
    known = {example for examples in EXAMPLES.values() for example in examples}
    assert len(shown) >= 5
    assert set(shown) <= known
