"""Step 1 by weighted least squares on the variogram."""

from itertools import pairwise

import numpy as np
import pytest
from finite_differences import assert_is_the_gradient
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from emgpr.latents import Exact, Variogram
from emgpr.observations import Observations
from emgpr.variograms import Lags, Structure, empirical


def drawn(rng, kernel, noise, N=300):
    x = rng.uniform(size=(N, 2))
    y = np.linalg.cholesky(kernel(x) + noise * np.eye(N)) @ rng.normal(size=N)
    return x, (y - y.mean()) / y.std()


@pytest.mark.parametrize("kernel", [RBF(0.2), ConstantKernel(1.4) * Matern([0.2, 0.5], nu=1.5)])
def test_the_gradient_is_that_of_differences(rng, kernel):
    x, y = drawn(rng, RBF(0.2), 0.1, N=60)
    misfit, first = Variogram()._misfit(x, y, kernel), np.zeros(1, int)
    row = np.append(kernel.theta, np.log(0.2))
    _, gradient = misfit(row[None], first)
    assert_is_the_gradient(gradient[0], lambda p: misfit(p[None], first)[0][0], row)


def test_the_misfit_is_cressies(rng):
    x, y = drawn(rng, RBF(0.2), 0.1, N=50)
    learner, kernel = Variogram(n_lags=6), Matern(0.3, nu=0.5)
    value = learner._misfit(x, y, kernel)(np.log([[0.3, 0.15]]), np.zeros(1, int))[0][0]
    gaps = np.linalg.norm(x[:, None] - x, axis=-1)
    near = np.median((gaps + np.diag(np.full(50, np.inf))).min(axis=1))
    far = np.linalg.norm(np.ptp(x, axis=0))
    edges = np.append(0.0, np.geomspace(near, 0.5 * far, 6))
    expected = 0.0
    for low, high in pairwise(edges):
        i, j = np.nonzero(np.triu((gaps > low) & (gaps <= high), k=1))
        shown = np.mean(0.5 * (y[i] - y[j]) ** 2)
        model = np.mean(1 - kernel(x)[i, j]) + 0.15
        expected += len(i) * (shown / model - 1) ** 2
    assert_allclose(value, expected)


def test_what_it_finds_is_near_the_maximum_of_the_likelihood(rng):
    x, y = drawn(rng, Matern(0.25, nu=1.5), 0.2)
    ours, theirs = (learner.learn(x, y, Matern(nu=1.5)) for learner in (Variogram(), Exact()))
    assert_allclose(ours.kernel.length_scale, theirs.kernel.length_scale, rtol=0.5)
    assert_allclose(ours.noise, theirs.noise, rtol=0.3)
    assert theirs.log_likelihood - 15 < ours.log_likelihood <= theirs.log_likelihood + 1e-3


def test_length_scales_of_columns_are_told_apart(rng):
    x, y = drawn(rng, RBF([0.1, 0.6]), 0.05, N=500)
    found = Variogram().learn(x, y, RBF([1.0, 1.0])).kernel.length_scale
    assert found[1] > 2 * found[0]


def test_of_many_sites_some_are_looked_at_and_the_noise_is_still_found(rng):
    """Short distances must show: among 200 of 2000 sites at random, hardly any are."""
    x, y = drawn(rng, Matern(0.1, nu=1.5), 0.1, N=2000)
    latent = Variogram(n_sites=200).learn(x, y, Matern(nu=1.5))
    assert_allclose(latent.noise, 0.1 / 1.1, rtol=0.5)
    assert latent.n_readings == 2000  # its likelihood is of the batches, up to eight of 300


def test_what_the_user_set_is_kept(rng):
    x, y = drawn(rng, RBF(0.2), 0.1)
    latent = Variogram().learn(x, y, RBF(0.4, "fixed") + WhiteKernel(0.1, (0.2, 0.3)))
    assert latent.kernel == RBF(0.4, "fixed")
    assert 0.2 - 1e-9 <= latent.noise <= 0.3 + 1e-9
    with pytest.raises(ValueError, match="nothing but noise"):
        Variogram().learn(x, y, WhiteKernel())


def test_white_noise_is_told(rng):
    x = rng.uniform(size=(200, 2))
    y = rng.normal(size=200)
    latent = Variogram().learn(x, (y - y.mean()) / y.std(), RBF())
    assert latent.trouble


def test_bins_between_given_edges_are_those_of_equal_width(rng):
    x = rng.uniform(size=(30, 2))
    lags = Lags.between(x, 5)
    again = Lags.binned(30, lags.distance, lags.edges)
    assert np.array_equal(lags.bin, again.bin)
    table = Observations.from_table(x, rng.normal(size=(30, 1)))
    assert np.array_equal(empirical(table, lags, 0, 0)[1], empirical(table, again, 0, 0)[1])
    assert Structure.of([RBF()], x, again).fall.shape == (1, 5)
