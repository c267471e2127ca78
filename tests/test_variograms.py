"""Variograms against their definitions, pair by pair, and against samples of the model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, DotProduct

from emgpr.observations import Observations
from emgpr.variograms import Lags, ModelVariogram, default_kind, empirical_variogram, far_ratio
from tests.simulated import world


def pair_by_pair(X, values, edges):
    """Mean distance, mean of values(i, j) and number of pairs in each bin, by loops."""
    found = [[] for _ in edges[1:]]
    for i in range(len(X)):
        for j in range(i):
            h = np.linalg.norm(X[i] - X[j])
            for bin, low, high in zip(found, edges, edges[1:], strict=False):
                if low < h <= high:
                    bin += [(h, value) for value in values(i, j) if not np.isnan(value)]
    return [(*np.mean(bin, axis=0), len(bin)) for bin in found]


@pytest.fixture
def made(rng):
    return world(rng, N=40, missing=0.2, correlated=True)


def test_cross_variograms_are_their_definition(made):
    lags = Lags.between(made.X, 6)
    assert lags.edges[-1] == pytest.approx(0.5 * lags.distance.max())
    for a, b in [(0, 0), (0, 2), (2, 1)]:
        y, z = made.Y[:, a], made.Y[:, b]
        expected = pair_by_pair(
            made.X, lambda i, j, y=y, z=z: [0.5 * (y[i] - y[j]) * (z[i] - z[j])], lags.edges
        )
        found = empirical_variogram(made.observed, lags, a, b)
        assert_allclose(np.transpose(found), expected, rtol=1e-12)


def test_pseudo_cross_variograms_are_their_definition(made):
    lags = Lags.between(made.X, 6)
    y, z = made.Y[:, 0], made.Y[:, 2]
    expected = pair_by_pair(
        made.X, lambda i, j: [0.5 * (y[i] - z[j]) ** 2, 0.5 * (y[j] - z[i]) ** 2], lags.edges
    )
    assert_allclose(
        np.transpose(empirical_variogram(made.observed, lags, 0, 2, "pseudo")), expected, rtol=1e-12
    )


def test_bins_hold_all_pairs_up_to_the_largest_lag_and_empty_ones_are_nan():
    x = np.array([[0.0], [0.0], [1.0], [4.0]])
    table = Observations.from_table(x, np.arange(4.0)[:, None])
    lag, value, n = empirical_variogram(table, Lags.between(x, 4, max_lag=4.0), 0, 0)
    assert n.tolist() == [3, 0, 1, 2]  # sites at one location: in the first bin
    assert np.isnan([lag[1], value[1]]).all()
    assert lag[2] == 3.0


@pytest.mark.parametrize("given", [{"n_lags": 0}, {"max_lag": 0.0}, {"max_lag": -1.0}])
def test_a_variogram_without_bins_is_rejected(rng, given):
    with pytest.raises(ValueError, match="at least one bin"):
        Lags.between(rng.uniform(size=(5, 2)), **given)


def test_a_single_location_has_no_variogram():
    with pytest.raises(ValueError, match="sites at different locations"):
        Lags.between(np.zeros((3, 2)))


def test_the_model_expects_the_semivariances_of_its_kernels(rng):
    x = np.arange(6.0)[:, None]
    lags = Lags.between(x, 5, max_lag=5.0)  # one lag per bin: 1, 2, …
    W = rng.normal(size=(2, 3, 2))
    B, noise = W @ W.swapaxes(1, 2), np.array([[1.0, 0.2, 0], [0.2, 2, 0], [0, 0, 3]])
    kernels = [RBF(1.5), RBF(4.0)]
    model = ModelVariogram.from_kernels(kernels, x, lags)
    h = np.arange(1.0, 6.0)
    assert_allclose(model.lag, h)
    k = np.stack([np.exp(-0.5 * (h / kernel.length_scale) ** 2) for kernel in kernels])
    cross = B[:, 0, 1] @ (1 - k) + 0.2
    assert_allclose(model.expected(B, noise, 0, 1), cross, rtol=1e-12)
    S = B.sum(axis=0) + noise
    pseudo = 0.5 * (S[0, 0] + S[1, 1]) - B[:, 0, 1] @ k
    assert_allclose(model.expected(B, noise, 0, 1, "pseudo"), pseudo, rtol=1e-12)
    own = model.expected(B, noise, 2, 2), model.expected(B, noise, 2, 2, "pseudo")
    assert_allclose(*own, rtol=1e-12)


def test_kernels_need_not_be_stationary(rng):
    """f(x) = s + x: half the squared difference of two sites is expected to be half h²."""
    x = rng.uniform(size=(9, 1))
    lags = Lags.between(x, 4)
    model = ModelVariogram.from_kernels([DotProduct(0.7)], x, lags)
    assert_allclose(model.semivariance[0], lags.mean(0.5 * lags.distance**2)[1], rtol=1e-9)


@pytest.mark.parametrize("kind", ["cross", "pseudo"])
def test_samples_of_the_model_have_the_variogram_it_expects(rng, kind):
    """Mean of 300 samples, within 4.5 standard errors in 24 bins: one false alarm in 6000 runs."""
    first = world(rng, N=40, Q=2, correlated=True)
    lags = Lags.between(first.X, 8)
    model = ModelVariogram.from_kernels(first.kernels, first.X, lags)
    B = first.W @ first.W.swapaxes(1, 2)
    K = np.stack([kernel(first.X) for kernel in first.kernels])
    cov = np.einsum("qlm,qij->limj", B, K) + np.einsum("lm,ij->limj", first.noise, np.eye(40))
    root = np.linalg.cholesky(cov.reshape(120, 120))
    pairs = [(0, 0), (0, 1), (2, 1)]
    found = np.array(
        [
            [empirical_variogram(first.table(Y).observed, lags, *pair, kind)[1] for pair in pairs]
            for Y in ((root @ rng.normal(size=120)).reshape(3, 40).T for _ in range(300))
        ]
    )
    expected = [model.expected(B, first.noise, *pair, kind) for pair in pairs]
    error = found.std(axis=0, ddof=1) / np.sqrt(300)
    assert (np.abs(found.mean(axis=0) - expected) < 4.5 * error).all()


def test_outputs_with_few_common_sites_get_the_pseudo_cross_variogram(rng):
    Y = rng.normal(size=(60, 2))
    Y[:30, 0], Y[40:, 1] = np.nan, np.nan
    table = Observations.from_table(rng.uniform(size=(60, 2)), Y)
    assert (default_kind(table, 0, 0), default_kind(table, 0, 1)) == ("cross", "pseudo")
    Y[20:30, 0] = 0.0
    assert default_kind(Observations.from_table(table.x, Y), 0, 1) == "cross"


def test_bins_without_pairs_do_not_enter_the_ratio_at_large_lags():
    pairs = np.array([50, 50, 300, 0])
    empirical, model = np.array([1.0, 1.0, 1.0, np.nan]), np.array([9.0, 9.0, 3.0, np.nan])
    assert far_ratio(pairs, empirical, model) == 3.0
    assert np.isnan(far_ratio(pairs, 0 * empirical, model))
