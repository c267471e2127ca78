"""Latents, weights, coregionalisation and variograms: what is drawn is what the model has."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose
from simulated import known_model, world
from sklearn.gaussian_process.kernels import Matern

from emgpr import OnePassGP, plots
from emgpr.plots import coregionalization, latents, member_weights, variograms
from emgpr.plots.latents import strongest
from emgpr.plots.surface import places
from emgpr.weights import aligned


def test_latents_are_drawn_as_predicted_even_around_zero(metals):
    nodes = places(metals.training_data()[0], None)
    mean = metals.predict_latents(nodes)
    for q, ax in enumerate(latents(metals)):
        mesh = ax.collections[0]
        assert_allclose(mesh.get_array().compressed(), mean[:, q, 0])
        assert mesh.norm.vmin == -mesh.norm.vmax
        assert ax.get_lines()[0].get_xydata().shape == metals.training_data()[0].shape


def test_latents_are_named_with_their_length_scale_and_who_hears_them(metals):
    W = aligned(metals.weights_).mean(axis=0)[0, :, 0]
    order = np.argsort(-np.abs(W))
    title = latents(metals)[0].get_title()
    assert title.startswith("latent 0, length-scale 0.3\n")
    heard = title.split("\n")[1].replace("−", "-").split(", ")
    expected = [f"{metals.output_names_[d]} {W[d]:+.2f}" for d in order]
    assert heard == expected


def test_latents_of_one_input_are_lines(core):
    ax = latents(core)[0]
    line = ax.get_lines()[0]
    nodes = places(core.training_data()[0], None)
    assert_allclose(line.get_ydata(), core.predict_latents(nodes)[:, 0, 0])


def test_the_strongest_processes_are_drawn(channels):
    assert len(latents(channels)) == 12
    variance = np.sum(channels.weights_**2, axis=(2, 3)).mean(axis=0)
    kept = np.sort(np.argsort(-variance)[:5])
    assert [q for q, _ in strongest(channels, limit=5)] == kept.tolist()
    assert len(latents(channels, which=[3, 5])) == 2
    with pytest.raises(ValueError, match="latents 0 to 13"):
        latents(channels, which=[14])


def test_processes_of_a_latent_have_letters(rng):
    model = known_model(world(rng, N=30))
    model.kernels_[1] = Matern([0.5, 0.2], nu=1.5)
    titles = [ax.get_title().split("\n")[0] for ax in latents(model, which=[1])]
    assert titles == [f"latent 1{j}, length-scale 0.5 × 0.2" for j in "ab"]


def test_every_member_has_a_dot_and_the_mean_a_bar(metals):
    W = aligned(metals.weights_)
    assert len(W) == 3
    for q, ax in enumerate(member_weights(metals)):
        dots = ax.get_lines()[1].get_xydata()
        assert_allclose(dots[:, 1], W[:, q, :, 0].ravel())
        assert_allclose(np.round(dots[:, 0]), np.tile(np.arange(3), 3))
        bars = np.array(ax.collections[0].get_segments())
        assert_allclose(bars[:, 0, 1], W[:, q, :, 0].mean(axis=0))
        assert [text.get_text() for text in ax.get_xticklabels()] == ["Cd", "Ni", "Zn"]


def test_a_members_sign_does_not_matter(rng):
    model = known_model(world(rng, k=1))
    model.weights_ = np.concatenate([model.weights_, 1.1 * model.weights_])
    drawn = [member_weights(model)]
    model.weights_ = model.weights_ * np.array([1.0, -1.0])[:, None, None, None]
    drawn.append(member_weights(model))
    for one, other in zip(*drawn, strict=True):
        assert_allclose(one.get_lines()[1].get_ydata(), other.get_lines()[1].get_ydata())


def test_correlations_then_what_each_latent_brings(metals):
    total, *parts = coregionalization(metals)
    tables = [ax.get_images()[0].get_array() for ax in (total, *parts)]
    assert_allclose(tables[0], sum(tables[1:]))
    assert_allclose(np.diagonal(tables[0]), 1.0)
    assert total.get_title() == "correlation of signals"
    assert parts[0].get_title() == "latent 0, length-scale 0.3"
    written = [text.get_text().replace("−", "-") for text in total.texts]
    assert written == [f"{value:.2f}" for value in tables[0].ravel()]
    assert all(ax.get_images()[0].get_clim() == (-1, 1) for ax in (total, *parts))


def test_correlated_noise_has_its_own_panel(rng):
    made = world(rng, N=20, correlated=True)
    ax = coregionalization(known_model(made), by_latent=False)[-1]
    spread = np.sqrt(np.diag(made.noise))
    assert ax.get_title() == "correlation of noises"
    assert_allclose(ax.get_images()[0].get_array(), made.noise / np.outer(spread, spread))


def test_many_latents_are_drawn_only_if_asked(channels):
    assert len(coregionalization(channels)) == 1
    assert len(coregionalization(channels, by_latent=True)) == 15


def test_an_output_without_a_signal_is_grey(rng):
    made = world(rng)
    made.W[:, 1] = 0.0
    ax = coregionalization(known_model(made), by_latent=False)[0]
    table = ax.get_images()[0]
    assert np.ma.getmaskarray(table.get_array())[1].all()
    assert to_hex(table.get_cmap().get_bad()) == "#dddddd"
    assert ax.texts[4].get_text() == "–"


def test_variograms_are_a_triangle_of_points_and_lines(metals):
    drawn = variograms(metals, units={"Xloc": "km"}, n_lags=8)
    titles = [ax.get_title() for ax in drawn]
    assert titles == ["Cd", "Ni × Cd", "Ni", "Zn × Cd", "Zn × Ni", "Zn"]
    frame = metals.variograms([("Zn", "Cd")], n_lags=8).dropna()
    assert_allclose(drawn[3].collections[0].get_offsets(), frame[["lag", "empirical"]])
    fine = metals.variograms([("Zn", "Cd")], n_lags=32).dropna()
    assert_allclose(drawn[3].get_lines()[0].get_xydata(), fine[["lag", "model"]])
    assert drawn[0].get_xlabel() == "lag (km)"


def test_of_many_outputs_each_alone_unless_asked(channels):
    assert [ax.get_title() for ax in variograms(channels)] == channels.output_names_
    two = variograms(channels, outputs=["ch01", "ch15"], cross=False)
    assert [ax.get_title() for ax in two] == ["ch01", "ch15"]


def test_outputs_that_share_no_site_are_said_to_have_a_pseudo_cross_variogram(rng):
    made = world(rng, N=60)
    made.Y[:30, 0], made.Y[30:, 1] = np.nan, np.nan
    titles = [ax.get_title() for ax in variograms(known_model(made))]
    assert titles == ["0", "1 × 0 (pseudo)", "1", "2 × 0", "2 × 1", "2"]


def test_they_draw_on_the_axes_they_are_given(metals):
    _, axes = plt.subplots(2, 3)
    assert (variograms(metals, axes=axes) == axes.ravel()).all()
    for draw in (latents, member_weights):
        _, axes = plt.subplots(3)
        assert (draw(metals, axes=axes) == axes).all()
    _, axes = plt.subplots(4)
    assert (coregionalization(metals, axes=axes) == axes).all()
    with pytest.raises(ValueError, match="axes holds 4 axes; this picture has 3 panels"):
        latents(metals, axes=axes)


@pytest.mark.parametrize(
    "picture",
    ["maps", "latents", "coregionalization", "variograms", "measured_against_predicted"],
)
def test_a_model_without_readings_is_refused_by_name(picture):
    with pytest.raises(TypeError, match=r"keeps its readings.*got OnePassGP"):
        getattr(plots, picture)(OnePassGP())
