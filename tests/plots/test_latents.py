"""Latent processes and weights: what is drawn is what the model has."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.plots import latents, member_weights
from emgpr.plots.latents import strongest_processes
from emgpr.plots.surface import Locations
from emgpr.weights import aligned

from .conftest import fit_arrays, with_parameters


def test_latents_are_drawn_as_predicted_on_a_scale_symmetric_about_zero(metals):
    mean = metals.predict_latents(Locations.build(metals).nodes)
    for q, ax in enumerate(latents(metals)):
        mesh = ax.collections[0]
        assert_allclose(mesh.get_array().compressed(), mean[:, q, 0])
        assert mesh.norm.vmin == -mesh.norm.vmax
        assert ax.get_lines()[0].get_xydata().shape == metals.training_data()[0].shape


def test_titles_have_the_length_scale_and_the_largest_weights(metals):
    W = aligned(metals.weights_).mean(axis=0)[0, :, 0]
    title = latents(metals)[0].get_title()
    first, second = title.replace("−", "-").split("\n")
    assert first == "latent 0, length-scale 0.3"
    largest = [f"{metals.output_names_[d]} {W[d]:+.2f}" for d in np.argsort(-np.abs(W))]
    assert second == f"weights: {', '.join(largest)}"


def test_latents_of_one_input_are_lines(core):
    line = latents(core)[0].get_lines()[0]
    assert_allclose(line.get_ydata(), core.predict_latents(Locations.build(core).nodes)[:, 0, 0])


def test_the_processes_with_the_most_variance_are_drawn(channels):
    variance = np.sum(channels.weights_**2, axis=(2, 3)).mean(axis=0)
    kept = np.sort(np.argsort(-variance)[:5])
    processes = strongest_processes(channels.weights_, None, 5)
    assert [q for q, _ in processes] == kept.tolist()
    assert len(member_weights(channels)) == 12
    assert len(latents(channels, which=[3, 5])) == 2
    with pytest.raises(ValueError, match="latents of this model, 0 to 13"):
        latents(channels, which=[14])


def test_processes_of_one_latent_have_letters():
    rng = np.random.default_rng(0)
    kernels = (RBF(0.3), Matern([0.5, 0.2], nu=1.5), RBF(1.0))
    model = with_parameters(fit_arrays(), kernels=kernels, weights=rng.normal(size=(1, 3, 3, 2)))
    titles = [ax.get_title().split("\n")[0] for ax in latents(model, which=[1])]
    assert titles == [f"latent 1{j}, length-scale 0.5 × 0.2" for j in "ab"]


def test_every_member_is_a_point_and_the_mean_a_bar(metals):
    W = aligned(metals.weights_)
    assert len(W) == 3
    for q, ax in enumerate(member_weights(metals)):
        points = ax.get_lines()[1].get_xydata()
        assert_allclose(points[:, 1], W[:, q, :, 0].ravel())
        assert_allclose(np.round(points[:, 0]), np.tile(np.arange(3), 3))
        bars = np.array(ax.collections[0].get_segments())
        assert_allclose(bars[:, 0, 1], W[:, q, :, 0].mean(axis=0))
        assert [text.get_text() for text in ax.get_xticklabels()] == ["Cd", "Ni", "Zn"]


def test_the_sign_of_a_members_weights_does_not_matter():
    model = fit_arrays()
    W = np.random.default_rng(0).normal(size=(1, 3, 3, 1))
    one, other = (
        member_weights(with_parameters(model, weights=np.concatenate([W, sign * 1.1 * W])))
        for sign in (1, -1)
    )
    for ours, theirs in zip(one, other, strict=True):
        assert_allclose(ours.get_lines()[1].get_ydata(), theirs.get_lines()[1].get_ydata())


def test_given_axes_are_used(metals):
    for draw in (latents, member_weights):
        _, axes = plt.subplots(3)
        assert (draw(metals, axes=axes) == axes).all()
    with pytest.raises(ValueError, match="axes contains 3 axes; expected 2"):
        member_weights(metals, which=[0, 1], axes=axes)
