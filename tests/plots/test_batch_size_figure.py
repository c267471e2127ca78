"""Error against batch size: the axes that come back and the lines on them."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from emgpr.plots import error_against_batch_size

SIZES, ERRORS = np.array([9, 45, 129]), np.array([0.5, 0.3, 0.4])


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_a_line_for_the_ensemble_and_level_ones_for_the_others():
    ax = error_against_batch_size(SIZES, ERRORS, {"no transfer": 0.6, "no ensemble": 0.45})
    ensemble, *levels = ax.get_lines()
    assert ensemble.get_xydata().tolist() == [[9, 0.5], [45, 0.3], [129, 0.4]]
    assert [line.get_ydata()[0] for line in levels] == [0.6, 0.45]
    assert [line.get_label() for line in ax.get_lines()] == [
        "ensemble", "no transfer", "no ensemble",
    ]  # fmt: skip
    assert len({line.get_linestyle() for line in ax.get_lines()}) == 3
    assert ax.get_yscale() == "linear"


def test_draws_on_the_axes_it_is_given_in_logarithms_if_asked():
    _, ax = plt.subplots()
    assert error_against_batch_size(SIZES, 1e-6 * ERRORS, {"ICM": 0.0}, log=True, ax=ax) is ax
    assert ax.get_yscale() == "log"
    ax.figure.draw_without_rendering()


def test_more_references_than_line_styles_are_refused():
    with pytest.raises(ValueError, match="4 references; at most 3 can be told apart"):
        error_against_batch_size(SIZES, ERRORS, dict.fromkeys("abcd", 0.1))
