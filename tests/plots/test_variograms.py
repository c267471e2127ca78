"""Variograms: what is drawn is what the model returns."""

import copy
from dataclasses import replace

import matplotlib.pyplot as plt
import pytest
from numpy.testing import assert_allclose

from emgpr.plots import variograms

from .conftest import fit_arrays


def test_pairs_are_a_triangle_of_points_and_lines(metals):
    axes = variograms(metals, units={"Xloc": "km"}, n_lags=8)
    titles = [ax.get_title() for ax in axes]
    assert titles == ["Cd", "Ni × Cd", "Ni", "Zn × Cd", "Zn × Ni", "Zn"]
    empirical = metals.variograms([("Zn", "Cd")], n_lags=8).dropna()
    assert_allclose(axes[3].collections[0].get_offsets(), empirical[["lag", "empirical"]])
    fine = metals.variograms([("Zn", "Cd")], n_lags=32).dropna()
    assert_allclose(axes[3].get_lines()[0].get_xydata(), fine[["lag", "model"]])
    assert axes[0].get_xlabel() == "lag (km)"


def test_many_outputs_are_drawn_without_pairs(channels):
    names = channels.output_names_[:5]
    assert [ax.get_title() for ax in variograms(channels, outputs=names)] == names
    axes = variograms(channels, outputs=["ch01", "ch15"], cross=False)
    assert [ax.get_title() for ax in axes] == ["ch01", "ch15"]


def test_the_pseudo_cross_variogram_of_outputs_without_common_sites_is_labelled():
    model = fit_arrays(N=60, y0=slice(30), y1=slice(30, None))
    titles = [ax.get_title() for ax in variograms(model)]
    assert titles == ["0", "1 × 0 (pseudo)", "1", "2 × 0", "2 × 1", "2"]


def test_given_axes_are_used(metals):
    _, axes = plt.subplots(2, 3)
    assert (variograms(metals, axes=axes) == axes.ravel()).all()


def test_a_line_far_from_its_points_is_warned_of(metals):
    model = copy.copy(metals)
    posterior = metals.posterior_
    loud = replace(posterior.model, weights=3 * posterior.model.weights)
    model.posterior_ = replace(posterior, model=loud)
    with pytest.warns(UserWarning, match=r"far above the readings .* for Zn\), .*another kernel"):
        variograms(model)
