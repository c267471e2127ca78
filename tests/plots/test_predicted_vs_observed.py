"""Predictions against readings: what is drawn is what cross-validation found."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.plots import measured_against_predicted
from emgpr.plots.labels import VERMILLION


def test_every_reading_is_drawn_at_its_prediction(checked):
    ax = measured_against_predicted(checked, units={"Cd": "mg/kg"})[0]
    inside, outside, diagonal = ax.get_lines()
    drawn = np.concatenate([line.get_xydata() for line in (inside, outside)])
    observed = checked.truth["Cd"].notna()
    expected = np.column_stack([checked.truth["Cd"][observed], checked.prediction["Cd"][observed]])
    assert_allclose(np.sort(drawn, axis=0), np.sort(expected, axis=0))
    assert_allclose(diagonal.get_xdata(), diagonal.get_ydata())
    assert ax.get_xlabel() == "measured Cd (mg/kg)"


def test_intervals_that_do_not_contain_the_reading_have_another_colour(checked):
    summary = checked.summary()
    for name, ax in zip(checked.truth, measured_against_predicted(checked), strict=True):
        inside, outside, _ = ax.get_lines()
        n = len(inside.get_xdata()) + len(outside.get_xdata())
        assert len(inside.get_xdata()) / n == pytest.approx(summary.loc[name, "coverage"])
        assert outside.get_color() == VERMILLION
        bars = np.concatenate([lines.get_segments() for lines in ax.collections])
        assert_allclose(np.sort(bars[:, 0, 1]), np.sort(checked.lower[name].dropna()))
        assert_allclose(np.sort(bars[:, 1, 1]), np.sort(checked.upper[name].dropna()))
        assert f"of {n} covered" in ax.get_title()


def test_axes_are_logarithmic_where_intervals_are_symmetric_on_logarithms(checked, cadmium, core):
    assert [ax.get_xscale() for ax in measured_against_predicted(checked)] == ["log"] * 3
    assert measured_against_predicted(cadmium)[0].get_xscale() == "linear"
    assert [ax.get_yscale() for ax in measured_against_predicted(core)] == ["linear", "log"]
    assert measured_against_predicted(checked, log=False)[0].get_xscale() == "linear"
    assert measured_against_predicted(cadmium, log=True)[0].get_yscale() == "log"


def test_given_axes_are_used(checked):
    _, axes = plt.subplots(1, 3)
    assert (measured_against_predicted(checked, axes=axes) == axes).all()
    assert len(plt.get_fignums()) == 1
