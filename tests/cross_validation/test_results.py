"""Results of cross-validation as frames and as text."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.metrics import mean_absolute_error, mean_squared_error

from emgpr.cross_validation import CrossValidation, TransferReport


@pytest.fixture
def result(rng):
    """Gaussian predictions of two outputs, one of them with a missing reading."""
    truth, mean = rng.normal(size=(2, 9, 2))
    truth[4, 1] = np.nan
    half = norm.ppf(0.975)
    values = {
        "truth": truth,
        "prediction": mean,
        "std": np.ones((9, 2)),
        "lower": mean - half,
        "upper": mean + half,
        "standardized": truth - mean,
        "nlpd": -norm.logpdf(truth, mean),
        "crps": np.abs(truth - mean),
        "pit": norm.cdf(truth - mean),
    }
    where = np.where(np.isnan(truth), np.nan, 1.0)
    index = [f"well {i}" for i in range(9)]
    return CrossValidation(
        "site",
        **{
            name: pd.DataFrame(where * value, index=index, columns=["Cd", "Zn"])
            for name, value in values.items()
        },
    )


def test_the_summary_has_a_row_for_each_output(result):
    summary = result.summary()
    assert summary.columns.tolist() == ["n", "mae", "rmse", "smse", "nlpd", "crps", "coverage"]
    assert summary["n"].tolist() == [9, 8]
    for name, row in summary.iterrows():
        read = result.truth[name].notna()
        truth, mean = result.truth.loc[read, name], result.prediction.loc[read, name]
        assert_allclose(row["mae"], mean_absolute_error(truth, mean))
        assert_allclose(row["rmse"], np.sqrt(mean_squared_error(truth, mean)))
        assert_allclose(row["smse"], mean_squared_error(truth, mean) / truth.var(ddof=0))
        assert_allclose(row["nlpd"], result.nlpd[name].mean())
        inside = np.abs(truth - mean) <= norm.ppf(0.975)
        assert_allclose(row["coverage"], inside.mean())


def test_the_standardised_error_of_a_constant_output_is_missing(result):
    constant = CrossValidation(**vars(result) | {"truth": result.truth.assign(Cd=1.0)})
    assert np.isnan(constant.summary().loc["Cd", "smse"])


def test_rows_hold_every_reading_once(result):
    rows = result.rows()
    assert len(rows) == 17
    row = rows[(rows["row"] == "well 5") & (rows["output"] == "Zn")].iloc[0]
    for name in ("truth", "prediction", "std", "lower", "upper", "nlpd", "pit"):
        assert row[name] == getattr(result, name).loc["well 5", "Zn"]


def test_results_are_shown_with_their_number_of_readings(result):
    assert repr(result).startswith("Cross-validation by site: 17 readings of 2 outputs\n")
    assert "<table" in result._repr_html_()
    pd.testing.assert_frame_equal(result.residual, result.truth - result.prediction)


@pytest.mark.parametrize(
    ("verdicts", "sentence", "losing"),
    [
        (
            ["gains", "gains", "no difference"],
            "Transfer helps Cd, Ni; there is no significant difference for Zn.",
            [],
        ),
        (["loses", "loses", "loses"], "Transfer harms Cd, Ni, Zn.", ["Cd", "Ni", "Zn"]),
    ],
)
def test_a_transfer_report_says_what_transfer_helps_and_harms(verdicts, sentence, losing):
    table = pd.DataFrame({"mae": 1.0, "verdict": verdicts}, index=["Cd", "Ni", "Zn"])
    report = TransferReport("output", table)
    assert report.sentence == sentence
    assert report.losing == losing
    assert repr(report).startswith("Transfer, cross-validated by output\n")
    assert repr(report).endswith(sentence)
    assert "<table" in report._repr_html_()
    assert sentence in report._repr_html_()
