"""Variograms against their definitions, pair by pair, and against data drawn from the model."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from simulated import known_model, world
from sklearn.gaussian_process.kernels import RBF, DotProduct

from emgpr.covariance import correlation_parts
from emgpr.observations import Observations
from emgpr.variograms import Lags, Structure, empirical, kind_of


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
        assert_allclose(np.transpose(empirical(made.seen, lags, a, b)), expected, rtol=1e-12)


def test_pseudo_cross_variograms_are_their_definition(made):
    lags = Lags.between(made.X, 6)
    y, z = made.Y[:, 0], made.Y[:, 2]
    expected = pair_by_pair(
        made.X, lambda i, j: [0.5 * (y[i] - z[j]) ** 2, 0.5 * (y[j] - z[i]) ** 2], lags.edges
    )
    assert_allclose(np.transpose(empirical(made.seen, lags, 0, 2, "pseudo")), expected, rtol=1e-12)


def test_bins_hold_all_pairs_up_to_the_reach_and_empty_ones_are_nan():
    x = np.array([[0.0], [0.0], [1.0], [4.0]])
    table = Observations.from_table(x, np.arange(4.0)[:, None])
    lag, value, n = empirical(table, Lags.between(x, 4, max_lag=4.0), 0, 0)
    assert n.tolist() == [3, 0, 1, 2]  # twice at the same place: in the first
    assert np.isnan([lag[1], value[1]]).all()
    assert lag[2] == 3.0


@pytest.mark.parametrize("given", [{"n_lags": 0}, {"max_lag": 0.0}, {"max_lag": -1.0}])
def test_no_bins_are_refused(rng, given):
    with pytest.raises(ValueError, match="at least one bin"):
        Lags.between(rng.uniform(size=(5, 2)), **given)


def test_one_place_has_no_variogram():
    with pytest.raises(ValueError, match="sites that lie apart"):
        Lags.between(np.zeros((3, 2)))


def test_the_model_expects_the_falls_of_its_kernels(rng):
    x = np.arange(6.0)[:, None]
    lags = Lags.between(x, 5, max_lag=5.0)  # a bin a lag: 1, 2, …
    W = rng.normal(size=(2, 3, 2))
    B, noise = W @ W.swapaxes(1, 2), np.array([[1.0, 0.2, 0], [0.2, 2, 0], [0, 0, 3]])
    kernels = [RBF(1.5), RBF(4.0)]
    structure = Structure.of(kernels, x, lags)
    h = np.arange(1.0, 6.0)
    assert_allclose(structure.lag, h)
    k = np.stack([np.exp(-0.5 * (h / kernel.length_scale) ** 2) for kernel in kernels])
    cross = B[:, 0, 1] @ (1 - k) + 0.2
    assert_allclose(structure.expected(B, noise, 0, 1), cross, rtol=1e-12)
    S = B.sum(axis=0) + noise
    pseudo = 0.5 * (S[0, 0] + S[1, 1]) - B[:, 0, 1] @ k
    assert_allclose(structure.expected(B, noise, 0, 1, "pseudo"), pseudo, rtol=1e-12)
    own = structure.expected(B, noise, 2, 2), structure.expected(B, noise, 2, 2, "pseudo")
    assert_allclose(*own, rtol=1e-12)


def test_kernels_that_are_not_stationary_too(rng):
    """f(x) = s + x: half the squared difference of two sites is expected to be half h²."""
    x = rng.uniform(size=(9, 1))
    lags = Lags.between(x, 4)
    structure = Structure.of([DotProduct(0.7)], x, lags)
    assert_allclose(structure.fall[0], lags.mean(0.5 * lags.distance**2)[1], rtol=1e-9)


@pytest.mark.parametrize("kind", ["cross", "pseudo"])
def test_data_drawn_from_the_model_have_the_variogram_it_expects(rng, kind):
    """Mean of 300 draws, within 4.5 standard errors in each of 24 bins: a false alarm in 6000."""
    first = world(rng, N=40, Q=2, correlated=True)
    lags = Lags.between(first.X, 8)
    structure = Structure.of(first.kernels, first.X, lags)
    B = first.W @ first.W.swapaxes(1, 2)
    K = np.stack([kernel(first.X) for kernel in first.kernels])
    cov = np.einsum("qlm,qij->limj", B, K) + np.einsum("lm,ij->limj", first.noise, np.eye(40))
    root = np.linalg.cholesky(cov.reshape(120, 120))
    pairs = [(0, 0), (0, 1), (2, 1)]
    found = np.array(
        [
            [empirical(first.table(Y).seen, lags, *pair, kind)[1] for pair in pairs]
            for Y in ((root @ rng.normal(size=120)).reshape(3, 40).T for _ in range(300))
        ]
    )
    expected = [structure.expected(B, first.noise, *pair, kind) for pair in pairs]
    error = found.std(axis=0, ddof=1) / np.sqrt(300)
    assert (np.abs(found.mean(axis=0) - expected) < 4.5 * error).all()


def test_outputs_that_share_hardly_a_site_get_the_pseudo_kind(rng):
    Y = rng.normal(size=(60, 2))
    Y[:30, 0], Y[40:, 1] = np.nan, np.nan
    table = Observations.from_table(rng.uniform(size=(60, 2)), Y)
    assert (kind_of(table, 0, 0), kind_of(table, 0, 1)) == ("cross", "pseudo")
    Y[20:30, 0] = 0.0
    assert kind_of(Observations.from_table(table.x, Y), 0, 1) == "cross"


def test_the_estimator_gives_them_side_by_side(rng):
    made = world(rng, N=40, missing=0.1)
    model = known_model(made)
    frame = model.variograms([("1", "1"), ("0", "2")], n_lags=5)
    assert frame.columns.tolist() == [
        "first", "second", "kind", "lag", "pairs", "empirical", "model",
    ]  # fmt: skip
    assert len(frame) == 10
    lags = Lags.between(made.X, 5)
    lag, value, n = empirical(made.seen, lags, 0, 2)
    own = frame[frame["second"] == "2"]
    assert_allclose(own[["lag", "empirical", "pairs"]], np.transpose([lag, value, n]))
    structure = Structure.of(made.kernels, made.X, lags)
    B = made.W @ made.W.swapaxes(1, 2)
    assert_allclose(own["model"], structure.expected(B, made.noise, 0, 2))
    assert len(model.variograms()) == 3 * 15
    with pytest.raises(ValueError, match="'Cd', which is no output"):
        model.variograms([("0", "Cd")])
    with pytest.raises(ValueError, match="kind='both'"):
        model.variograms(kind="both")


def test_parts_of_correlations_add_up(rng):
    made = world(rng)
    parts = known_model(made).signal_correlations()
    cov = np.einsum("qdj,qej->de", made.W, made.W)
    scale = np.sqrt(np.diag(cov))
    assert_allclose(parts.sum(axis=0), cov / np.outer(scale, scale), rtol=1e-12)


def test_an_output_without_a_signal_has_no_correlation():
    parts = correlation_parts(np.diag([1.0, 0.0])[None], np.ones(1))
    assert parts[0, 0, 0] == 1
    assert np.isnan(parts[0, 1]).all()
