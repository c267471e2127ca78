"""The statistics that a frame or a map consists of, and new ones."""

import numpy as np
import pandas as pd
import pytest

from emgpr import IndependentGP
from emgpr.predictor import Predictor
from emgpr.statistics import Statistic, requested
from tests.simulated import smooth_table


def test_a_frame_has_the_centre_the_standard_deviation_and_what_is_requested():
    outputs = ["Cd", "Zn"]
    names = [type(one).__name__ for one in requested(outputs)]
    assert names == ["Centre", "StandardDeviation"]
    more = requested(outputs, statistic="mean", quantiles=[0.9], exceedance={"Zn": 1.0})
    names = [type(one).__name__ for one in more]
    assert names == ["Centre", "StandardDeviation", "Quantiles", "Exceedance"]
    assert [column for one in more for column in one.columns("Cd", 0)][:3] == [
        "Cd", "Cd_std", "Cd_q0.9",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="statistic='mode'"):
        requested(outputs, statistic="mode")
    with pytest.raises(ValueError, match=r"quantiles=\[\]; expected probabilities between 0 and 1"):
        requested(outputs, quantiles=[])


class Width(Statistic):
    """Length of the central 90% interval."""

    suffix = "_width"

    def __call__(self, scaler, distribution):
        low, high = scaler.quantiles(distribution, np.array([0.05, 0.95]))
        return (high - low)[None]

    def describe(self, name, d, units):
        return f"width of {name}"


def test_a_new_statistic_needs_only_its_value_and_its_name(rng):
    X, Y = smooth_table(rng, N=15)
    model = IndependentGP(random_state=0, max_iter=200).fit(X, pd.DataFrame(Y, columns=list("abc")))
    predictor = Predictor(
        model.input_spec_, model.output_scaler_, model.posterior_, model._execution()
    )
    assert predictor.frame_columns([Width()]) == ["a_width", "b_width", "c_width"]
    low, high = model.predict_quantiles(X, [0.05, 0.95])
    np.testing.assert_allclose(predictor.frame_values(X, [Width()]), high - low)
