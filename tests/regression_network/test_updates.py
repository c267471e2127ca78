"""Both blocks: against dense algebra, gradients against finite differences, a bound that grows."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.observations import Observations
from emgpr.regression_network import NetworkKernels, NetworkProblem, WeightBasis
from emgpr.regression_network.nodes import NodePosterior
from emgpr.regression_network.starts import starting_state
from emgpr.regression_network.terms import SiteTerms
from emgpr.regression_network.updates import (
    node_objective,
    node_posterior,
    update_nodes,
    update_weights,
    weight_objective,
    weight_posterior,
)
from emgpr.regression_network.weights import WeightPosterior
from tests.regression_network.networks import some_state, some_table


def a_problem(rng, **settings):
    kernels = NetworkKernels(Matern(nu=1.5), RBF())
    return NetworkProblem(some_table(rng), kernels, **settings)


def dense(K, terms):
    """Covariance, mean and log integral by inversion, for variables ordered by node."""
    Q, N = K.shape[:2]
    prior, precision = np.zeros((Q, N, Q, N)), np.zeros((Q, N, Q, N))
    for q in range(Q):
        prior[q, :, q] = K[q]
        for p in range(Q):
            precision[q, :, p] = np.diag(terms.precision[:, q, p])
    prior, precision = (part.reshape(Q * N, Q * N) for part in (prior, precision))
    cov = np.linalg.inv(np.linalg.inv(prior) + precision)
    b = terms.linear.T.ravel()
    log_z = 0.5 * b @ cov @ b - 0.5 * np.linalg.slogdet(np.eye(Q * N) + prior @ precision)[1]
    return cov.reshape(Q, N, Q, N), (cov @ b).reshape(Q, N).T, log_z


def some_terms(rng, *shape):
    root = rng.normal(size=(*shape, shape[-1]))
    return SiteTerms(root @ np.swapaxes(root, -1, -2), rng.normal(size=shape))


def test_nodes_agree_with_dense_algebra(rng):
    x = rng.uniform(size=(8, 2))
    K = np.stack([RBF(0.3)(x), RBF(0.6)(x), Matern(0.4, nu=0.5)(x)])
    terms = some_terms(rng, 8, 3)
    found = NodePosterior.solve(K, terms)
    cov, mean, log_z = dense(K, terms)
    assert_allclose(found.mean, mean, atol=1e-8)
    assert_allclose(found.moments.cov, np.einsum("qnpn->nqp", cov), atol=1e-8)
    assert found.log_z == pytest.approx(log_z, rel=1e-8)
    roughness = [
        np.trace(np.linalg.solve(K[q], cov[q, :, q] + np.outer(mean[:, q], mean[:, q])))
        for q in range(3)
    ]
    assert_allclose(found.roughness(), roughness, rtol=1e-5)
    assert_allclose(found.joint_covariance(K, K), cov, atol=1e-8)


@pytest.mark.parametrize("noise", [1e-3, 1e-5, 1e-6])
def test_nodes_are_accurate_with_little_noise(rng, noise):
    """With known weights, a single node is a Gaussian process with 1 / Λ as noise variance."""
    x = rng.uniform(size=(60, 1))
    K = RBF(0.5)(x)
    w, y = rng.normal(size=(2, 60)), np.sin(5 * x[:, 0]) + np.sqrt(noise) * rng.normal(size=60)
    precision = (w**2 / noise).sum(axis=0)
    terms = SiteTerms(precision[:, None, None], (precision * y)[:, None])
    found = NodePosterior.solve(K[None], terms)
    noisy = K + np.diag(1 / precision)
    assert_allclose(found.alpha[:, 0], np.linalg.solve(noisy, y), rtol=1e-4, atol=1e-3)
    assert_allclose(found.mean[:, 0], y - np.linalg.solve(noisy, y) / precision, atol=1e-9)
    inverse = np.linalg.inv(noisy)
    variance = (1 - np.diagonal(inverse) / precision) / precision
    assert_allclose(found.moments.cov[:, 0, 0], variance, rtol=1e-4, atol=1e-13)
    log_z = multivariate_normal.logpdf(y, cov=noisy) + 0.5 * (
        (precision * y**2).sum() + np.log(2 * np.pi / precision).sum()
    )
    assert found.log_z == pytest.approx(log_z, abs=1e-3, rel=1e-9)


def test_weights_agree_with_dense_algebra(rng):
    x = rng.uniform(size=(8, 2))
    terms, variance = some_terms(rng, 2, 8, 3), rng.uniform(0.2, 2.0, (2, 3))
    basis = WeightBasis.build(Matern(0.5, nu=1.5), x)
    found = WeightPosterior.solve(basis, variance, terms)
    total = 0.0
    for d in range(2):
        K = variance[d, :, None, None] * Matern(0.5, nu=1.5)(x)
        cov, mean, log_z = dense(K, SiteTerms(terms.precision[d], terms.linear[d]))
        assert_allclose(found.moments.mean[d], mean, atol=1e-6)
        assert_allclose(found.moments.cov[d], np.einsum("qnpn->nqp", cov), atol=1e-6)
        joint_mean, joint_cov = found.joint_moments_at(x, d)
        assert_allclose(joint_mean, mean.T, atol=1e-6)
        assert_allclose(joint_cov, cov, atol=1e-6)
        total += log_z
    assert found.log_z == pytest.approx(total, rel=1e-7)
    assert found.divergence() > 0


@pytest.mark.parametrize("equal", [False, True])
def test_gradients_equal_finite_differences(rng, equal):
    problem = a_problem(rng, equal_noise=equal, equal_variances=equal)
    state = some_state(rng, problem)
    n_noise, n_variances = (1, 1) if equal else (3, 6)
    nodes = node_objective(problem, state)
    theta = np.log(rng.uniform(0.2, 0.6, 2 + n_noise))
    assert_allclose(
        nodes(theta)[1], approx_fprime(theta, lambda t: nodes(t)[0], 1e-6), rtol=1e-4, atol=1e-4
    )
    weights = weight_objective(problem, state, free_length_scale=True)
    theta = np.log(rng.uniform(0.4, 1.2, 2 + n_noise + n_variances + 1))
    numeric = approx_fprime(theta, lambda t: weights(t)[0], 1e-5)
    assert_allclose(weights(theta)[1], numeric, rtol=1e-3, atol=1e-3)


def test_the_bound_never_decreases(rng):
    problem = a_problem(rng)
    state = some_state(rng, problem)
    for hold in (True, True, False, False, False):
        after = update_weights(problem, state, 5, hold=hold)
        assert after.bound >= state.bound - 1e-7
        state = update_nodes(problem, after, 3, hold=hold)
        assert state.bound >= after.bound - 1e-7


def test_the_bound_is_below_the_exact_likelihood(rng):
    """With constant weights, the likelihood is an average over the weights.

    A lower bound that is wrong by the noise of the average, 0.02, would pass.
    """
    y = np.array([[0.4, 0.9], [-0.8, -1.1], [0.3, np.nan]])
    table = Observations.from_table(np.array([[0.0], [0.5], [1.0]]), y)
    problem = NetworkProblem(table)
    state = some_state(rng, problem, Q=1, scale=np.inf, rounds=3)
    parameters = state.parameters
    K = RBF(parameters.length_scales[0])(table.x)
    a = np.sqrt(parameters.weight_variance[:, 0])
    noise, output = parameters.noise, np.nonzero(table.observed)[0]
    site = np.nonzero(table.observed)[1]
    values = table.y[table.observed]
    densities = []
    for w in rng.normal(size=(20_000, 2)) * a:
        cov = np.outer(w[output], w[output]) * K[np.ix_(site, site)] + np.diag(noise[output])
        densities.append(multivariate_normal.logpdf(values, cov=cov))
    exact = np.logaddexp.reduce(densities) - np.log(len(densities))
    assert state.bound < exact + 0.02
    assert state.bound > exact - 1.5


def test_long_length_scales_of_weights_are_constant_weights(rng):
    problem = a_problem(rng)
    constant = some_state(rng, problem, scale=np.inf)
    long = replace(constant.parameters, weight_length_scale=1e4)
    first = weight_posterior(problem, constant.parameters, constant.nodes)
    second = weight_posterior(problem, long, constant.nodes)
    assert_allclose(first.moments.mean, second.moments.mean, atol=1e-5)
    assert_allclose(first.moments.cov, second.moments.cov, atol=1e-5)
    assert first.log_z == pytest.approx(second.log_z, abs=1e-5)


def test_a_missing_reading_is_the_absence_of_its_site(rng):
    table = some_table(rng)
    empty = Observations.from_table(
        np.vstack([table.x, [[0.5, 0.5]]]), np.vstack([table.table, np.full((1, 3), np.nan)])
    )
    problem, larger = NetworkProblem(table), NetworkProblem(empty)
    W = rng.normal(size=(3, 2))
    states = [starting_state(part, W, np.array([0.3, 0.5])) for part in (problem, larger)]
    nodes = [
        node_posterior(part, state.parameters, state.weights)
        for part, state in zip((problem, larger), states, strict=True)
    ]
    assert nodes[0].log_z == pytest.approx(nodes[1].log_z)
    assert_allclose(nodes[0].mean, nodes[1].mean[:-1], atol=1e-10)
