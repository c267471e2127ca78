"""The code on a page: its blocks, and running them as a reader would, one after another."""

import contextlib
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

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
TOLERANCE = 0.05  # other processors and libraries round otherwise, and searches end elsewhere


@dataclass(frozen=True)
class Block:
    """A piece of code as it is printed."""

    page: Path
    line: int  # of its first line of code, from 1
    language: str
    code: str
    output: str | None  # what the page says it prints
    not_run: str | None  # why

    @property
    def is_command(self) -> bool:
        """Whether it begins with our command; others (pip, make) set up what tests have."""
        words = [line for line in self.code.splitlines() if line and not line.startswith("#")]
        return self.language == "sh" and bool(words) and words[0].startswith("emgpr ")

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}, line {self.line}"


def blocks(page: Path) -> list[Block]:
    """All of the page, in order."""
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


def _missing(needs: str | None) -> str | None:
    """Why a block is not run that needs a package: it is not here."""
    return f"{needs} is not here" if needs and find_spec(needs) is None else None


def run(block: Block, names: dict[str, Any]) -> str:
    """What it prints: Python sees the names of blocks before it, commands the folder."""
    if block.language == "python":
        code = "\n" * (block.line - 1) + block.code  # tracebacks show the page's own lines
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(code, str(block.page), "exec"), names)
        plt.close("all")
        return said.getvalue()
    done = subprocess.run(
        ["sh", "-e", "-c", block.code], env=_with_our_command(), capture_output=True, text=True
    )
    assert done.returncode == 0, f"{block}: {done.stderr}"
    return done.stdout


def _with_our_command() -> dict[str, str]:
    """An environment whose `emgpr` is that of the Python that runs the tests."""
    commands = Path("bin").resolve()
    if not commands.exists():
        commands.mkdir()
        command = commands / "emgpr"
        start = "from emgpr.cli import app; app()"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{start}" "$@"\n')
        command.chmod(0o755)
    paths = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    return os.environ | {
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": paths,
        "MPLBACKEND": "Agg",
    }


def agree(said: str, printed: str) -> bool:
    """Whether they are the same words, and numbers alike.

    >>> agree("off by  0.398 mg/kg\\n", "off by 0.395 mg/kg")
    True
    >>> agree("off by 0.5 mg/kg", "off by 0.395 mg/kg"), agree("0.395", "0.395 0.395")
    (False, False)
    """
    words = [NUMBER.sub("#", text).split() for text in (said, printed)]
    numbers = [NUMBER.findall(text) for text in (said, printed)]
    return words[0] == words[1] and all(map(_alike, *numbers))


def _alike(said: str, printed: str) -> bool:
    last_digit = 10.0 ** -len(printed.partition(".")[2]) if "." in printed else 0.0
    return abs(float(said) - float(printed)) <= max(TOLERANCE * abs(float(printed)), last_digit)
