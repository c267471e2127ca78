"""How many features are chosen, and which."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.fourier import resolution
from emgpr.fourier.resolution import MAX_SUMS, FeatureChoice, Resolution
from emgpr.kernels import kernel_matrix

from .small_features import covariances


def choice(kernels, tolerance=1e-3, n_max=2000, shares=None):
    shares = np.ones(len(kernels)) if shares is None else shares
    return FeatureChoice(kernels, shares, Resolution(tolerance, tolerance, 0, n_max))


def chosen(kernels, *args, P=2, **settings):
    """Features for the unit cube."""
    return choice(kernels, *args, **settings).for_region(np.zeros(P), np.ones(P))


@pytest.mark.parametrize("kernel", [RBF([0.1, 0.4]), Matern(0.4, nu=2.5)], ids=str)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-3])
def test_covariances_are_as_accurate_as_required(kernel, tolerance, rng):
    features = chosen([kernel], tolerance)
    assert features.truncated_variances([kernel])[0] <= tolerance
    x, z = rng.uniform(size=(2, 50, 2))
    error = covariances(features, [kernel], x, z)[0] - kernel_matrix(kernel, x, z)
    assert np.abs(error).max() < tolerance + 0.01  # what is left out, and the periodic copies


def test_less_variance_left_out_or_shorter_ranges_need_more_features():
    few = chosen([RBF(0.3)]).n_functions
    assert few < chosen([RBF(0.3)], 1e-5).n_functions
    assert few < chosen([RBF(0.15)]).n_functions
    assert few < chosen([Matern(0.3, nu=2.5)]).n_functions


def test_an_input_with_a_short_length_scale_has_higher_frequencies():
    m = chosen([RBF([0.1, 0.5])]).m
    assert np.abs(m[:, 0]).max() > 2 * np.abs(m[:, 1]).max()


def test_a_latent_with_a_small_share_gets_few_features():
    kernels = [RBF(0.3), RBF(0.1)]
    both = chosen(kernels).n_functions
    assert chosen(kernels, shares=np.array([1.0, 0.005])).n_functions < 0.7 * both


def test_latents_of_very_different_ranges_use_different_frequencies():
    kernels = [RBF(0.15), RBF(1.5)]
    features, alone = chosen(kernels), chosen(kernels[:1])
    assert features.strides[0] > 1 == features.strides[1]
    assert features.n_functions < alone.n_functions + 60
    assert (features.truncated_variances(kernels) < 1e-3).all()


def test_no_more_features_are_chosen_than_allowed():
    kernel = Matern(0.1, nu=0.5)
    features = chosen([kernel], n_max=301)
    assert features.n_functions == 301
    assert 0.05 < features.truncated_variances([kernel])[0] < 1


def test_the_grid_has_room_for_shorter_length_scales():
    features, shorter = chosen([RBF(0.2)]), [RBF(0.17)]
    finer = choice(shorter).on_grid(features.grid, features.strides)
    left, better = (each.truncated_variances(shorter)[0] for each in (features, finer))
    assert left > 1e-3 >= better


def test_the_number_of_sums_is_limited():
    features = chosen([RBF(0.01)], n_max=10**7, P=3)
    assert np.prod(features.grid.doubled.shape) <= MAX_SUMS
    assert features.truncated_variances([RBF(0.01)])[0] > 0.5


def test_the_search_ends_where_no_frequency_carries_variance(monkeypatch):
    """A code for a missing value among the inputs makes a region of any size."""
    half_grid, most = resolution._half_grid, 2**14

    def watched(max_harmonic):
        assert np.prod(np.array(max_harmonic) + 1.0) < most
        return half_grid(max_harmonic)

    monkeypatch.setattr(resolution, "MAX_CANDIDATES", most)
    monkeypatch.setattr(resolution, "_half_grid", watched)
    assert chosen([RBF(1e-9)]).truncated_variances([RBF(1e-9)])[0] > 0.9
