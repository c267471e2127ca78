"""Error against batch size: the axes that are returned and the lines on them."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from emgpr.plots import error_against_batch_size

from .appearance import assert_like_reference

SIZES, ERRORS = np.array([9, 45, 129]), np.array([0.5, 0.3, 0.4])


def test_the_ensemble_is_a_line_and_references_are_level_lines():
    ax = error_against_batch_size(SIZES, ERRORS, {"no transfer": 0.6, "no ensemble": 0.45})
    ensemble, *levels = ax.get_lines()
    assert ensemble.get_xydata().tolist() == [[9, 0.5], [45, 0.3], [129, 0.4]]
    assert [line.get_ydata()[0] for line in levels] == [0.6, 0.45]
    labels = [line.get_label() for line in ax.get_lines()]
    assert labels == ["ensemble", "no transfer", "no ensemble"]
    assert len({line.get_linestyle() for line in ax.get_lines()}) == 3
    assert ax.get_yscale() == "linear"


def test_given_axes_are_used_with_a_logarithmic_scale_on_request():
    _, ax = plt.subplots()
    assert error_against_batch_size(SIZES, 1e-6 * ERRORS, {"ICM": 0.0}, log=True, ax=ax) is ax
    assert ax.get_yscale() == "log"
    ax.figure.draw_without_rendering()


def test_more_references_than_line_styles_are_refused():
    with pytest.raises(ValueError, match="references contains 4 models; expected at most 3"):
        error_against_batch_size(SIZES, ERRORS, dict.fromkeys("abcd", 0.1))


def test_it_looks_like_its_reference_picture():
    sizes, errors = np.array([9, 27, 45, 129]), np.array([0.44, 0.41, 0.40, 0.415])
    references = {"no transfer": 0.57, "no ensemble": 0.42}
    axes = error_against_batch_size(sizes, errors, references, label="MAE (mg/kg)")
    assert_like_reference(axes, "error_against_batch_size")
