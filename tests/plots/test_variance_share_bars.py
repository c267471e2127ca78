"""Shares of variance as bars: their lengths, labels and numbers."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.plots import variance_shares

from .conftest import fit_arrays, with_output_names, with_parameters


@pytest.fixture(scope="module")
def model():
    """Three outputs of three latents, one without a length-scale of its own."""
    kernels = (RBF(0.4), Matern([0.2, 1.5], nu=1.5), RBF(0.4) + RBF(2.0))
    W = np.random.default_rng(1).normal(size=(1, 3, 3, 1))
    fitted = with_parameters(fit_arrays(), kernels=kernels, weights=W)
    return with_output_names(fitted, ["Cd", "Ni", "Zn"])


def test_bars_are_the_shares_of_each_output(model):
    ax = variance_shares(model)
    shares = model.variance_shares_
    assert [text.get_text() for text in ax.get_yticklabels()] == ["Cd", "Ni", "Zn"]
    assert len(ax.containers) == shares.shape[1]
    for container, column in zip(ax.containers, shares, strict=True):
        assert_allclose([bar.get_width() for bar in container], shares[column], atol=1e-12)
    assert_allclose([bar.get_x() + bar.get_width() for bar in ax.containers[-1]], 1.0)
    assert_allclose([bar.get_x() for bar in ax.containers[1]], shares.iloc[:, 0])
    bottom, top = ax.get_ylim()
    assert bottom > top  # the first output is on top


def test_latents_are_labelled_with_their_length_scales(model):
    labels = [text.get_text() for text in variance_shares(model).get_legend().get_texts()]
    assert labels == [
        "latent 0, length-scale 0.4",
        "latent 1, length-scale 0.2 × 1.5",
        "latent 2",
        "noise",
    ]


def test_numbers_are_on_bars_that_have_room_in_a_colour_that_is_legible(model):
    ax = variance_shares(model)
    shares = model.variance_shares_.to_numpy()
    numbers = sorted(int(text.get_text()) for text in ax.texts)
    assert numbers == sorted(round(100 * share) for share in shares[shares >= 0.06])
    for text in ax.texts:
        bar = next(
            bar
            for bars in ax.containers
            for bar in bars
            if bar.contains_point(ax.transData.transform(text.get_position()))
        )
        is_dark = sum(bar.get_facecolor()[:3]) < 1.4
        assert text.get_color() == ("white" if is_dark else "black")


def test_given_axes_are_used(model):
    _, ax = plt.subplots()
    assert variance_shares(model, ax=ax) is ax
    assert len(plt.get_fignums()) == 1
