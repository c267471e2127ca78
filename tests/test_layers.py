"""The architecture, checked: data flows one way, and importing it is light."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("matplotlib", "torch", "xarray", "dask", "distributed", "h5py", "jinja2", "typer", "rich")


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)


def test_each_package_imports_only_from_those_below_it():
    cli = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    report = run("-c", cli, "--no-cache")
    assert report.returncode == 0, report.stdout + report.stderr
    assert "1 kept, 0 broken" in report.stdout  # the contract was found, and looked at


@pytest.mark.parametrize("heavy", HEAVY)
def test_importing_the_package_leaves_out(heavy, brought):
    assert heavy not in brought


def test_only_the_arrays_know_torch():
    package = ROOT / "src" / "emgpr"
    knows = re.compile(r"^\s*(import|from) torch|import_module\(.torch", re.MULTILINE)
    found = {path.parent for path in package.rglob("*.py") if knows.search(path.read_text("utf8"))}
    assert found == {package / "arrays"}


@pytest.fixture(scope="module")
def brought() -> set[str]:
    """What our estimators bring beyond scikit-learn, which may import rich itself."""
    with_us = modules_after("from emgpr import EMGPR")
    assert "emgpr.estimators" in with_us
    return with_us - modules_after("import sklearn.gaussian_process, sklearn.cluster")


def modules_after(statement: str) -> set[str]:
    fresh = run("-c", f"import sys; {statement}; print(*sys.modules)")
    assert fresh.returncode == 0, fresh.stderr
    return set(fresh.stdout.split())
