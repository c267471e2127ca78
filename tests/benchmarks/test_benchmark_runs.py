"""Runs of methods that succeed, fail, exceed the limit or are not installed."""

from argparse import Namespace
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from benchmarks.data import Problem
from benchmarks.environments import Method, NotInstalled, declarations, methods, python_for
from benchmarks.run import OVER_LIMIT, REFERENCE, last_core, run_problem
from benchmarks.scores import losses, summary

pytestmark = pytest.mark.slow

LIMITS = Namespace(limit=1.0, repeats=2, core=last_core())


def method(folder: Path, name: str, body: str) -> Method:
    file = folder / f"{name.split(',')[0]}.py"
    lines = dedent(body).strip().replace("\n", "\n    ")
    file.write_text(
        f'REQUIREMENTS = ("numpy",)\nVARIANTS = {{"{name}": {{}}}}\nimport numpy as np\n'
        f"def fit(X, Y, seed):\n    {lines}\n"
        "def predict(model, X_new):\n"
        "    return np.zeros((len(X_new), 2)), np.ones((len(X_new), 2))\n"
    )
    constants = declarations(file)
    return Method(name, file, constants["VARIANTS"][name], constants["REQUIREMENTS"])


@pytest.fixture
def problem(rng):
    truth = rng.normal(size=(5, 2))
    truth[0, 1] = np.nan
    return Problem(rng.uniform(size=(8, 2)), rng.normal(size=(8, 2)), np.zeros((5, 2)), truth)


def results(problem, chosen, excluded=None):
    pythons = {m.name: python_for(m, lambda _: None) for m in chosen}
    return list(run_problem(problem, chosen, pythons, excluded or {}, LIMITS))


def test_repeats_are_interleaved_and_the_reference_is_first(problem, tmp_path):
    chosen = [method(tmp_path, "other", "return 1"), method(tmp_path, REFERENCE, "return 1")]
    rows = results(problem, chosen)
    assert [(row["method"], row["repeat"]) for row in rows] == [
        (REFERENCE, 0), ("other", 0), (REFERENCE, 1), ("other", 1),
    ]  # fmt: skip
    assert all(row["status"] == "ok" and row["fit_s"] >= 0 for row in rows)
    assert rows[1]["minus_yardstick"]["error"][0] == 0.0
    assert rows[0]["versions"] == {"numpy": np.__version__}


def test_a_failure_or_exceeded_limit_is_reported_once_and_other_methods_run(problem, tmp_path):
    chosen = [
        method(tmp_path, "fails", "raise ValueError('no luck')"),
        method(tmp_path, "endless", "while True: pass"),
        method(tmp_path, "fine", "return 1"),
    ]
    rows = {(row["method"], row["repeat"]): row["status"] for row in results(problem, chosen)}
    assert rows == {
        ("fails", 0): "failed: ValueError: no luck",
        ("endless", 0): OVER_LIMIT,
        ("fine", 0): "ok",
        ("fine", 1): "ok",
    }


def test_a_standard_deviation_of_zero_is_a_failure(problem, tmp_path):
    broken = method(tmp_path, "broken", "return 1")
    broken.file.write_text(broken.file.read_text().replace("np.ones", "np.zeros"))
    [row] = results(problem, [broken])
    assert row["status"] == "failed: some predictions are not numbers"


def test_an_excluded_method_has_a_row_with_the_reason(problem, tmp_path):
    chosen = [method(tmp_path, "absent", "return 1")]
    [row] = results(problem, chosen, {"absent": "does not install: no such package"})
    assert row["status"] == "does not install: no such package"


def test_a_library_that_does_not_install_raises_an_error_with_the_reason(tmp_path):
    file = tmp_path / "peer.py"
    file.write_text("")
    with pytest.raises(NotInstalled, match="Invalid requirement"):
        python_for(Method("peer", file, {}, ("=broken=",)), lambda _: None, tmp_path / "bench")


def test_every_method_declares_its_requirements_without_being_imported():
    found = methods()
    assert found[0].name.startswith("emgpr")
    assert len({method.name for method in found}) == len(found) >= 10
    assert all(method.requirements for method in found)


def test_a_method_without_declarations_raises_an_error(tmp_path):
    file = tmp_path / "new.py"
    file.write_text("VARIANTS = {}")
    with pytest.raises(ValueError, match=r"new\.py does not declare REQUIREMENTS"):
        declarations(file)


def test_scores_ignore_outputs_that_are_not_requested(problem):
    own = losses(problem, np.zeros((5, 2)), np.ones((5, 2)))
    assert own["mse"][0] == pytest.approx(problem.truth[0, 0] ** 2)
    scores = summary(own, own)
    assert scores["mse"][0] == pytest.approx(own["mse"].mean())
    assert scores["minus_yardstick"] == {"error": [0.0, 0.0], "nlpd": [0.0, 0.0]}
