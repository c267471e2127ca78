"""The report on approximations as a frame and as text."""

import numpy as np
import pandas as pd
import pytest

from emgpr.comparison import ApproximationReport
from emgpr.cross_validation import CrossValidation

FRAMES = ("prediction", "std", "lower", "upper", "standardized", "nlpd", "crps", "pit")


def predictions(error, nlpd, n=40):
    """Predictions of readings of zero with these errors and log densities, by output."""
    noise = np.random.default_rng(0).uniform(0.9, 1.1, size=n)
    frames = {
        name: pd.DataFrame({output: np.ones(n) for output in error}) for name in ("truth", *FRAMES)
    }
    frames["truth"] *= 0.0
    frames["prediction"] = pd.DataFrame({k: value * noise for k, value in error.items()})
    frames["nlpd"] = pd.DataFrame({k: value * noise for k, value in nlpd.items()})
    return CrossValidation("site", **frames)


@pytest.fixture
def report():
    """Cd loses by conditioning, Ni gains, Zn is as good as exact; Pb has few readings."""
    same = {"Cd": 1.0, "Ni": 1.0, "Zn": 1.0}
    found = {
        "fitted": predictions({"Cd": 2.0, "Ni": 0.5, "Zn": 1.0}, same),
        "from all": predictions({"Cd": 1.0, "Ni": 0.5, "Zn": 1.0}, same),
        "exact": predictions(same, same),
    }
    return ApproximationReport.build(
        ["step 1: PoE <60>"], 260, 130, ["Pb"], found, ["step 1 did not converge"]
    )


def test_the_sentence_names_what_loses_and_by_what(report):
    assert report.losing == ["Cd"]
    assert report.sentence == (
        "Cd loses by conditioning; better than the exact model, fitted to fewer readings, for "
        "Ni; no significant loss for Zn; too few readings for a comparison of Pb."
    )


def test_the_difference_is_the_sum_of_its_parts(report):
    row = report.table.loc[("Cd", "mae")]
    assert row["difference"] == pytest.approx(row["conditioning"] + row["learning"])
    assert row["verdict"] == "loses"
    assert row["apart"] == pytest.approx(1.0, rel=0.01)
    assert report.table.loc[("Ni", "mae"), "verdict"] == "gains"
    assert report.difference("Cd").mean == pytest.approx(row["difference"])
    assert report.difference("Cd", "nlpd", "learning").mean == 0.0


def test_the_report_is_shown_with_approximations_notes_and_the_sentence(report):
    text = str(report)
    assert text.startswith("Approximated:\n  step 1: PoE <60>\n")
    assert "120 left-out readings predicted from 130 others, in a sample from 260 sites" in text
    assert "The exact model: step 1 did not converge" in text
    assert text.endswith(report.sentence)
    html = report._repr_html_()
    assert "PoE &lt;60&gt;" in html
    assert "<table" in html
    assert len(report.rows()) == 3 * 120


def test_the_report_on_an_exact_model_says_so():
    report = ApproximationReport.build((), 10, 30, (), {})
    assert report.table.empty
    assert report.rows().empty
    assert report.losing == []
    assert str(report) == report.sentence
    assert str(report).startswith("Nothing is approximated")
    assert "Nothing is approximated" in report._repr_html_()
