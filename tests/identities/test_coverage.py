"""Intervals have their nominal coverage when the model and its parameters are true."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.gaussian_process.kernels import RBF

from tests.simulated import KERNELS, World, gram, known_model

pytestmark = pytest.mark.filterwarnings("ignore:Nothing was measured in")

CLUSTERS, SITES = 400, 4  # each of three known sites and one to predict, far from all others
FOUR = 4  # standard errors: a false alarm is about one run in ten thousand


NOISES = {
    "independent": np.array([[0.3, 0.0], [0.0, 0.1]]),
    "correlated": np.array([[0.3, 0.14], [0.14, 0.1]]),
}


@pytest.fixture(scope="module", params=NOISES.values(), ids=NOISES.keys())
def clusters(request):
    """Samples of the model in 400 clusters that are independent of each other."""
    rng = np.random.default_rng(7)
    W, noise = np.array([[[1.0], [0.8]], [[0.5], [-0.4]]]), request.param
    kernels = (RBF(0.3), KERNELS[1])
    X, Y = [], []
    for cluster in range(CLUSTERS):
        x = rng.uniform(size=(SITES, 2))
        blank = World(x, np.zeros((SITES, 2)), kernels, W, noise)
        root = np.linalg.cholesky(gram(blank))
        Y.append((root @ rng.normal(size=2 * SITES)).reshape(2, SITES).T)
        X.append(x + np.array([100.0 * cluster, 0.0]))
    X, Y = np.array(X), np.array(Y)
    known = Y[:, 1:].reshape(-1, 2).copy()
    known[rng.uniform(size=known.shape) < 0.3] = np.nan
    made = World(X[:, 1:].reshape(-1, 2), known, kernels, W, noise)
    return known_model(made, conditioning=6), X[:, 0], Y[:, 0]


def coverage(truth, mean, std, z):
    return np.mean(np.abs(truth - mean) <= z * std)


@pytest.mark.parametrize(("z", "level"), [(0.6745, 0.5), (1.96, 0.95)])
@pytest.mark.parametrize("d", [0, 1])
def test_intervals_cover_new_readings_at_their_level(clusters, d, z, level):
    """Within 4 standard errors of 400 samples."""
    model, x, y = clusters
    mean, std = model.predict(x, return_std=True)
    error = np.sqrt(level * (1 - level) / CLUSTERS)
    assert abs(coverage(y[:, d], mean[:, d], std[:, d], z) - level) < FOUR * error


def test_without_noise_they_would_not(clusters):
    model, x, y = clusters
    mean, std = model.predict(x, return_std=True, include_noise=False)
    error = np.sqrt(0.95 * 0.05 / CLUSTERS)
    assert coverage(y[:, 0], mean[:, 0], std[:, 0], 1.96) < 0.95 - FOUR * error


def test_they_do_when_another_output_is_observed_there(clusters):
    model, x, y = clusters
    observed = np.column_stack([np.full(CLUSTERS, np.nan), y[:, 1]])
    mean, std = model.predict(x, return_std=True, observed=observed)
    _, blind = model.predict(x, return_std=True)
    inside = coverage(y[:, 0], mean[:, 0], std[:, 0], 1.96)
    assert abs(inside - 0.95) < FOUR * np.sqrt(0.95 * 0.05 / CLUSTERS)
    assert std[:, 0].mean() < 0.95 * blind[:, 0].mean()  # and they are narrower


def test_errors_of_the_outputs_at_a_location_have_the_predicted_covariance(clusters):
    """Squared Mahalanobis distances are χ² with 2 degrees: mean 2, variance 4."""
    model, x, y = clusters
    mean, cov = model.predict(x, return_cov=True)
    error = y - mean
    squared = np.einsum("mi,mij,mj->m", error, np.linalg.inv(cov), error)
    assert abs(squared.mean() - 2) < FOUR * 2 / np.sqrt(CLUSTERS)
    crossed = np.einsum("mi,mij,mj->m", error * [1, -1], np.linalg.inv(cov), error * [1, -1])
    assert crossed.mean() > 2 + FOUR * 2 / np.sqrt(CLUSTERS)  # the sign of the covariance matters


def test_clusters_do_not_inform_each_other(clusters):
    """So that the 400 samples are independent, as the standard errors assume."""
    model, x, _ = clusters
    one, all_of_them = model.predict(x[:1]), model.predict(x)
    assert_array_equal(np.round(one - all_of_them[:1], 12), 0.0)
