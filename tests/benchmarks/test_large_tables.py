"""Large problems: draws follow the known model, and tables are functions of stored rows."""

import json

import numpy as np
import pytest

from benchmarks import large
from benchmarks.known import KERNELS, _field, draw
from benchmarks.large_table import page
from emgpr.metrics import coverage

pytestmark = pytest.mark.slow


def row(experiment="growth", **changes):
    made = {
        "experiment": experiment, "N": 10_000, "D": 3, "M": 100, "fit_s": 10.0, "fit_cpu_s": 8.0,
        "predict_s": 3.0, "predict_cpu_s": 2.0, "peak_gib": 0.51, "ratio_reading": 1.002,
        "ratio_signal": 1.012, "coverage": [0.94, 0.951],
    }  # fmt: skip
    return made | changes


def test_draws_have_the_covariance_of_their_kernels(rng):
    """At lags up to a tenth of the region, over 40 draws.

    Four standard errors, so a false alarm is about one run in ten thousand.
    """
    kernel, side = KERNELS[0], 64
    fields = np.array([_field(kernel, side, rng) for _ in range(40)])
    for lag in (0, 1, 6):
        products = (fields[:, lag:] * fields[:, : side - lag]).mean(axis=(1, 2))
        expected = kernel(np.array([[0.0]]), np.array([[lag / side]]))[0, 0]
        error = products.std(ddof=1) / np.sqrt(len(products))
        assert abs(products.mean() - expected) < 4 * error


def test_intervals_with_the_true_parameters_are_calibrated():
    """95% intervals contain 95% of 400 × 3 correlated readings, within four percent."""
    known = draw(3000, 3, 400)
    assert 0.15 < np.isnan(known.Y).mean() < 0.25
    assert not set(map(tuple, known.X)) & set(map(tuple, known.X_new))
    assert abs(coverage(known.readings, *known.predict_with_truth()).mean() - 0.95) < 0.04


def test_growth_is_the_slope_between_the_smallest_and_the_largest_size():
    rows = [row(), row(N=1_000_000, fit_cpu_s=80.0, predict_cpu_s=20.0), row(N=100_000)]
    made = page(rows)
    assert "fit and prediction 0.50, fit 0.50" in made
    lines = [line for line in made.splitlines() if line.startswith("| 1")]
    assert [line.split("|")[1].strip() for line in lines] == [
        "10,000 × 3", "100,000 × 3", "1,000,000 × 3",
    ]  # fmt: skip
    assert "94.0%-95.1%" in lines[0]


def test_learners_are_compared_with_the_exact_one():
    given = {"data": "jura", "error": 0.4, "step_1_s": 2.0}
    rows = [
        row("learners", learner="exact", own=-100.0, likelihood=-100.0, **given),
        row("learners", learner="vfe", own=-104.5, likelihood=-101.0, **given | {"error": 0.41}),
    ]
    vfe = next(line for line in page(rows).splitlines() if line.startswith("| vfe"))
    assert [cell.strip() for cell in vfe.split("|")[2:-1]] == [
        "-4.5", "-1.0", "0.4100", "1.025", "1.0",
    ]  # fmt: skip


def test_members_and_partitions_have_their_cells():
    rows = [row("members", partition="random", n_members=n) for n in (1, 4)]
    rows += [row("partition", partition="random", seed=s, mse=0.02 + s) for s in (0, 1)]
    made = page(rows)
    assert "| random: RMSE (ratio) | 1.002 | 1.002 |" in " ".join(made.split())
    assert "1.0200" in made


def test_a_row_replaces_that_of_the_same_experiment(tmp_path):
    file = tmp_path / "rows.json"
    for made in (row(fit_s=1.0), row(N=5), row(fit_s=2.0)):
        large.store(made, file)
    stored = json.loads(file.read_text())
    assert [(own["N"], own["fit_s"]) for own in stored] == [(5, 10.0), (10_000, 2.0)]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_measurement_has_everything_that_the_table_shows(monkeypatch):
    """It is made in this process instead of a new one."""

    class Here:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def submit(self, function, *given):
            answer = function(*given)
            return type("Done", (), {"result": lambda self: answer})()

    monkeypatch.setattr(large, "ProcessPoolExecutor", Here)
    settings = {"kernel": KERNELS[0], "refine": 0, "max_iter": 5, "transfer": "full"}
    made = large.measure(draw(60, 2, 20), settings | {"output_transform": None, "batch_size": None})
    assert page([{"experiment": "wide", **made}])
    assert made["learner"] == "exact"
    assert 0.5 < made["ratio_reading"] < 2
