"""Tables are functions of stored rows."""

import pytest

from benchmarks.plot import draw
from benchmarks.run import REFERENCE
from benchmarks.table import entries, growth_text, newest, page, text

pytestmark = pytest.mark.slow


def row(method, repeat=0, *, fit_s=1.0, problem="jura", status="ok", **changes):
    made = {
        "problem": problem,
        "error_is": "MAE (mg/kg)",
        "method": method,
        "repeat": repeat,
        "status": status,
    }
    if status == "ok":
        made |= {
            "fit_s": fit_s,
            "predict_s": 0.1,
            "fit_mib": 10.0,
            "error": [0.4, 0.03],
            "mse": [0.3, 0.03],
            "nlpd": [0.9, 0.1],
            "coverage": [0.95, 0.02],
            "minus_yardstick": {"error": [-0.1, 0.02], "nlpd": [-0.2, 0.1]},
        }
    return made | changes


def run(rows, date="2026-01-01T0000Z", **more):
    machine = {"cpu": "a CPU", "cores": 4, "system": "Linux", "python": "3.11", "numpy": "2"}
    return {"date": date, "machine": machine, "limit_s": 60.0, "rows": rows} | more


ROWS = [
    *(row(REFERENCE, i, fit_s=seconds) for i, seconds in enumerate([2.0, 9.0, 2.5])),
    *(row("ours", i, fit_s=seconds) for i, seconds in enumerate([1.0, 1.1, 30.0])),
    row("slow", status="over the limit"),
    row("broken", status="failed: ValueError: no luck"),
    row("absent", status="does not install: no such package"),
]


def test_ratios_are_those_of_medians():
    made = {entry["method"]: entry for entry in entries(ROWS)}
    assert made[REFERENCE]["fit_s"] == 2.5
    assert made["ours"]["ratio_fit_s"] == pytest.approx(1.1 / 2.5)
    assert made["ours"]["fits"] == 3


def test_without_the_reference_there_are_no_ratios():
    made = {entry["method"]: entry for entry in entries([row("ours"), row("slow", status="x")])}
    assert made["ours"]["ratio_fit_s"] is None
    assert "–" in text(list(made.values()))


def test_a_method_without_results_is_in_the_table_with_the_reason():
    table = text(entries(ROWS))
    assert "over the limit" in next(line for line in table.splitlines() if "| slow" in line)
    assert "broken: failed: ValueError: no luck" in table
    assert "absent: does not install: no such package" in table


def test_a_method_fails_if_one_of_its_repeats_fails():
    [entry] = entries([row("ours"), row("ours", 1, status="failed: x")])
    assert entry["status"] == "failed: x"


def test_growth_is_relative_to_the_reference():
    sizes = {
        "simulated-200x3": entries([row(REFERENCE, fit_s=2.0), row("ours", fit_s=1.0)]),
        "simulated-500x3": entries(
            [row(REFERENCE, fit_s=8.0), row("ours", status="over the limit")]
        ),
    }
    lines = growth_text(sizes).splitlines()
    assert [cell.strip() for cell in lines[0].split("|")[1:-1]] == ["N × D", "200x3", "500x3"]
    assert [cell.strip() for cell in lines[3].split("|")[1:-1]] == [
        "ours",
        "0.50",
        "over the limit",
    ]


def test_a_problem_is_shown_from_the_newest_run_that_contains_it():
    old = run([row(REFERENCE, fit_s=1.0), row(REFERENCE, fit_s=1.0, problem="amsua")])
    new = run([row(REFERENCE, fit_s=5.0)], date="2026-02-01T0000Z")
    found = newest([new, old])
    assert found["jura"][0] is new
    assert found["amsua"][0] is old


def test_the_page_names_the_machine_and_inner_measurements_by_their_present_names():
    inner = {"imports": {"heavy_modules": "none"}, "span against dense": {"span_s": 1.25}}
    text = page([run(ROWS, inner=inner)])
    assert "a CPU" in text
    assert "- imports: heavy modules: none" in text
    assert "| low-rank against dense likelihood: low-rank s |  1.25 |" in text


def test_the_figure_is_drawn_without_methods_that_failed(tmp_path):
    sizes = {"jura": entries(ROWS), "simulated-200x3": entries(ROWS)}
    assert draw(sizes, tmp_path).stat().st_size > 0
