"""The objective of step 1: the prior in it, and its effect on few and many readings."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from emgpr.latents import fit_latents, objective
from emgpr.latents.objective import (
    as_memory,
    average_information,
    negative_log_likelihood,
    with_noise_prior,
)
from emgpr.noise import WeakPrior, output_variances
from emgpr.observations import Observations
from emgpr.optimize import N_PAIRS, minimize
from tests.finite_differences import assert_is_the_gradient


def fit(X, y, **settings):
    """Step 1 of one output."""
    rng = np.random.default_rng(0)
    table = Observations.from_table(X, y[:, None])
    return fit_latents(table, [RBF()], n_restarts=5, max_iter=100, rng=rng, **settings)[0]


def standardise(y):
    return (y - y.mean()) / y.std()


def test_the_prior_of_each_problems_output_is_added_to_its_objective(rng):
    X, Y = rng.uniform(size=(12, 2)), rng.normal(size=(12, 2)) * [1.0, 3.0]
    table, outputs = Observations.from_table(X, Y), np.array([1, 0, 1])
    variances, which = output_variances(table)[outputs], np.array([2, 1])
    plain = negative_log_likelihood(table, RBF(), outputs)
    posterior = with_noise_prior(plain, variances, True)
    params = np.array([[0.1, -1.0], [-0.5, -2.0]])
    difference = posterior(params, which)[0] - plain(params, which)[0]
    expected = [-WeakPrior(variances[[i]])(np.exp([[p]]))[0] for i, p in ((2, -1.0), (1, -2.0))]
    assert_allclose(difference, expected)
    for row in (0, 1):
        one = which[[row]]
        gradient = posterior(params[[row]], one)[1][0]
        assert_is_the_gradient(gradient, lambda p: posterior(p[None], one)[0][0], params[row])  # noqa: B023
    assert with_noise_prior(plain, variances, False) is plain


def test_few_readings_of_noise_do_not_look_free_of_noise():
    """Of outputs with 8 readings of pure noise, some look free of it without the prior."""
    rng = np.random.default_rng(5)
    noises = {False: [], True: []}
    for _ in range(8):
        X, y = rng.uniform(size=(8, 2)), rng.normal(size=8)
        for weak, found in noises.items():
            found.append(fit(X, standardise(y), weak_prior=weak).noise)
    assert np.mean(np.array(noises[False]) < 0.01) > 0
    assert np.mean(np.array(noises[True]) < 0.01) == 0


def test_many_readings_outweigh_the_prior(draw):
    """300 readings change by less than the prior is worth: some 2·3 of them."""
    X, Y = draw(RBF(0.3), 0.1, N=300)
    with_prior, without = (fit(X, Y[:, 0], weak_prior=weak) for weak in (True, False))
    assert_allclose(with_prior.noise, without.noise, rtol=0.06)
    assert without.noise < with_prior.noise
    assert_allclose(with_prior.log_likelihood, without.log_likelihood, atol=1.0)
    assert with_prior.log_likelihood <= without.log_likelihood + 1e-6  # of the readings alone


def test_an_output_free_of_noise_stays_so(rng):
    X = rng.uniform(size=(60, 2))
    y = np.sin(5 * X[:, 0]) + X[:, 1]
    assert fit(X, standardise(y), weak_prior=True).noise < 1e-5


@pytest.mark.parametrize("kernel", [Matern(nu=0.5), ConstantKernel() * RBF([1.0, 1.0])])
def test_matrices_factorised_one_by_one_and_together_give_the_same(rng, monkeypatch, kernel):
    X, Y = rng.uniform(size=(60, 2)), rng.normal(size=(60, 2))
    table, outputs, which = Observations.from_table(X, Y), np.array([1, 0, 1]), np.array([2, 1])
    params = rng.normal(size=(2, kernel.n_dims + 1))
    one_by_one = negative_log_likelihood(table, kernel, outputs)(params, which)
    monkeypatch.setattr(objective, "MAX_BATCHED_SITES", 60)
    together = negative_log_likelihood(table, kernel, outputs)(params, which)
    for ours, theirs in zip(one_by_one, together, strict=True):
        assert_allclose(ours, theirs, rtol=1e-9)


def test_a_covariance_without_a_factor_has_an_infinite_value(rng):
    class Indefinite(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            K = 1.0 - 3.0 * np.eye(len(X))
            return (K, np.zeros((*K.shape, 1))) if eval_gradient else K

    table = Observations.from_table(rng.uniform(size=(60, 2)), rng.normal(size=(60, 1)))
    params, output = np.array([[0.0, -3.0]]), np.zeros(1, int)
    value, gradient = negative_log_likelihood(table, Indefinite(), output)(params, output)
    assert np.isposinf(value)
    assert not gradient.any()
    assert not average_information(table, Indefinite(), params, output).any()


@pytest.mark.parametrize("weak_prior", [False, True])
def test_the_average_information_is_the_mean_of_observed_and_expected(rng, weak_prior):
    """For parameters in which the covariance is linear: signal variance and noise variance.

    In terms of their logarithms, the gradient is added on the diagonal, so it is compared where
    the gradient is removed: A = ½ αᵀ ∂ᵢC C⁻¹ ∂ⱼC α.
    """
    X, y = rng.uniform(size=(30, 2)), rng.normal(size=30)
    table, params = Observations.from_table(X, y[:, None]), np.log([[0.7, 0.2]])
    K, identity = RBF(0.3, "fixed")(X), np.eye(30)
    found = average_information(
        table, ConstantKernel() * RBF(0.3, "fixed"), params, np.zeros(1, int), weak_prior
    )[0]
    C = np.linalg.inv(0.7 * K + 0.2 * identity)
    parts = [0.7 * K, 0.2 * identity]
    expected = [[0.5 * y @ C @ a @ C @ b @ C @ y for a in parts] for b in parts]
    if weak_prior:
        expected[1][1] += WeakPrior(output_variances(table)[None]).log_curvature(np.array([[0.2]]))[
            0
        ]
    assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("p", [2, 3])
def test_with_the_memory_of_a_curvature_one_step_leads_to_the_minimum(rng, p):
    root, b = rng.normal(size=(3, p, p)), rng.normal(size=(3, p))
    H = root @ np.swapaxes(root, 1, 2) + 0.1 * np.eye(p)

    def quadratic(x, which):
        Hx = np.einsum("bij,bj->bi", H[which], x)
        return 0.5 * (x * Hx).sum(1) - (b[which] * x).sum(1), Hx - b[which]

    found = minimize(quadratic, np.zeros((3, p)), max_step=1e3, memory=as_memory(H), max_iter=1)
    assert_allclose(quadratic(found.x, np.arange(3))[1], 0.0, atol=1e-8)


def test_a_memory_holds_the_largest_curvatures_and_none_of_a_zero_matrix():
    p = N_PAIRS + 5
    memory = as_memory(np.stack([np.diag(np.arange(1.0, p + 1)), np.zeros((p, p))]))
    assert memory.n_pairs.tolist() == [N_PAIRS, 0]
    assert_allclose(np.linalg.norm(memory.gradient_changes[0], axis=1), np.arange(6, p + 1))
