"""All figures: what they look like, and what they have in common."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from emgpr import CMOGP, CoKriging, OnePassGP, plots
from emgpr.datasets import load_amsua, load_jura
from emgpr.kernels import Spherical
from tests.simulated import smooth_table

from .appearance import (
    TOLERANCE,
    assert_like_reference,
    distance,
    overlapping_texts,
    pixels,
    reference_pixels,
)
from .conftest import with_output_names, with_parameters

pytestmark = pytest.mark.slow

UNITS = load_jura().units | load_amsua().units | {"depth": "m", "clay": "%", "iron": "g/kg"}
FIGURES = {
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
# Every figure of three outputs, and those that differ in kind for one input, many outputs, one.
REFERENCES = [
    *(("metals", name) for name in FIGURES),
    *(("core", name) for name in ("maps", "latents", "variograms")),
    *(("channels", name) for name in ("coregionalization", "coverage")),
    *(("cadmium", name) for name in ("maps", "measured_against_predicted", "member_weights")),
]


@pytest.mark.parametrize(("model", "figure"), REFERENCES)
def test_a_figure_looks_like_its_reference_picture(request, model, figure):
    axes = FIGURES[figure](request.getfixturevalue(model))
    # Edges of large dark cells fall to either side of a pixel.
    tolerance = 9.0 if figure == "coregionalization" else TOLERANCE
    assert_like_reference(axes, f"{figure}-{model}", tolerance)
    assert not overlapping_texts(np.ravel(axes))


@pytest.mark.parametrize(
    ("figure", "spoil"),
    [
        ("maps", lambda axes: axes[0, 0].collections[0].set_cmap("cividis")),
        ("latents", lambda axes: axes[0].collections[0].set_cmap("PuOr_r")),
        ("variograms", lambda axes: [ax.collections[0].remove() for ax in axes]),
        ("measured_against_predicted", lambda axes: [ax.collections[0].remove() for ax in axes]),
        ("pit", lambda axes: [bar.remove() for bar in axes[0].containers[0]]),
    ],
)
def test_a_difference_from_the_reference_picture_is_noticed(metals, figure, spoil):
    axes = FIGURES[figure](metals)
    spoil(axes)
    drawn = pixels(axes.flat[0].figure)
    assert distance(drawn, reference_pixels(f"{figure}-metals")) > TOLERANCE


@pytest.mark.parametrize("figure", sorted({*FIGURES} - {"coverage", "pit"}))
def test_long_names_and_names_with_dollars_find_room(metals, figure):
    names = [
        "Cadmium in the topsoil, extracted with aqua regia, of the first campaign",
        r"gold $\frac and silver $",
        "brightness temperature, channel 5",
    ]
    kernels = (Matern([0.12345, 0.54321], nu=1.5),) * 3
    model = with_parameters(with_output_names(metals, names), kernels=kernels)
    axes = np.ravel(FIGURES[figure](model))
    assert not overlapping_texts(axes)
    if figure in ("coregionalization", "member_weights"):
        ticks = [text for ax in axes for text in ax.get_xticklabels() if text.get_text()]
        boxes = [text.get_window_extent() for text in ticks]
        assert not any(one.overlaps(two) for one, two in itertools.pairwise(boxes))
    for ax in axes:
        assert ax.title.get_window_extent().width < ax.figure.bbox.width


def test_every_function_has_a_reference_picture_and_a_place_in_the_docs():
    others = {"error_against_batch_size", "correlation_map"}  # with tests of their own
    assert {*FIGURES} | others == set(plots.__all__)
    page = (Path(__file__).parents[2] / "docs" / "pictures.md").read_text("utf-8")
    for name in plots.__all__:
        assert f"plots.{name}(" in page
        assert f"](images/pictures/{name}.png)" in page


@pytest.mark.parametrize(
    "figure",
    [
        "maps", "latents", "coregionalization", "variograms", "measured_against_predicted",
        "coverage", "pit",
    ],
)  # fmt: skip
def test_an_estimator_that_keeps_no_readings_is_refused_by_name(figure):
    with pytest.raises(TypeError, match=r"keeps its training readings.*got OnePassGP"):
        getattr(plots, figure)(OnePassGP())


def test_weights_and_shares_are_drawn_of_a_model_that_keeps_no_readings():
    X = np.linspace(0, 6, 60)[:, None]
    Y = np.hstack([np.sin(X), np.cos(X)]) + 0.1 * np.random.default_rng(0).normal(size=(60, 2))
    model = OnePassGP(n_functions=20, random_state=0).fit(X, Y)
    for draw in (plots.member_weights, plots.variance_shares):
        ax = np.ravel(draw(model))[0]
        labels = [text.get_text() for text in (*ax.get_xticklabels(), *ax.get_yticklabels())]
        assert {"0", "1"} <= set(labels)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:The nuggets of all outputs are zero")
@pytest.mark.parametrize(
    "model",
    [CMOGP(n_restarts=1, max_iter=3, random_state=0), CoKriging([Spherical(0.4, "fixed")])],
    ids=lambda model: type(model).__name__,
)
def test_other_models_with_readings_can_be_drawn(rng, model):
    X, Y = smooth_table(rng, N=30)
    model.fit(X, Y)
    for figure in ("maps", "variograms", "coregionalization", "variance_shares", "coverage", "pit"):
        axes = np.ravel(getattr(plots, figure)(model))
        assert axes[0].has_data()
    shares = plots.variance_shares(model)
    labels = [text.get_text() for text in shares.get_legend().get_texts()]
    assert labels[-1] == "noise"
    assert "length-scale" in labels[0]
    for figure in ("latents", "member_weights"):
        with pytest.raises(ValueError, match=f"{type(model).__name__} has none"):
            getattr(plots, figure)(model)
