"""Correlations of the outputs: what is drawn is what the model has."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose

from emgpr.plots import coregionalization

from .conftest import fit_arrays, with_parameters


def test_the_contributions_of_the_latents_sum_to_the_correlations(metals):
    total, *parts = coregionalization(metals)
    tables = [ax.get_images()[0].get_array() for ax in (total, *parts)]
    assert_allclose(tables[0], sum(tables[1:]))
    assert_allclose(np.diagonal(tables[0]), 1.0)
    assert total.get_title() == "correlation of signals"
    assert parts[0].get_title() == "latent 0, length-scale 0.3"
    numbers = [text.get_text().replace("−", "-") for text in total.texts]
    assert numbers == [f"{value:.2f}" for value in tables[0].ravel()]
    assert all(ax.get_images()[0].get_clim() == (-1, 1) for ax in (total, *parts))


def test_correlated_noise_has_a_panel_of_its_own():
    root = np.random.default_rng(0).normal(size=(3, 3))
    noise = root @ root.T
    model = with_parameters(fit_arrays(), noise=noise)
    ax = coregionalization(model, by_latent=False)[-1]
    std = np.sqrt(np.diag(noise))
    assert ax.get_title() == "correlation of noise"
    assert_allclose(ax.get_images()[0].get_array(), noise / np.outer(std, std))


def test_many_latents_are_drawn_only_on_request(channels):
    assert len(coregionalization(channels)) == 1
    model = fit_arrays()
    assert len(coregionalization(model, limit=2)) == 1
    assert len(coregionalization(model, limit=2, by_latent=True)) == 4


def test_an_output_without_a_signal_is_grey():
    model = fit_arrays()
    W = model.weights_.copy()
    W[:, :, 1] = 0.0
    ax = coregionalization(with_parameters(model, weights=W), by_latent=False)[0]
    image = ax.get_images()[0]
    assert np.ma.getmaskarray(image.get_array())[1].all()
    assert to_hex(image.get_cmap().get_bad()) == "#dddddd"
    assert ax.texts[4].get_text() == "–"


def test_given_axes_are_used(metals):
    _, axes = plt.subplots(4)
    assert (coregionalization(metals, axes=axes) == axes).all()
