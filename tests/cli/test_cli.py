"""The command line as a whole: help, its examples, the version, and what it imports."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import emgpr
from emgpr.cli import app

from .commands import invoke, succeed

pytestmark = pytest.mark.slow

NOT_RUN = ("swath", "demo", "reproduce")  # need files or minutes; each has its own tests
SLOW = ("report", "validate")  # more than a second each


def commands(group, path=()):
    """Yield every command with its path, those of groups too."""
    yield path, group
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, (*path, name))


def examples_of(command):
    text = (command.help or "").partition("Examples:")[2]
    # A remark on an example follows after two spaces or more.
    return [re.split(r"\s{2,}", line.strip())[0] for line in text.splitlines() if "emgpr " in line]


EXAMPLES = {
    " ".join(path): examples_of(command)
    for path, command in commands(get_command(app))
    if not hasattr(command, "commands") or not path
}


def commands_on(page):
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("emgpr ")]
    return {re.split(r"\s{2,}#", line)[0] for line in lines}


PAGES = {page: commands_on(page) for page in ("README.md", "docs/command-line.md")}
RUN = [
    example
    for path, examples in EXAMPLES.items()
    for example in examples
    if path and path.split()[0] not in NOT_RUN and example not in PAGES["docs/command-line.md"]
]


def test_version():
    assert succeed("--version").stdout == f"emgpr {emgpr.__version__}\n"


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "emgpr", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"emgpr {emgpr.__version__}\n"


def test_help_does_not_wait_for_imports():
    """Commands import numerical packages when they run."""
    code = (
        "import sys, emgpr; before = set(sys.modules); import emgpr.cli; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before}; "
        "slow = {'numpy', 'scipy', 'sklearn', 'pandas', 'matplotlib', 'joblib', 'h5py'}; "
        "ours = {name for name in sys.modules if name.startswith(('emgpr.exp', 'emgpr.plots'))}; "
        "sys.exit(str(new & slow | ours) if new & slow | ours else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_help_of_every_command_has_examples():
    for path, examples in EXAMPLES.items():
        text = succeed(*path.split(), "--help").stdout
        assert "\n  Examples:\n    emgpr " in text
        assert examples
        assert all(example.startswith(f"emgpr {path}") for example in examples)


def test_the_first_page_lists_every_command_with_examples_of_theirs():
    page = succeed("--help").stdout
    known = {example for path, examples in EXAMPLES.items() if path for example in examples}
    for command in {path.split()[0] for path in EXAMPLES if path}:
        assert re.search(rf"^  {command} ", page, re.MULTILINE)
    for example in EXAMPLES[""]:
        if shlex.split(example)[1] != "plot":  # shorter there
            assert example in known


def test_a_command_that_needs_arguments_prints_its_help_without_them():
    result = invoke("swath")
    assert result.exit_code == 2
    assert "Examples:" in result.output


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(line, marks=[pytest.mark.slow] if line.split()[1] in SLOW else [])
        for line in RUN
    ],
)
def test_an_example_runs_as_printed(here, example):
    """On a third of the Jura table; examples on the pages are run by tests/docs."""
    for package in ("xarray", "rasterio", "pyproj", "jinja2"):
        pytest.importorskip(package)
    result = succeed(*shlex.split(example)[1:])
    assert result.stderr == ""
    assert result.stdout
    if " -o " in example:
        assert (here / example.split(" -o ")[1]).stat().st_size > 500


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_show_examples_of_the_help(page):
    assert len(PAGES[page]) >= 5
    assert PAGES[page] <= {example for examples in EXAMPLES.values() for example in examples}
