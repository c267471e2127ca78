"""The ATMS tables are functions of stored rows: exact strings from invented rows."""

import pytest

from emgpr.experiments.atms_results import caption, summary, text

pytestmark = pytest.mark.slow


def a_row(method, experiment, fold, errors, seconds=2.0):
    mse = dict(zip(("ch01", "ch02"), errors, strict=True))
    mae = {channel: 10 * error for channel, error in mse.items()}
    return {
        "method": method, "experiment": experiment, "fold": fold, "mse": mse, "mae": mae,
        "seconds": seconds, "notes": ["It was slow."] if seconds > 8 else [],
    }  # fmt: skip


ROWS = [
    a_row("GP", 0, 0, (0.010, 0.030)),
    a_row("GP", 0, 1, (0.030, 0.050)),
    a_row("GP", 1, 0, (0.024, 0.044)),
    a_row("GP", 1, 1, (0.024, 0.044)),
    a_row("EMGPR", 0, 0, (0.010, 0.020), seconds=7.0),
    a_row("EMGPR", 0, 1, (0.020, 0.030), seconds=9.0),
    a_row("EMGPR", 1, 0, (0.015, 0.027), seconds=8.0),
]


def test_the_table_shows_our_errors_and_the_published_ones():
    assert text(summary(ROWS, "mse")).splitlines() == [
        "| Output     |        |                GP |              EMGPR |",
        "|:-----------|-------:|------------------:|-------------------:|",
        "| ch01       |   ours | 0.02200 (2.8e-03) |  0.01500 (0.0e+00) |",
        "|            |  paper | 0.01378 (2.9e-03) |  0.01165 (1.9e-03) |",
        "| ch02       |   ours | 0.04200 (2.8e-03) |  0.02600 (1.4e-03) |",
        "|            |  paper | 0.02943 (4.1e-03) |  0.03079 (2.9e-03) |",
        "| overall    |   ours | 0.03200 (2.8e-03) |  0.02050 (7.1e-04) |",
        "|            |  paper | 0.07654 (4.4e-03) |  0.06282 (2.7e-03) |",
        "| gain on GP |   ours |                 – |              35.9% |",
        "|            |  paper |                 – |              17.9% |",
        "| minus GP   | ± s.e. |                 – | -0.01150 ± 0.00150 |",
        "| training   |      s |               2.0 |                8.0 |",
        "",
        "EMGPR, 1 of 3 folds: It was slow.",
    ]


def test_an_experiment_is_the_mean_of_the_folds_that_were_run():
    gp, ours = summary(ROWS, "mae")
    assert gp["error"] == pytest.approx({"ch01": 0.22, "ch02": 0.42, "overall": 0.32})
    assert ours["experiments"] == 2
    assert ours["folds"] == 3
    assert ours["printed"]["where"] == "Supplement, Table 1, column 5"
    assert "Number of folds: GP 4, EMGPR 3." in caption("mae", [gp, ours])


def test_one_experiment_has_no_standard_deviation_and_no_difference():
    table = text(summary([row for row in ROWS if row["experiment"] == 0], "mse"))
    assert "| ch01       |   ours |           0.02000 |           0.01500 |" in table
    assert "| minus GP   | ± s.e. |                 – |                 – |" in table


def test_a_method_that_is_not_in_the_paper_has_no_published_errors():
    rows = [row | {"method": "Mine"} for row in ROWS[:4]]
    (mine,) = summary(rows, "mse")
    assert mine["printed"] is None
    assert mine["gain"] is None
    assert "| overall    |   ours | 0.03200 (2.8e-03) |" in text([mine])
