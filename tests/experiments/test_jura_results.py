"""The Jura table and figures are functions of stored rows: exact strings from invented rows."""

import matplotlib.image
import pytest

from emgpr.experiments.jura import BATCH_SIZES, ENSEMBLE, METALS, REFERENCES
from emgpr.experiments.jura_results import (
    SHORT,
    batch_sizes,
    batch_sizes_text,
    draw,
    table_1,
    table_1_text,
)

pytestmark = pytest.mark.slow

SLOW = "Step 2: it took too long."


def a_row(method, restart, mae, seconds, shift=0.0, notes=()):
    return {
        "experiment": "cadmium",
        "method": method,
        "restart": restart,
        "mae": mae,
        "errors": [mae + shift, mae, mae, mae - shift],
        "seconds": seconds,
        "notes": list(notes),
    }


ROWS = [
    a_row("GP", 0, 0.57, 1.0),
    a_row("GP", 1, 0.58, 3.0),
    a_row("GP", 2, 0.59, 2.0),
    a_row(ENSEMBLE, 0, 0.400, 5.0, shift=0.1),
    a_row(ENSEMBLE, 1, 0.402, 4.0, shift=0.1, notes=[SLOW]),
    a_row(ENSEMBLE, 2, 0.404, 6.0, shift=0.1),
    a_row("Median of Cd", 0, 0.56, 0.001),
]


def test_the_short_table_has_only_what_was_run_and_its_warnings():
    run = [entry for entry in table_1(ROWS) if entry["restarts"]]
    assert table_1_text(run, SHORT).splitlines() == [
        "| Approach         |    MAE |  paper | minus no transfer |",
        "|:-----------------|-------:|-------:|------------------:|",
        "| Median of Cd     | 0.5600 |      – |    -0.020 ± 0.000 |",
        "| EMGPR (Ensemble) | 0.4020 | 0.4025 |    -0.178 ± 0.041 |",
        "| GP               | 0.5800 | 0.5739 |                 – |",
        "",
        "EMGPR (Ensemble), 1 of 3 restarts: Step 2: it took too long.",
    ]


def test_the_full_table_includes_approaches_that_were_only_published():
    lines = table_1_text(table_1(ROWS)).splitlines()
    width = len(lines[0])
    assert lines[3] == (
        "| EMGPR (Ensemble)  | 0.4020 | 2.0e-03 | 0.4025 |  3.7e-07 |    -0.178 ± 0.041 "
        "|                 – | 2.50 |       2.16 |"
    )
    assert (
        "| Co-kriging*       |      – |       – |   0.51 |        – |                 – "
        "|                 – |    – |          – |"
    ) in lines
    names = [line.split("|")[1].strip() for line in lines[2:-2]]
    assert names == [
        "Median of Cd", "EMGPR (Ensemble)", "EMGPR", "EMGPR* (Ensemble)", "EMGPR*", "GP", "ICM*",
        "SLFM* (ML)", "CMOGP*", "Co-kriging*", "GPRN (VB)", "GPRN* (VB)", "SLFM (VB)", "SLFM* (VB)",
    ]  # fmt: skip
    assert {len(line) for line in lines[:-2]} == {width}


def test_one_restart_has_no_standard_deviation_and_a_baseline_no_time():
    entries = {entry["approach"]: entry for entry in table_1(ROWS)}
    assert entries["Median of Cd"]["sd"] is None
    assert entries["Median of Cd"]["time"] is None
    assert entries["GP"]["sd"] == pytest.approx(0.01)
    assert entries["GP"]["time"] == 1.0
    assert entries["GP"]["minus_no_transfer"] is None
    assert entries["ICM*"]["mae"] is None
    assert entries["ICM*"]["printed"]["where"] == "Table 1, right half, row 2"


