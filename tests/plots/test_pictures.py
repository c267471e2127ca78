"""Every picture of every kind of model, as it was when it was looked at."""

import copy
import itertools
from pathlib import Path

import numpy as np
import pytest
from likeness import TOLERANCE, looks_as_it_did, lying_on_each_other, pixels, unlikeness
from sklearn.gaussian_process.kernels import Matern

from emgpr import plots
from emgpr.datasets import load_amsua, load_jura

UNITS = load_jura().units | load_amsua().units | {"depth": "m", "clay": "%", "iron": "g/kg"}
DRAWN = {
    "maps": lambda model: plots.maps(model, units=UNITS),
    "latents": lambda model: plots.latents(model, units=UNITS),
    "member_weights": plots.member_weights,
    "coregionalization": plots.coregionalization,
    "measured_against_predicted": lambda m: plots.measured_against_predicted(m, units=UNITS),
    "coverage": plots.coverage,
    "pit": plots.pit,
    "variograms": lambda model: plots.variograms(model, units=UNITS),
    "variance_shares": plots.variance_shares,
}


@pytest.mark.parametrize("function", DRAWN)
@pytest.mark.parametrize("model", ["metals", "channels", "cadmium", "core"])
def test_it_looks_as_it_did(request, model, function):
    drawn = DRAWN[function](request.getfixturevalue(model))
    # Edges of large dark cells fall to either side of a pixel.
    tolerance = 9.0 if function == "coregionalization" else TOLERANCE
    looks_as_it_did(drawn, f"{function}-{model}", tolerance)
    assert not lying_on_each_other(np.ravel(drawn))


def test_error_against_batch_size_looks_as_it_did():
    sizes, errors = np.array([9, 27, 45, 129]), np.array([0.44, 0.41, 0.40, 0.415])
    references = {"no transfer": 0.57, "no ensemble": 0.42}
    drawn = plots.error_against_batch_size(sizes, errors, references, label="MAE (mg/kg)")
    looks_as_it_did(drawn, "error_against_batch_size")


@pytest.mark.parametrize("function", DRAWN)
def test_long_names_and_those_with_dollars_find_room(metals, function):
    model = copy.copy(metals)
    model.output_names_ = [
        "Cadmium in the topsoil, extracted with aqua regia, of the first campaign",
        r"gold $\frac and silver $",
        "brightness temperature, channel 5",
    ]
    model.variance_shares_ = metals.variance_shares_.set_axis(model.output_names_)
    model.kernel_, model.kernels_ = None, [Matern([0.12345, 0.54321], nu=1.5)] * 3
    axes = np.ravel(DRAWN[function](model))
    assert not lying_on_each_other(axes)
    figure = axes[0].figure
    ticks = [text for ax in axes for text in ax.get_xticklabels() if text.get_text()]
    boxes = [text.get_window_extent() for text in ticks]
    if function in ("coregionalization", "member_weights"):
        assert not any(one.overlaps(two) for one, two in itertools.pairwise(boxes))
    for text in (ax.title for ax in axes):
        assert text.get_window_extent().width < figure.bbox.width


def test_every_function_has_a_picture():
    assert {*DRAWN, "error_against_batch_size"} == set(plots.__all__)


def test_the_page_of_pictures_shows_every_function():
    page = (Path(__file__).parents[2] / "docs" / "pictures.md").read_text("utf-8")
    for name in plots.__all__:
        assert f"plots.{name}(" in page
        assert f"](images/pictures/{name}.png)" in page


def test_another_picture_would_be_noticed(metals):
    """Another colour map, a latent turned round, no points, no lines, no bars."""
    for draw, spoil in {
        plots.maps: lambda axes: axes[0, 0].collections[0].set_cmap("cividis"),
        plots.latents: lambda axes: axes[0].collections[0].set_cmap("PuOr_r"),
        plots.variograms: lambda axes: [ax.collections[0].remove() for ax in axes],
        plots.measured_against_predicted: lambda axes: [ax.collections[0].remove() for ax in axes],
        plots.pit: lambda axes: [bar.remove() for bar in axes[0].containers[0]],
    }.items():
        before = pixels(draw(metals).flat[0].figure)
        axes = draw(metals)
        spoil(axes)
        assert unlikeness(pixels(axes.flat[0].figure), before) > TOLERANCE
