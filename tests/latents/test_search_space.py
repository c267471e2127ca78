"""The search space of step 1: starts and bounds in the units of the data."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial import KDTree
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from emgpr.latents import SiteDistances, nearest_pairs, search_space, typical_distances
from emgpr.observations import Observations


def search(kernel, X, white=None, n_starts=5):
    return search_space(kernel, white, SiteDistances(X), n_starts, np.random.default_rng(0))


@pytest.fixture
def X(rng):
    return rng.uniform(0, 100, size=(50, 2))


def test_scikit_learns_default_bounds_are_replaced_by_those_of_the_data(X):
    space = search(RBF(), X)
    low, high = np.exp(space.bounds[0])
    gaps = np.linalg.norm(X[:, None] - X[None], axis=-1) + np.diag(np.full(50, np.inf))
    assert_allclose(low, 0.1 * np.median(gaps.min(axis=0)))
    assert_allclose(high, 20 * np.linalg.norm(np.ptp(X, axis=0)))


def test_starts_lie_inside_their_bounds_and_spread_over_the_distances(X):
    space = search(RBF(), X)
    scales = np.exp(space.starts[:, 0])
    assert np.all((space.starts >= space.bounds[:, 0]) & (space.starts <= space.bounds[:, 1]))
    assert len(np.unique(scales)) == 5
    assert len(space.starts) == 5 * 3  # each with three levels of noise
    assert scales.max() / scales.min() > 4


def test_two_length_scales_of_one_kernel_start_apart(X):
    space = search(RBF() + Matern(), X)
    assert np.abs(space.starts[:, 0] - space.starts[:, 1]).min() > 0.1
    assert space.names == ("k1__length_scale", "k2__length_scale", "noise")


def test_a_length_scale_for_each_column_has_the_unit_of_the_column(X):
    units = np.array([1e-3, 1e5])
    plain, scaled = search(RBF([1.0, 1.0]), X), search(RBF([1.0, 1.0]), X * units)
    assert_allclose(scaled.bounds[:2] - plain.bounds[:2], np.log(units)[:, None] + [0, 0])
    assert_allclose((scaled.starts - plain.starts)[:, :2], np.tile(np.log(units), (15, 1)))
    assert scaled.names[:2] == ("length_scale[0]", "length_scale[1]")


def test_settings_of_the_kernel_are_kept(X):
    kernel = ConstantKernel(3.0, (1.0, 4.0)) * RBF(1.0, (0.5, 2.0)) * RBF(7.0, "fixed")
    space = search(kernel, X)
    assert_allclose(np.exp(space.bounds[:2]), [[1.0, 4.0], [0.5, 2.0]])
    assert len(space.bounds) == 3
    assert_allclose(np.exp(space.starts[:, 0]), 3.0)


def test_the_users_noise_is_one_of_the_starts(X):
    noises = np.exp(search(RBF(), X, WhiteKernel(0.07)).starts[:, -1])
    assert np.isclose(noises, 0.07).any()
    assert len(np.unique(noises.round(12))) == 4


def test_bounds_of_the_noise_are_kept(X):
    space = search(RBF(), X, WhiteKernel(0.3, (0.2, 0.4)))
    assert_allclose(np.exp(space.bounds[-1]), [0.2, 0.4])
    fixed = search(RBF(), X, WhiteKernel(0.3, "fixed"))
    assert_allclose(np.exp(fixed.bounds[-1]), 0.3)
    assert_allclose(np.exp(fixed.starts[:, -1]), 0.3)


@pytest.mark.parametrize(
    "X", [np.zeros((4, 2)), np.ones((1, 2)), np.array([[0.0, 5.0], [1.0, 5.0]])]
)
@pytest.mark.parametrize("kernel", [RBF(), RBF([1.0, 1.0])])
def test_sites_without_extent_still_give_a_search(X, kernel):
    space = search(kernel, X)
    assert np.isfinite(space.starts).all()
    assert np.isfinite(space.bounds).all()
    assert np.all(space.bounds[:, 0] < space.bounds[:, 1])


def test_of_many_sites_a_sample_has_its_nearest_neighbours(rng, monkeypatch):
    x = rng.uniform(size=(3000, 2))
    every, nearest = nearest_pairs(x)
    monkeypatch.setattr(sys.modules["emgpr.latents.search_space"], "MAX_PAIRS", 500)
    some, neighbours = nearest_pairs(x)
    assert len(some) == 500
    expected = KDTree(x).query(some, k=2)[0][:, 1]
    assert_allclose(np.linalg.norm(some - neighbours, axis=1), expected)
    assert_allclose(
        np.median(KDTree(x).query(x, k=2)[0][:, 1]),
        np.median(np.linalg.norm(every - nearest, axis=1)),
    )


@pytest.mark.parametrize("times", [2, 30])
def test_the_nearest_other_site_is_not_a_repetition(rng, monkeypatch, times):
    monkeypatch.setattr(sys.modules["emgpr.latents.search_space"], "MAX_PAIRS", 100)
    sites = rng.uniform(size=(40, 1))
    some, neighbours = nearest_pairs(np.repeat(sites, times, axis=0))
    assert np.all(np.abs(some - neighbours) > 0)


def test_a_single_location_has_no_nearest_other():
    assert len(nearest_pairs(np.zeros((4, 2)))[0]) == 0


@pytest.mark.parametrize("n_pairs", [5000, 50])
def test_distances_of_a_table_are_computed_once(rng, monkeypatch, n_pairs):
    module = sys.modules["emgpr.latents.search_space"]
    n_calls = []

    def counted(x, tree):
        n_calls.append(len(x))
        return nearest_pairs(x, tree)

    monkeypatch.setattr(module, "nearest_pairs", counted)
    monkeypatch.setattr(module, "MAX_PAIRS", n_pairs)
    table = Observations.from_table(rng.uniform(size=(60, 2)) + 9.0, rng.normal(size=(60, 3)))
    scales = module.column_scales(table.x)
    for one in (table, table.select_outputs(np.array([2, 0]))):
        distances = SiteDistances.in_table(one)
        assert_allclose(distances.typical, typical_distances(table.x))
        assert_allclose(distances.typical_relative, typical_distances(table.x / scales))
    assert len(n_calls) == 6  # two of them by the object
