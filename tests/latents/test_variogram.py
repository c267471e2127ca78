"""Step 1 by weighted least squares on the variogram."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from emgpr.latents import Exact, Variogram
from tests.finite_differences import assert_is_the_gradient


def drawn(draw, *given, **settings):
    x, Y = draw(*given, **settings)
    return x, Y[:, 0]


@pytest.mark.parametrize("kernel", [RBF(0.2), ConstantKernel(1.4) * Matern([0.2, 0.5], nu=1.5)])
def test_the_gradient_equals_finite_differences(draw, kernel):
    x, y = drawn(draw, RBF(0.2), 0.1, N=60)
    misfit, first = Variogram()._misfit(x, y, kernel), np.zeros(1, int)
    row = np.append(kernel.theta, np.log(0.2))
    _, gradient = misfit(row[None], first)
    assert_is_the_gradient(gradient[0], lambda p: misfit(p[None], first)[0][0], row)


def test_the_misfit_has_cressies_weights(draw):
    x, y = drawn(draw, RBF(0.2), 0.1, N=50)
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


def test_the_fit_is_near_the_maximum_of_the_likelihood(draw):
    x, y = drawn(draw, Matern(0.25, nu=1.5), 0.2, N=300)
    ours, theirs = (learner.learn(x, y, Matern(nu=1.5)) for learner in (Variogram(), Exact()))
    assert_allclose(ours.kernel.length_scale, theirs.kernel.length_scale, rtol=0.5)
    assert_allclose(ours.noise, theirs.noise, rtol=0.3)
    assert theirs.log_likelihood - 15 < ours.log_likelihood <= theirs.log_likelihood + 1e-3


def test_length_scales_of_columns_are_distinguished(draw):
    x, y = drawn(draw, RBF([0.1, 0.6]), 0.05, N=250)
    found = Variogram(max_iter=30).learn(x, y, RBF([1.0, 1.0])).kernel.length_scale
    assert found[1] > 2 * found[0]


def test_the_noise_is_found_from_some_of_many_sites(draw):
    """Short distances must occur: among 200 of 2000 sites at random, hardly any do."""
    x, y = drawn(draw, Matern(0.1, nu=1.5), 0.1, N=2000)
    latent = Variogram(n_sites=200).learn(x, y, Matern(nu=1.5))
    assert_allclose(latent.noise, 0.1 / 1.1, rtol=0.5)
    assert latent.n_readings == 2000  # its likelihood is of the batches, up to eight of 300


def test_settings_of_the_kernel_are_kept(draw):
    x, y = drawn(draw, RBF(0.2), 0.1, N=300)
    latent = Variogram().learn(x, y, RBF(0.4, "fixed") + WhiteKernel(0.1, (0.2, 0.3)))
    assert latent.kernel == RBF(0.4, "fixed")
    assert 0.2 - 1e-9 <= latent.noise <= 0.3 + 1e-9
    with pytest.raises(ValueError, match="only noise"):
        Variogram().learn(x, y, WhiteKernel())


def test_white_noise_is_reported(rng):
    x = rng.uniform(size=(200, 2))
    y = rng.normal(size=200)
    latent = Variogram().learn(x, (y - y.mean()) / y.std(), RBF())
    assert latent.message
