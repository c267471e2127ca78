"""A plan sums its steps, and is printed with its total and its approximations."""

import re

import pytest

from emgpr.planning import Plan, Step

STEPS = (
    Step("table", "checked", 90, 0, 0, 1, 0.5, 1e6),
    Step("step 1", "exact", 30, 3, 30, 14, 2.0, 5e6),
    Step("step 2", "dense", 90, 1, 90, 20, 60.0, 3e6, "fitted to 45 of 90 sites"),
)
PREDICTION = Step("1000 locations", "from all 90 readings", 90, 1, 90, 1, 1.0, 9e9)


def plan(steps=STEPS, device="cpu", n_processes=1):
    return Plan(30, 3, 90, device, n_processes, steps, PREDICTION)


def test_the_total_is_the_time_of_all_steps_and_the_peak_of_their_memory():
    assert plan().seconds == 62.5
    assert plan().bytes == 1e6 + 5e6
    assert plan().unknown == []


def test_a_plan_is_printed_as_a_table_with_its_total():
    lines = str(plan()).splitlines()
    assert lines[0].split() == ["step", "readings", "matrices", "time", "memory", "method"]
    assert re.fullmatch(r"step 1 +30 +3 of 30 × 30 +2 s +5 MB +exact", lines[2])
    assert lines[5] == "The fit: about 62 s and 6 MB of memory, within a factor of 2."
    assert lines[6:] == ["Approximated:", "  step 2: fitted to 45 of 90 sites"]


def test_where_the_fit_runs_is_printed():
    assert "The fit on cuda: about" in str(plan(device="cuda"))
    assert "The fit with 4 processes: about" in str(plan(n_processes=4))


def test_an_unknown_time_is_not_part_of_the_total():
    unknown = Step("step 1", "user-defined", 30, 3, 30, 14, None, 5e6)
    some = plan((STEPS[0], unknown))
    assert some.seconds == 0.5
    assert some.unknown == ["step 1"]
    assert "  unknown  " in str(some)
    assert some.summary().endswith("not counting step 1, whose time is unknown")


def test_an_exact_plan_says_so():
    exact = plan(STEPS[:2])
    assert exact.approximations == []
    assert str(exact).endswith("\nNothing is approximated.")


@pytest.mark.parametrize("steps", [STEPS, STEPS[:1]])
def test_a_plan_of_any_number_of_steps_has_a_peak(steps):
    assert plan(steps).bytes >= 1e6
