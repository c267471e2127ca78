"""The Python interpreter for each method: the current one, or one from a virtual environment.

Virtual environments are created in .bench/. The file of a method declares its requirements in
constants, which are read without importing the file. If a library cannot be installed, the reason
is reported, and the other methods are run.
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
    """Error for a library that could not be installed. The message gives the reason."""


@dataclass(frozen=True)
class Method:
    """A variant of a method, which becomes one row of the table."""

    name: str
    file: Path
    settings: dict[str, Any]
    requirements: tuple[str, ...]


def methods(folder: Path = METHODS) -> list[Method]:
    """Return the variants of all methods: first emgpr, then scikit-learn, then the others."""
    variants = []
    for file in sorted(folder.glob("*.py"), key=lambda file: (_rank(file), file.stem)):
        constants = declarations(file)
        for name, settings in constants["VARIANTS"].items():
            variants.append(Method(name, file, settings, constants["REQUIREMENTS"]))
    return variants


def declarations(file: Path) -> dict[str, Any]:
    """Return the constants REQUIREMENTS and VARIANTS of a file without running it."""
    required = {"REQUIREMENTS", "VARIANTS"}
    constants = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id in required
    }
    if missing := required - constants.keys():
        raise ValueError(f"{file.name} does not declare {' and '.join(sorted(missing))}")
    return constants


def python_for(method: Method, log: Callable[[str], None], bench: Path = BENCH) -> Path:
    """Return an interpreter that has a method's requirements, installing them if necessary."""
    if all(map(_is_installed, method.requirements)):
        return Path(sys.executable)
    folder = bench / method.file.stem
    python, done = folder / "bin" / "python", folder / "requirements.txt"
    requirements = "\n".join(method.requirements)
    if done.exists() and done.read_text() == requirements:
        return python
    log(f"installing {', '.join(method.requirements)}")
    _run([sys.executable, "-m", "venv", "--clear", "--without-pip", str(folder)])
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    _run([*pip, "install", "--quiet", *method.requirements])
    done.write_text(requirements)
    return python


def _rank(file: Path) -> int:
    return {"emgpr": 0, "scikit_learn": 1}.get(file.stem, 2)


def _is_installed(requirement: str) -> bool:
    name, _, version = requirement.partition("==")
    try:
        return version in ("", importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return False


def _run(command: list[str]) -> None:
    """Run a command, and raise `NotInstalled` with its error message if it fails."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        lines = (result.stderr or result.stdout).strip().splitlines()
        errors = [line for line in lines if line.startswith("ERROR")]
        reason = (errors or lines[-1:] or ["no reason given"])[0]
        raise NotInstalled(reason.removeprefix("ERROR: "))
