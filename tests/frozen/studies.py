"""What is asked without a model file: tables before a fit, comparisons of fits, chunks of data."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import emgpr
from emgpr.ensemble import PARTITIONS, split_sites

from .answers import Answers, Found, Number, at_least_one, numbered
from .cases import CASES, build
from .tables import related, table

MODELS = ("defaults", "paper-of-jura", "independent", "icm-with-gaps", "learner-fitc-with-gaps")
REPORTED = {"partition-strided": 70, "icm-of-neighbours": 90, "transfer-safe-of-batches": 100}


def plans() -> Found:
    """Steps and sizes; times and memory depend on the machine."""
    for name in MODELS:
        case = CASES[name]
        data = table(case.table)
        yield from _plan(name, build(case).plan(data.X, data.Y))
    X, Y = related(41, 1100)
    yield from _plan("many readings", emgpr.EMGPR().plan(X, Y))
    yield from _plan("many readings as published", emgpr.EMGPR.paper().plan(X, Y))
    X, Y = related(42, 2300)
    yield from _plan(
        "many readings of one output",
        emgpr.IndependentGP(None, output_transform=None).plan(X, Y[:, 0]),
    )


def _plan(name: str, plan: Any) -> Found:
    steps = (*plan.steps, plan.prediction)
    names = [step.name.replace("optimisation", "ascent") for step in plan.steps]  # as in 981b750
    yield f"{name}/steps", json.dumps(names)
    yield f"{name}/table", [plan.n_sites, plan.n_outputs, plan.n_readings]
    yield f"{name}/readings", [step.n_readings for step in steps]
    yield f"{name}/matrices", [step.n_matrices for step in steps]
    yield f"{name}/sides", [step.side for step in steps]
    yield f"{name}/approximations", [len(plan.approximations)]


def first_looks() -> Found:
    """Counts and ranges of a table, and how much of it is doubtful."""
    for name in ("jura", "gaps", "repeated", "constant", "swath", "few"):
        data = table(name)
        yield from _look(name, emgpr.EMGPR().first_look(data.X, data.Y))
    X, Y = related(43, 30)
    Y[[2, 9], 1] = -9999.0
    frame = pd.DataFrame(np.vstack([X, X[:2]]), columns=["lon", "lat"])
    yield from _look("doubtful", emgpr.EMGPR().first_look(frame, np.vstack([Y, Y[:2]])))


def _look(name: str, look: Any) -> Found:
    counts = ("n_rows", "n_used", "n_places", "n_shared", "n_copies")
    yield f"{name}/counts", [getattr(look, count) for count in counts]
    yield f"{name}/inputs", look.inputs.to_numpy()
    outputs = look.outputs.drop(columns="transform")
    yield f"{name}/outputs", outputs.to_numpy(dtype=float)
    yield f"{name}/columns", json.dumps([*look.inputs.columns, *look.outputs.columns])
    yield f"{name}/rows", json.dumps([*look.inputs.index, *look.outputs.index])
    yield f"{name}/doubts", [len(look.doubts if hasattr(look, "doubts") else look.warnings)]


def functions() -> Found:
    """Public functions that estimators are made of."""
    X, _ = related(44, 40)
    yield "spatial_blocks", emgpr.spatial_blocks(X, 5, random_state=0)
    degrees = 360 * X[:, 0] - 180, 180 * X[:, 1] - 90
    yield "on_sphere", emgpr.on_sphere(*degrees)
    for how in PARTITIONS:
        parts = split_sites(X, 9, how, np.random.default_rng(0), None)
        yield f"split_sites/{how}", np.concatenate(parts)
        yield f"split_sites/{how}/sizes", [len(part) for part in parts]


def approximation_reports() -> Found:
    """What approximations cost, beside an exact model that is learned for it."""
    for name, n in REPORTED.items():
        case = CASES[name]
        data = table(case.table)
        report = build(case).fit(data.X, data.Y).approximation_report(n, random_state=0)
        yield f"{name}/counts", [len(report.approximations), report.n_sites, report.n_known]
        yield f"{name}/rows", json.dumps([list(row) for row in report.table.index])
        numbers = report.table.drop(columns="verdict")
        yield f"{name}/columns", json.dumps(list(numbers.columns))
        yield f"{name}/table", at_least_one(numbers.to_numpy(dtype=float))
        yield f"{name}/verdicts", json.dumps(report.table["verdict"].tolist())
        yield f"{name}/losing", json.dumps(report.losing)
        yield f"{name}/not compared", json.dumps(list(report.not_compared))


def comparisons() -> Found:
    """Models that learn anew without what they predict."""
    for by in ("site", "block", "output"):
        data = table("gaps")
        models = {
            "EMGPR": emgpr.EMGPR.paper(batch_size=15, random_state=0),
            "no transfer": emgpr.IndependentGP(None, output_transform=None, random_state=0),
            "ICM": emgpr.ICM(None, output_transform=None, prior=None, random_state=0),
        }
        found = emgpr.compare(models, data.X, data.Y, by=by, n_folds=2, random_state=0)
        told = found.table()
        yield f"{by}/rows", json.dumps([list(row) for row in told.index])
        yield f"{by}/columns", json.dumps(list(told.columns))
        yield f"{by}/table", at_least_one(told.to_numpy(dtype=float))
        yield f"{by}/fold", found.fold.to_numpy()
        yield f"{by}/group", found.group.to_numpy()


def chunks() -> Found:
    """OnePassGP: a start, sums of chunks, chunk after chunk, learning now or later."""
    X, Y = related(45, 240)
    Y = Y[:, :2]
    new = X[:5] + 0.01
    settings = {"box": ([0, 0], [1, 1]), "n_start": 60, "random_state": 0}
    model = emgpr.OnePassGP(**settings).start(X[:80], Y[:80])
    sums = model.summed(X[:120], Y[:120]) + model.summed(X[120:], Y[120:])
    yield from _after("sums", model.absorb(sums, learn=False), new)
    yield from _after("sums, learned", model.learn(), new)
    model = emgpr.OnePassGP(**settings)
    for i in range(3):
        part = slice(80 * i, 80 * (i + 1))
        yield from _after(f"chunk {i}", model.partial_fit(X[part], Y[part], learn=i != 1), new)


def _after(name: str, model: Any, new: np.ndarray) -> Found:
    median, std = model.predict(new, return_std=True)
    yield f"{name}/median", Number(median, std)
    yield f"{name}/std", Number(std, std)
    yield f"{name}/counts", [model.n_sites_, model.n_readings_, model.n_functions_]
    yield f"{name}/log likelihood", at_least_one(model.log_marginal_likelihood_value_)


EXACT: dict[str, Callable[[], Found]] = {
    "plans": plans,
    "first-looks": first_looks,
    "functions": functions,
}
LEARNED: dict[str, Callable[[], Found]] = {
    "approximation-reports": approximation_reports,
    "comparisons": comparisons,
}
ONE_PASS: dict[str, Callable[[], Found]] = {"chunks": chunks}
STUDIES = EXACT | LEARNED | ONE_PASS


def study(name: str) -> Answers:
    return {f"{name}/{what}": numbered(answer) for what, answer in STUDIES[name]()}
