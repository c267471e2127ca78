"""Intervals cover at their stated rate when the model is true and its parameters are known."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from simulated import KERNELS, World, gram, known_model
from sklearn.gaussian_process.kernels import RBF

pytestmark = pytest.mark.filterwarnings("ignore:Nothing was read in")

CLUSTERS, SITES = 400, 4  # of three known sites and one to predict, too far apart to interact
FOUR = 4  # standard errors: a false alarm is about one run in ten thousand


NOISES = {
    "independent": np.array([[0.3, 0.0], [0.0, 0.1]]),
    "correlated": np.array([[0.3, 0.14], [0.14, 0.1]]),
}


@pytest.fixture(scope="module", params=NOISES.values(), ids=NOISES.keys())
def clusters(request):
    """Draws from the model at 400 places that know nothing of each other."""
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
def test_intervals_hold_new_readings_as_often_as_they_say(clusters, d, z, level):
    """Within 4 standard errors of 400 draws."""
    model, x, y = clusters
    mean, std = model.predict(x, return_std=True)
    error = np.sqrt(level * (1 - level) / CLUSTERS)
    assert abs(coverage(y[:, d], mean[:, d], std[:, d], z) - level) < FOUR * error


def test_the_noise_forgotten_would_be_noticed(clusters):
    model, x, y = clusters
    mean, std = model.predict(x, return_std=True, include_noise=False)
    error = np.sqrt(0.95 * 0.05 / CLUSTERS)
    assert coverage(y[:, 0], mean[:, 0], std[:, 0], 1.96) < 0.95 - FOUR * error


def test_they_do_when_another_output_is_already_known_there(clusters):
    model, x, y = clusters
    observed = np.column_stack([np.full(CLUSTERS, np.nan), y[:, 1]])
    mean, std = model.predict(x, return_std=True, observed=observed)
    blind = model.predict(x, return_std=True)
    inside = coverage(y[:, 0], mean[:, 0], std[:, 0], 1.96)
    assert abs(inside - 0.95) < FOUR * np.sqrt(0.95 * 0.05 / CLUSTERS)
    assert std[:, 0].mean() < 0.95 * blind[1][:, 0].mean()  # and they are narrower


def test_outputs_of_a_site_err_together_as_the_covariance_says(clusters):
    """Squared Mahalanobis distances are χ² with 2 degrees: mean 2, variance 4."""
    model, x, y = clusters
    mean, cov = model.predict(x, return_cov=True)
    apart = y - mean
    squared = np.einsum("mi,mij,mj->m", apart, np.linalg.inv(cov), apart)
    assert abs(squared.mean() - 2) < FOUR * 2 / np.sqrt(CLUSTERS)
    crossed = np.einsum("mi,mij,mj->m", apart * [1, -1], np.linalg.inv(cov), apart * [1, -1])
    assert crossed.mean() > 2 + FOUR * 2 / np.sqrt(CLUSTERS)  # the sign of the covariance matters


def test_clusters_do_not_interact(clusters):
    """Which makes the 400 draws independent, as the standard errors assume."""
    model, x, _ = clusters
    one, all_of_them = model.predict(x[:1]), model.predict(x)
    assert_array_equal(np.round(one - all_of_them[:1], 12), 0.0)
