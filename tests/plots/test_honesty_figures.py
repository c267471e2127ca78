"""Predictions against measurements, coverage and PIT: what is drawn is what was found."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.metrics import central_coverage
from emgpr.plots import coverage, measured_against_predicted, pit
from emgpr.plots.honesty import LEVELS
from emgpr.plots.labels import VERMILLION


def test_every_reading_stands_at_what_was_predicted_of_it(checked):
    ax = measured_against_predicted(checked, units={"Cd": "mg/kg"})[0]
    inside, outside, diagonal = ax.get_lines()
    drawn = np.concatenate([line.get_xydata() for line in (inside, outside)])
    made = checked.truth["Cd"].notna()
    expected = np.column_stack([checked.truth["Cd"][made], checked.prediction["Cd"][made]])
    assert_allclose(np.sort(drawn, axis=0), np.sort(expected, axis=0))
    assert_allclose(diagonal.get_xdata(), diagonal.get_ydata())
    assert ax.get_xlabel() == "measured Cd (mg/kg)"


def test_intervals_that_miss_have_another_colour(checked):
    summary = checked.summary()
    for name, ax in zip(checked.truth, measured_against_predicted(checked), strict=True):
        inside, outside, _ = ax.get_lines()
        n = len(inside.get_xdata()) + len(outside.get_xdata())
        assert len(inside.get_xdata()) / n == pytest.approx(summary.loc[name, "coverage"])
        assert outside.get_color() == VERMILLION
        bars = np.concatenate([lines.get_segments() for lines in ax.collections])
        assert_allclose(np.sort(bars[:, 0, 1]), np.sort(checked.lower[name].dropna()))
        assert_allclose(np.sort(bars[:, 1, 1]), np.sort(checked.upper[name].dropna()))
        assert f"of {n} inside" in ax.get_title()


def test_axes_are_logarithmic_where_the_model_is(checked, cadmium, core):
    assert [ax.get_xscale() for ax in measured_against_predicted(checked)] == ["log"] * 3
    assert measured_against_predicted(cadmium)[0].get_xscale() == "linear"
    assert [ax.get_yscale() for ax in measured_against_predicted(core)] == ["linear", "log"]
    assert measured_against_predicted(checked, log=False)[0].get_xscale() == "linear"
    assert measured_against_predicted(cadmium, log=True)[0].get_yscale() == "log"


def test_coverage_is_drawn_at_every_level_for_every_output(checked):
    ax = coverage(checked)
    _, *curves = ax.get_lines()
    shares = central_coverage(checked.pit.to_numpy(), LEVELS)
    assert [line.get_label() for line in curves] == ["Cd", "Ni", "Zn"]
    for line, share in zip(curves, shares.T, strict=True):
        assert_allclose(line.get_ydata(), share)
    band = ax.collections[0].get_paths()[0].vertices
    half = 2 * np.sqrt(0.25 / checked.pit.count().min())
    at = np.isclose(band[:, 0], 0.5)
    assert_allclose(sorted(set(band[at, 1].round(9))), [0.5 - half, 0.5 + half])


def test_of_many_outputs_the_farthest_three_are_named(channels):
    ax = coverage(channels)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    found = channels.cross_validate().pit
    far = np.abs(central_coverage(found.to_numpy(), LEVELS) - LEVELS[:, None]).max(axis=0)
    assert labels[1] == "11 others"
    assert set(labels[2:]) == set(found.columns[np.argsort(-far)[:3]])
    assert len(ax.get_lines()) == 15


def test_pit_is_a_density_with_the_band_that_chance_allows(checked):
    for name, ax in zip(checked.pit, pit(checked, bins=5), strict=True):
        values = checked.pit[name].dropna()
        heights, _ = np.histogram(values, 5, (0, 1), density=True)
        assert_allclose([bar.get_height() for bar in ax.containers[0]], heights)
        assert ax.get_title() == f"{name} ({len(values)})"
        span = ax.patches[0].get_extents().transformed(ax.transData.inverted())
        assert span.height == pytest.approx(2 * 2 * np.sqrt(0.2 * 0.8 / len(values)) / 0.2)


def test_a_model_is_cross_validated_by_site(metals, checked):
    for draw in (measured_against_predicted, pit):
        ours, theirs = (draw(of, outputs="Ni")[0] for of in (metals, checked))
        assert ours.get_title() == theirs.get_title()
    assert coverage(metals).get_title() == "Coverage, cross-validated by site"


def test_they_draw_on_the_axes_they_are_given(checked):
    for draw in (measured_against_predicted, pit):
        _, axes = plt.subplots(1, 3)
        assert (draw(checked, axes=axes) == axes).all()
    _, ax = plt.subplots()
    assert coverage(checked, ax=ax) is ax
    assert len(plt.get_fignums()) == 3
