"""Coverage and PIT: what is drawn is what cross-validation found."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.metrics import central_coverage
from emgpr.plots import coverage, pit
from emgpr.plots.calibration import LEVELS


def test_coverage_is_drawn_at_every_level_for_every_output(checked):
    ax = coverage(checked)
    _, *curves = ax.get_lines()
    shares = central_coverage(checked.pit.to_numpy(), LEVELS)
    assert [line.get_label() for line in curves] == ["Cd", "Ni", "Zn"]
    for line, share in zip(curves, shares.T, strict=True):
        assert_allclose(line.get_ydata(), share)
    band = ax.collections[0].get_paths()[0].vertices
    half = 2 * np.sqrt(0.25 / checked.pit.count().min())
    middle = np.isclose(band[:, 0], 0.5)
    assert_allclose(sorted(set(band[middle, 1].round(9))), [0.5 - half, 0.5 + half])


def test_of_many_outputs_the_three_farthest_from_the_diagonal_are_named(channels):
    found = channels.cross_validate()
    ax = coverage(found)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    shares = central_coverage(found.pit.to_numpy(), LEVELS)
    farthest = np.argsort(-np.abs(shares - LEVELS[:, None]).max(axis=0))[:3]
    assert labels[1] == "11 others"
    assert set(labels[2:]) == set(found.pit.columns[farthest])
    assert len(ax.get_lines()) == 15


def test_pit_is_a_density_with_a_band_of_two_standard_errors(checked):
    for name, ax in zip(checked.pit, pit(checked, bins=5), strict=True):
        values = checked.pit[name].dropna()
        heights, _ = np.histogram(values, 5, (0, 1), density=True)
        assert_allclose([bar.get_height() for bar in ax.containers[0]], heights)
        assert ax.get_title() == f"{name} (n = {len(values)})"
        span = ax.patches[0].get_extents().transformed(ax.transData.inverted())
        assert span.height == pytest.approx(2 * 2 * np.sqrt(0.2 * 0.8 / len(values)) / 0.2)


def test_a_model_is_cross_validated_by_site(cadmium):
    found = cadmium.cross_validate()
    for drawn in (cadmium, found):
        assert pit(drawn)[0].get_title() == f"Cd (n = {int(found.pit['Cd'].count())})"
    assert coverage(cadmium).get_title() == "Coverage, cross-validated by site"


def test_given_axes_are_used(checked):
    _, axes = plt.subplots(1, 3)
    assert (pit(checked, axes=axes) == axes).all()
    _, ax = plt.subplots()
    assert coverage(checked, ax=ax) is ax
    assert len(plt.get_fignums()) == 2
