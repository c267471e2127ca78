"""The training data on the page."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.preprocessing import PowerTransformer

from emgpr.report.data import data_sentence, output_table


def test_outputs_are_summarised(model, page_of):
    _, Y = model.training_data()
    table = page_of(model).tables["Outputs"]
    assert_allclose(table.numbers("readings"), Y.count())
    assert_allclose(table.numbers("missing"), Y.isna().sum())
    for head, value in {"lowest": Y.min(), "median": Y.median(), "highest": Y.max()}.items():
        assert_allclose(table.numbers(head), value, rtol=1e-12)


def test_inputs_are_summarised(globe, page_of):
    table = page_of(globe).tables["Inputs"]
    assert 176 < table.numbers("lowest")[1] < 180 < table.numbers("highest")[1] < 184
    assert table.numbers("distinct values").tolist() == [40, 40]


def test_columns_without_content_are_left_out():
    Y = pd.DataFrame({"a": [1.0, 2.0]})
    assert "unit" not in output_table(Y, [None], {}).heads
    table = output_table(Y, [PowerTransformer()], {"a": "m"})
    assert "unit" in table.heads
    assert table.rows[0][-1].text == "PowerTransformer()"


@pytest.mark.parametrize(
    ("n_outputs", "gaps", "says"),
    [
        (2, [], "a and b were measured at 4 sites (x 0 to 3 m). No readings are missing."),
        (2, [1], "Missing readings: 50% of b."),
        (6, [0, 1, 2, 3, 4], "6 outputs (a to f) were measured"),
        (6, [0, 1, 2, 3, 4], "42% of the readings are missing, affecting 5 of the 6 outputs."),
        (6, range(6), "50% of the readings are missing, affecting all outputs."),
    ],
)
def test_the_sentence_says_what_was_measured_where_and_what_is_missing(n_outputs, gaps, says):
    X = pd.DataFrame({"x": np.arange(4.0)})
    Y = pd.DataFrame(np.ones((4, n_outputs)), columns=list("abcdef"[:n_outputs]))
    Y.iloc[:2, list(gaps)] = np.nan
    assert says in data_sentence(X, Y, {"x": "m"})
