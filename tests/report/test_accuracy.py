"""Errors on the page are those of cross-validation and of the transfer reports."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from emgpr import IndependentGP
from emgpr.cross_validation import TransferReport
from emgpr.report.accuracy import SCENARIOS, Accuracy
from emgpr.report.columns import calibration

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", ["metals", "joint", "cadmium", "soil"])
def test_errors_are_those_of_cross_validation(name, request, page_of):
    model = request.getfixturevalue(name)
    tables = page_of(model).tables
    is_joint = model.n_outputs_ > 1 and not isinstance(model, IndependentGP)
    for by in ("site", "output"):
        caption = f"Errors: {SCENARIOS[by]}"
        assert (caption in tables) == (by == "site" or is_joint)
        if caption not in tables:
            continue
        summary = model.cross_validate(by).summary()
        summary["explained"] = 1 - summary["smse"]
        heads = {
            "readings": "n", "MAE": "mae", "RMSE": "rmse", "variance explained": "explained",
            "CRPS": "crps", "NLPD": "nlpd", "95% coverage": "coverage",
        }  # fmt: skip
        for head, column in heads.items():
            assert list(tables[caption].column(head)) == model.output_names_
            assert_allclose(tables[caption].numbers(head), summary[column], rtol=1e-12)


def test_the_comparison_with_independent_models_is_the_transfer_report(metals, page_of):
    page = page_of(metals)
    for by in ("site", "output"):
        report = metals.transfer_report(by)
        table = page.tables[f"Joint and independent models: {SCENARIOS[by]}"]
        assert_allclose(table.numbers("MAE independent"), report.table["mae_alone"], rtol=1e-12)
        assert_allclose(table.numbers("MAE joint"), report.table["mae"], rtol=1e-12)
        differences = table.numbers("difference ± s.e.")
        assert_allclose(differences, report.table["difference"], rtol=1e-12)
        verdicts = [cell.text for cell in table.column("verdict").values()]
        assert verdicts == report.table["verdict"].tolist()
        assert report.sentence in page.text


def test_without_transfer_there_is_nothing_to_compare(cadmium, soil, page_of):
    assert "There is only one output, so there is nothing to compare" in page_of(cadmium).text
    assert "fits every output independently, so there is nothing" in page_of(soil).text
    for model in (cadmium, soil):
        assert not [c for c in page_of(model).tables if c.startswith("Joint and independent")]


def transfer(**gains):
    """A transfer report with these gains in per cent; those below zero are losses."""
    x = list(gains.values())
    verdicts = np.select([np.greater(x, 0), np.less(x, 0)], ["gains", "loses"], "no difference")
    table = pd.DataFrame({"gain_percent": x, "verdict": verdicts}, index=list(gains))
    return TransferReport("site", table)


@pytest.mark.parametrize(
    ("report", "says"),
    [
        (transfer(Cd=12, Ni=3), "reduces the error for Cd by 12% and Ni by 3%."),
        (transfer(Cd=12, Ni=-3), "reduces the error for Cd by 12% and increases that for Ni."),
        (transfer(Cd=0, Ni=-3), "increases the error for Ni."),
        (transfer(Cd=0), "makes no significant difference."),
        (transfer(a=1, b=2, c=3, d=4, e=5, f=0), "for 5 of the 6 outputs by 1% to 5%."),
    ],
)
def test_the_effect_of_transfer_is_told_in_a_sentence(report, says):
    sentence = Accuracy({}, {"site": report}).transfer_sentence()
    assert sentence.startswith("At new locations, modelling the outputs jointly ")
    assert sentence.endswith(says)


def test_the_sentence_about_many_outputs_gives_the_range(channels, page_of):
    explained = 1 - channels.cross_validate().summary()["smse"]
    low, high = (f"({name})" for name in (explained.idxmin(), explained.idxmax()))
    text = page_of(channels).text
    assert "the model explains between" in text
    assert text.index(low) < text.index(high)


@pytest.mark.parametrize(
    ("coverage", "n", "verdict"),
    [(0.93, 100, "calibrated"), (0.85, 100, "too narrow"), (1.0, 100, "too wide"),
     (1.0, 10, "calibrated"), (np.nan, 0, "calibrated")],
)  # fmt: skip
def test_intervals_are_judged_by_two_standard_errors_of_their_coverage(coverage, n, verdict):
    assert calibration(coverage, n).text == verdict