def test_approaches_are_compared_with_those_on_the_same_data():
    raw = [
        a_row("GP*", 0, 0.60, 1.0),
        a_row("EMGPR* (Ensemble)", 0, 0.45, 1.0),
        a_row("ICM*", 0, 0.46, 1.0, shift=0.1),
        a_row("ICM", 0, 0.41, 1.0),
    ]
    entries = {entry["approach"]: entry for entry in table_1(ROWS + raw)}
    assert entries["ICM*"]["minus_no_transfer"]["mean"] == pytest.approx(0.46 - 0.60)
    assert entries["ICM*"]["ensemble_minus_it"]["mean"] == pytest.approx(0.45 - 0.46)
    assert entries["ICM"]["minus_no_transfer"]["mean"] == pytest.approx(0.41 - 0.58)
    assert entries["ICM"]["ensemble_minus_it"]["mean"] == pytest.approx(0.402 - 0.41)
    assert entries["ICM*"]["printed"]["mae"] == 0.4608  # printed without an asterisk
    assert entries["ICM"]["printed"] is None
    assert entries["GP*"]["minus_no_transfer"] is None
    assert entries["EMGPR* (Ensemble)"]["ensemble_minus_it"] is None


def test_without_the_no_transfer_model_nothing_is_relative_to_it():
    entries = {entry["approach"]: entry for entry in table_1(ROWS[3:])}
    assert entries[ENSEMBLE]["mae"] == pytest.approx(0.402)
    assert entries[ENSEMBLE]["minus_no_transfer"] is None
    assert entries[ENSEMBLE]["time"] is None


def batch_size_rows(restarts, sizes=BATCH_SIZES):
    def row(method, restart, settings, level):
        errors = {metal: level * 10**power for power, metal in enumerate(METALS)}
        return {
            "experiment": "batch size",
            "method": method,
            "settings": settings,
            "restart": restart,
            "mae": {metal: error * (1 + 2e-3 * restart) for metal, error in errors.items()},
            "mae_standardised_log": dict.fromkeys(METALS, level / 2),
        }

    return [
        row(method, restart, settings, level)
        for restart in range(restarts)
        for method, settings, level in [
            *((method, {}, 1.1 + k / 10) for k, method in enumerate(REFERENCES)),
            *((ENSEMBLE, {"batch_size": size}, 1 + size / 1000) for size in sizes),
        ]
    ]


def test_errors_are_listed_by_batch_size():
    text = batch_sizes_text(batch_sizes(batch_size_rows(2, sizes=[40, 9])))
    assert text.splitlines() == [
        "| Approach         | N0 | overall |     Cd |      Ni |       Zn | SD (overall) "
        "| standardised logs |",
        "|:-----------------|---:|--------:|-------:|--------:|---------:|-------------:"
        "|------------------:|",
        "| GP               |  – | 40.7407 | 1.1011 | 11.0110 | 110.1100 |      5.8e-02 "
        "|            0.5500 |",
        "| EMGPR            |  – | 44.4444 | 1.2012 | 12.0120 | 120.1200 |      6.3e-02 "
        "|            0.6000 |",
        "| ICM              |  – | 48.1481 | 1.3013 | 13.0130 | 130.1300 |      6.8e-02 "
        "|            0.6500 |",
        "| EMGPR (Ensemble) |  9 | 37.3703 | 1.0100 | 10.1001 | 101.0009 |      5.3e-02 "
        "|            0.5045 |",
        "| EMGPR (Ensemble) | 40 | 38.5185 | 1.0410 | 10.4104 | 104.1040 |      5.4e-02 "
        "|            0.5200 |",
    ]


def test_both_figures_are_drawn(tmp_path):
    written = draw(batch_sizes(batch_size_rows(2)), tmp_path)
    assert [path.name for path in written] == ["batch-size-mae.png", "batch-size-sd.png"]
    for path in written:
        assert matplotlib.image.imread(path).shape == (975, 1350, 4)


def test_one_restart_has_no_figure_of_standard_deviations(tmp_path):
    written = draw(batch_sizes(batch_size_rows(1)), tmp_path)
    assert [path.name for path in written] == ["batch-size-mae.png"]
