"""The code blocks of a page, run as a reader would run them, one after another."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import traceback
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
from joblib.externals.loky import get_reusable_executor
from typer.testing import CliRunner

from emgpr.cli import app

matplotlib.use("Agg")

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

FENCE = re.compile(
    r"^(?:<!-- not run: (?P<why>.+?) -->\n)?"
    r"(?:<!-- run with (?P<needs>\w+) -->\n)?"
    r"```(?P<language>\w+)\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d*)?(?:e[-+]?\d+)?")
TOLERANCE = (
    0.05  # other processors and libraries round differently, and optimisations end elsewhere
)


@dataclass(frozen=True)
class Block:
    """A block of code as it is printed."""

    page: Path
    line: int  # of its first line of code, from 1
    language: str
    code: str
    output: str | None  # what it prints according to the page
    not_run: str | None  # the reason

    @property
    def is_command(self) -> bool:
        """Whether it starts with our command; others (pip, make) prepare what the tests have."""
        lines = [line for line in self.code.splitlines() if line and not line.startswith("#")]
        return self.language == "sh" and bool(lines) and lines[0].startswith("emgpr ")

    @property
    def is_run(self) -> bool:
        """Whether it is run, as Python or as a command."""
        return self.not_run is None and (self.language == "python" or self.is_command)

    def __str__(self) -> str:
        return f"{os.path.relpath(self.page, ROOT)}, line {self.line}"


def blocks(page: Path) -> list[Block]:
    """Return all blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            page,
            text.count("\n", 0, found.start("code")) + 1,
            found["language"],
            found["code"],
            found["output"],
            found["why"] or _missing(found["needs"]),
        )
        for found in FENCE.finditer(text)
    ]


def _missing(package: str | None) -> str | None:
    """Return the reason not to run a block that needs a package which is not installed."""
    return f"{package} is not here" if package and find_spec(package) is None else None


def run_page(page: Path, folder: Path) -> list[str]:
    """Run the blocks of a page in a folder; return where the output differs from the page.

    An error is raised as an AssertionError, which can be passed on by another process.
    """
    os.chdir(folder)
    try:
        return _run_blocks(page)
    finally:
        # The worker processes of joblib stay for five minutes, and this process would wait.
        get_reusable_executor(reuse=True).shutdown(kill_workers=True)


def _run_blocks(page: Path) -> list[str]:
    names: dict[str, Any] = {"__name__": "__main__"}
    differences = []
    for block in blocks(page):
        if block.is_run:
            try:
                printed = run(block, names)
            except Exception:
                raise AssertionError(f"{block}:\n{traceback.format_exc()}") from None
            if block.output is not None and not agree(printed, block.output):
                differences.append(f"{block} prints\n{printed}not\n{block.output}")
    return differences


def run(block: Block, names: dict[str, Any]) -> str:
    """Return what a block prints; Python has the names of earlier blocks, commands the folder."""
    if block.language != "python":
        return "".join(_run_command(block, words) for words in _commands(block.code))
    code = "\n" * (block.line - 1) + block.code  # tracebacks show the lines of the page
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")  # a page must not show code that warns
        warnings.filterwarnings("ignore", category=DeprecationWarning, module="torch")  # GPyTorch
        exec(compile(code, str(block.page), "exec"), names)
    plt.close("all")
    return printed.getvalue()


def _commands(code: str) -> list[list[str]]:
    r"""Return the words of each command, without comments.

    >>> _commands("emgpr fit a.csv \\\n  -y Cd  # cadmium\n\nemgpr demo\n")
    [['emgpr', 'fit', 'a.csv', '-y', 'Cd'], ['emgpr', 'demo']]
    """
    lines = (shlex.split(line, comments=True) for line in code.replace("\\\n", " ").splitlines())
    return [words for words in lines if words]


def _run_command(block: Block, words: list[str]) -> str:
    """Run a command: ours in this process, which saves the imports, others in their own."""
    if words[0] == "emgpr":
        with warnings.catch_warnings():
            warnings.resetwarnings()  # a warning is an error in tests, but not in a terminal
            result = CliRunner().invoke(app, words[1:], prog_name="emgpr")
        assert result.exit_code == 0, f"{block}: {result.stderr}"
        return result.stdout
    done = subprocess.run(words, env=os.environ, capture_output=True, text=True)
    assert done.returncode == 0, f"{block}: {done.stderr}"
    return done.stdout


def agree(printed: str, expected: str) -> bool:
    """Tell whether the words are the same, and the numbers nearly so, up to a last line "…".

    >>> agree("off by  0.398 mg/kg\\n", "off by 0.395 mg/kg")
    True
    >>> agree("off by 0.5 mg/kg", "off by 0.395 mg/kg"), agree("0.395", "0.395 0.395")
    (False, False)
    >>> agree("1\\n2\\n3\\n", "1\\n…\\n"), agree("1\\n2\\n3\\n", "2\\n…\\n")
    (True, False)
    """
    if expected.endswith("\n…\n"):
        expected = expected.removesuffix("…\n")
        printed = "\n".join(printed.splitlines()[: expected.count("\n")])
    words = [NUMBER.sub("#", text).split() for text in (printed, expected)]
    numbers = [NUMBER.findall(text) for text in (printed, expected)]
    return words[0] == words[1] and all(map(_nearly_equal, *numbers))


def _nearly_equal(printed: str, expected: str) -> bool:
    last_digit = 10.0 ** -len(expected.partition(".")[2]) if "." in expected else 0.0
    bound = max(TOLERANCE * abs(float(expected)), last_digit)
    return abs(float(printed) - float(expected)) <= bound
