"""Where each method runs: here if it is here, else in an environment of its own under .bench/.

A method's file says what it needs at its top, and is read without being imported. A peer that
cannot be installed is reported with the reason, and the others go on.
"""

import ast
import importlib.metadata
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

METHODS = Path(__file__).parent / "methods"
BENCH = Path(__file__).parents[1] / ".bench"


class NotInstalled(RuntimeError):
    """A peer could not be installed; the message says why."""


@dataclass(frozen=True)
class Method:
    """One variant of a method's file: a row of the table."""

    name: str
    file: Path
    settings: dict[str, Any]
    requirements: tuple[str, ...]


def methods(folder: Path = METHODS) -> list[Method]:
    """Every variant in the folder; emgpr's first, then the yardstick, then the peers."""
    found = []
    for file in sorted(folder.glob("*.py"), key=lambda file: (_rank(file), file.stem)):
        said = declared(file)
        for name, settings in said["VARIANTS"].items():
            found.append(Method(name, file, settings, said["REQUIREMENTS"]))
    return found


def declared(file: Path) -> dict[str, Any]:
    """The constants REQUIREMENTS and VARIANTS of a file, without running it."""
    wanted = {"REQUIREMENTS", "VARIANTS"}
    constants = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in wanted
    }
    if missing := wanted - constants.keys():
        raise ValueError(f"{file.name} does not declare {' and '.join(sorted(missing))}")
    return constants


def python_for(method: Method, say: Callable[[str], None], bench: Path = BENCH) -> Path:
    """The interpreter that has what the method needs, installed if it has to be."""
    if all(map(_is_here, method.requirements)):
        return Path(sys.executable)
    folder = bench / method.file.stem
    python, done = folder / "bin" / "python", folder / "requirements.txt"
    wanted = "\n".join(method.requirements)
    if done.exists() and done.read_text() == wanted:
        return python
    say(f"installing {', '.join(method.requirements)}")
    _checked([sys.executable, "-m", "venv", "--clear", str(folder)])
    _checked([str(python), "-m", "pip", "install", "--quiet", *method.requirements])
    done.write_text(wanted)
    return python


def _rank(file: Path) -> int:
    return {"emgpr": 0, "scikit_learn": 1}.get(file.stem, 2)


def _is_here(requirement: str) -> bool:
    name, _, version = requirement.partition("==")
    try:
        return version in ("", importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False


def _checked(command: list[str]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        lines = (result.stderr or result.stdout).strip().splitlines()
        reasons = (
            [line for line in lines if line.startswith("ERROR")] or lines[-1:] or ["no reason"]
        )
        raise NotInstalled(reasons[0].removeprefix("ERROR: "))
