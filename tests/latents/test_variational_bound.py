"""The bound from mini-batches, against formulas written out in full, VFE and the exact GP."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from emgpr.latents import VFE
from emgpr.latents.inducing import inducing_points
from emgpr.latents.inducing_sums import RELATIVE_JITTER, factorise_inner
from emgpr.latents.variational_bound import Sites, batch_bound, whitened_posterior
from emgpr.observations import Observations
from tests.finite_differences import assert_is_the_gradient

N, M, NOISE = 70, 18, 0.08
KERNELS = [
    RBF(0.3),
    ConstantKernel(1.7) * Matern([0.4, 0.8], nu=1.5) + RBF(0.05, "fixed"),
    DotProduct(0.5) + Matern(0.3, nu=0.5),  # not stationary, and not implemented here
]

each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)


@pytest.fixture
def data(rng):
    x = rng.uniform(size=(N, 2))
    return x, np.sin(6 * x[:, 0]) + 0.3 * rng.normal(size=N)


def params(kernel, noise=NOISE):
    return np.append(kernel.theta, np.log(noise))


def bound(kernel, x, y, sites, n=N, m=M, at=None):
    """The estimates from readings (x, y), with inducing points among all sites `at`."""
    points = inducing_points(x if at is None else at, m)
    inner = factorise_inner(kernel, params(kernel), points)
    return batch_bound(inner, whitened_posterior(inner, sites), x, y, n)


def best_sites(kernel, x, y, m=M):
    """The natural parameters after a step of length 1 with all readings."""
    nothing = Sites.empty(min(m, len(x)))
    return nothing.towards(bound(kernel, x, y, nothing, m=m).sites, 1.0)


def some_sites(kernel, data):
    """Parameters from the first 20 readings, so that q(u) is not the best."""
    x, y = data
    return bound(kernel, x[:20], y[:20], Sites.empty(M), at=x).sites


def vfe(kernel, x, y, m=M):
    objective = VFE(m).objective(Observations.of_one_output(x, y), kernel, np.zeros(1, int))
    value, gradient = objective(params(kernel)[None], np.zeros(1, int))
    return -value[0], -gradient[0]


def written_out(kernel, x, y, points, m, S, noise):
    """The bound for q(u) = N(m, S), with every matrix formed."""
    K = kernel(points)
    K += RELATIVE_JITTER * np.mean(np.diag(K)) * np.eye(len(K))
    P = np.linalg.solve(K, kernel(points, x)).T
    variances = np.diag(kernel(x) - P @ K @ P.T + P @ S @ P.T)
    fit = -0.5 * np.sum(np.log(2 * np.pi * noise) + ((y - P @ m) ** 2 + variances) / noise)
    ratio = np.linalg.slogdet(K)[1] - np.linalg.slogdet(S)[1]
    divergence = np.trace(np.linalg.solve(K, S)) + m @ np.linalg.solve(K, m) - len(m) + ratio
    return fit - 0.5 * divergence


@each_kernel
def test_the_bound_and_its_gradient_are_those_of_the_formula(data, kernel):
    """Also for a q(u) that is not the best one; it is fixed while parameters change."""
    x, y = data
    points, sites = inducing_points(x, M), some_sites(kernel, data)
    found = bound(kernel, x, y, sites)
    inner = factorise_inner(kernel, params(kernel), points)
    q = whitened_posterior(inner, sites)
    m, S = inner.L @ q.mu, inner.L @ q.S @ inner.L.T

    def formula(p):
        noise = np.exp(p[-1])
        return written_out(kernel.clone_with_theta(p[:-1]), x, y, points, m, S, noise)

    assert_allclose(found.value, formula(params(kernel)), rtol=1e-7)
    assert_is_the_gradient(found.gradient, formula, params(kernel), rtol=1e-4)


@each_kernel
def test_the_best_distribution_gives_the_bound_and_the_gradient_of_vfe(data, kernel):
    x, y = data
    found = bound(kernel, x, y, best_sites(kernel, x, y))
    value, gradient = vfe(kernel, x, y)
    assert_allclose(found.value, value, rtol=1e-7)
    assert_allclose(found.gradient, gradient, rtol=1e-4, atol=1e-4)


@each_kernel
def test_no_distribution_gives_more_than_vfe_which_is_below_the_exact_likelihood(data, kernel):
    x, y = data
    exact = multivariate_normal(np.zeros(N), kernel(x) + NOISE * np.eye(N)).logpdf(y)
    highest = vfe(kernel, x, y)[0]
    assert highest < exact
    best, start = best_sites(kernel, x, y), some_sites(kernel, data)
    path = [bound(kernel, x, y, start.towards(best, rho)).value for rho in (0.0, 0.3, 0.9, 1.0)]
    assert np.all(np.diff(path) > 0)
    assert bound(kernel, x, y, Sites.empty(M)).value < path[-1] <= highest + 1e-6


@each_kernel
def test_a_point_at_every_site_gives_the_exact_likelihood(data, kernel):
    x, y = data
    exact = multivariate_normal(np.zeros(N), kernel(x) + NOISE * np.eye(N)).logpdf(y)
    found = bound(kernel, x, y, best_sites(kernel, x, y, m=N), m=N)
    assert_allclose(found.value, exact, rtol=1e-5)


@each_kernel
def test_estimates_from_batches_are_unbiased(data, kernel):
    """Their mean over the batches of a partition is the value for all readings."""
    x, y = data
    sites = some_sites(kernel, data)
    whole = bound(kernel, x, y, sites)
    batches = np.arange(N).reshape(7, 10)
    parts = [bound(kernel, x[batch], y[batch], sites, at=x) for batch in batches]
    assert_allclose(np.mean([part.value for part in parts]), whole.value)
    assert_allclose(
        np.mean([part.gradient for part in parts], axis=0), whole.gradient, rtol=1e-6, atol=1e-6
    )
    for name in ("A", "b"):
        mean = np.mean([getattr(part.sites, name) for part in parts], axis=0)
        expected = getattr(whole.sites, name)
        assert_allclose(mean, expected, atol=1e-8 * np.abs(expected).max())
