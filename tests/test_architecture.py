"""The architecture: imports go one way, pieces are typed, and every registry is what it says."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "emgpr"
HEAVY = ("matplotlib", "torch", "xarray", "dask", "distributed", "h5py", "jinja2", "typer", "rich")
MODULES = {path: ast.parse(path.read_text("utf8")) for path in PACKAGE.rglob("*.py")}


def run(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True)


def test_each_package_imports_only_from_those_below_it():
    cli = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    report = run("-c", cli, "--no-cache")
    assert report.returncode == 0, report.stdout + report.stderr
    assert "1 kept, 0 broken" in report.stdout  # the contract was found, and checked


@pytest.mark.parametrize("heavy", HEAVY)
def test_importing_the_package_does_not_import(heavy, imported):
    assert heavy not in imported


@pytest.fixture(scope="module")
def imported() -> set[str]:
    """What our estimators import beyond scikit-learn, which may import rich itself."""
    with_us = modules_after("from emgpr import EMGPR, datasets")
    assert "emgpr.estimators" in with_us
    return with_us - modules_after("import sklearn.gaussian_process, sklearn.cluster")


def modules_after(statement: str) -> set[str]:
    fresh = run("-c", f"import sys; {statement}; print(*sys.modules)")
    assert fresh.returncode == 0, fresh.stderr
    return set(fresh.stdout.split())


def test_only_the_arrays_package_imports_torch():
    imports_torch = re.compile(r"^\s*(import|from) torch|import_module\(.torch", re.MULTILINE)
    found = {path.parent for path in MODULES if imports_torch.search(path.read_text("utf8"))}
    assert found == {PACKAGE / "arrays"}


def test_no_function_takes_a_model_of_any_type():
    untyped = [
        f"{path.name}: {function.name}({argument.arg})"
        for path, tree in MODULES.items()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.Lambda)
        for argument in [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        if argument.arg in ("model", "estimator", "models", "estimators")
        and argument.annotation is not None
        and re.search(r"\bAny\b", ast.unparse(argument.annotation))
    ]
    assert untyped == []


def test_private_attributes_are_read_only_in_the_file_that_sets_them():
    """Attributes with a leading underscore; methods that subclasses share are not attributes."""
    set_in, read_in = defaultdict(set), defaultdict(set)
    for path, tree in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                (read_in if isinstance(node.ctx, ast.Load) else set_in)[node.attr].add(path)
            if isinstance(node, ast.ClassDef):
                for line in node.body:
                    for name in assigned_names(line):
                        if is_private(name):
                            set_in[name].add(path)
    shared = {
        name: sorted(path.name for path in read_in[name] - files)
        for name, files in set_in.items()
        if read_in[name] - files
    }
    assert shared == {}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def assigned_names(line: ast.stmt) -> list[str]:
    if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
        return [line.target.id]
    if isinstance(line, ast.Assign):
        return [target.id for target in line.targets if isinstance(target, ast.Name)]
    return []


def test_at_most_two_classes_lie_between_emgpr_and_scikit_learn():
    from emgpr import EMGPR

    own = [cls.__name__ for cls in EMGPR.__mro__ if cls.__module__.startswith("emgpr")]
    assert own == ["EMGPR", "MultiOutputGP", "GPRegressor"]
    assert issubclass(EMGPR, BaseEstimator)


def test_no_file_has_more_than_400_lines():
    long = {
        path.name: n for path in MODULES if (n := len(path.read_text("utf8").splitlines())) > 400
    }
    assert long == {}


def test_only_one_module_issues_warnings():
    """It finds the user's line; a fixed stacklevel points at our own files."""
    direct = [
        path.name
        for path, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "warnings.warn"
    ]
    assert direct == ["user_warnings.py"]


def test_tests_lie_where_their_modules_lie():
    """A file test_<module>.py or test_<module>_<aspect>.py is in the folder of its module."""
    stray = []
    for test in (ROOT / "tests").rglob("test_*.py"):
        folder = PACKAGE / test.parent.relative_to(ROOT / "tests")
        if not folder.is_dir() or test == Path(__file__):  # e.g. identities, robustness, frozen
            continue
        modules = {folder.name, *(path.stem for path in folder.iterdir())}
        name = test.stem.removeprefix("test_")
        if not any(name == module or name.startswith(f"{module}_") for module in modules):
            stray.append(str(test.relative_to(ROOT)))
    assert stray == []


def test_files_named_on_pages_exist():
    pages = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        name
        for page in pages
        for name in re.findall(r"`((?:[\w-]+/)+[\w-]+\.py)`", page.read_text("utf8"))
    }
    assert named
    folders = (ROOT, PACKAGE, PACKAGE.parent)
    assert [name for name in named if not any((at / name).exists() for at in folders)] == []
