"""Labels of long axes: in km where the unit is m, and so few that they do not overlap."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest

from emgpr.plots import labels


def drawn_labels(ax):
    """Return the texts and boxes of the visible labels of the x axis."""
    ax.figure.canvas.draw()
    shown = [label for label in ax.get_xticklabels() if label.get_text()]
    low, high = ax.get_xlim()
    shown = [label for label in shown if low <= label.get_position()[0] <= high]
    return [label.get_text() for label in shown], [label.get_window_extent() for label in shown]


@pytest.mark.parametrize("width", [1.2, 2.0, 3.6])
@pytest.mark.parametrize("ends", [(178605, 181390), (652008, 676000), (-5213002, -4230995)])
@pytest.mark.parametrize("unit", ["m", ""])
def test_labels_do_not_overlap(width, ends, unit):
    _, ax = plt.subplots(figsize=(width, 2))
    ax.set_xlim(*ends)
    name, size = labels.length_unit(unit, float(np.ptp(ends)))
    assert name == ("km" if unit else "")
    labels.set_length_ticks(ax.xaxis, size)
    texts, boxes = drawn_labels(ax)
    assert texts
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))
    numbers = [size * float(text.replace("−", "-")) for text in texts]
    assert all(ends[0] <= number <= ends[1] for number in numbers)


def test_short_labels_are_left_alone():
    _, ax = plt.subplots()
    ax.set_xlim(0, 5)
    before = ax.xaxis.get_major_locator()
    labels.set_length_ticks(ax.xaxis, 1.0)
    assert ax.xaxis.get_major_locator() is before
