"""Vecchia's likelihood against the dense likelihood, finite differences and simulation."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.arrays import to_numpy
from emgpr.covariance import VecchiaTable, log_likelihood, vecchia_table
from emgpr.covariance.vecchia import block_log_likelihood, derivative_by_coregionalization
from emgpr.kernel_stack import KernelStack
from emgpr.observations import Observations
from emgpr.parallel import Execution
from tests.finite_differences import assert_is_the_gradient
from tests.simulated import world

KERNELS = (RBF(0.3), Matern([0.2, 0.5], nu=1.5), Matern(0.4, nu=0.5))
THETA = np.concatenate([kernel.theta for kernel in KERNELS])


def a_table(made, m, **settings):
    return VecchiaTable.from_sites(made.observations, KERNELS, m, **settings)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("correlated", [False, True])
def test_with_all_earlier_sites_it_is_the_exact_likelihood(rng, missing, correlated):
    made = world(rng, N=14, missing=missing, correlated=correlated)
    K, pullback = KernelStack(KERNELS, made.X).evaluate(THETA)
    exact = log_likelihood(made.observations, made.W, made.noise, K, of_kernels=True)
    fit = a_table(made, 13).evaluate(THETA, made.W, made.noise)
    assert_allclose(fit.value, exact.value, rtol=1e-10)
    assert_allclose(fit.of_weights, exact.of_weights, rtol=1e-8, atol=1e-9)
    assert_allclose(fit.of_noise, exact.of_noise, rtol=1e-8, atol=1e-8)
    assert_allclose(fit.of_theta, pullback(exact.of_kernels), rtol=1e-8, atol=1e-9)


def test_each_site_is_conditioned_on_its_neighbours(rng):
    made = world(rng, N=9, D=2, k=1)
    table = a_table(made, 3)
    expected = 0.0
    for block in table.blocks:
        sites = block[block >= 0]
        for sign, part in ((1, sites), (-1, sites[:-1])):
            if len(part):
                K, _ = KernelStack(KERNELS, made.X[part]).evaluate(THETA)
                observations = made.observations.at(part)
                expected += sign * log_likelihood(observations, made.W, made.noise, K).value
    assert_allclose(table.evaluate(THETA, made.W, made.noise).value, expected, rtol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_gradients_agree_with_finite_differences(rng, missing):
    made = world(rng, N=12, missing=missing, correlated=True)
    table = a_table(made, 4)
    fit = table.evaluate(THETA, made.W, made.noise)
    given = {"theta": THETA, "W": made.W, "noise": made.noise}

    def value(name):
        return lambda at: table.evaluate(**(given | {name: at})).value

    assert_is_the_gradient(fit.of_theta, value("theta"), THETA)
    assert_is_the_gradient(fit.of_weights, value("W"), made.W)
    roots = np.linalg.cholesky(made.noise)
    of_root = 2 * fit.of_noise @ roots
    assert_is_the_gradient(of_root, lambda root: value("noise")(root @ root.T), roots)


def test_chunks_of_blocks_give_the_same_sum(rng, monkeypatch):
    made = world(rng, N=30, missing=0.2)
    whole = a_table(made, 5).evaluate(THETA, made.W, made.noise)
    basis = np.eye(3)[:, :, None] * np.eye(3)[:, None]
    information = a_table(made, 5).information(THETA, made.W, made.noise, basis)
    monkeypatch.setattr(vecchia_table, "PANELS_PER_CHUNK", 1e-9)
    monkeypatch.setattr(vecchia_table, "MAX_CACHED_VALUES", 0)
    for part, same in zip(whole, a_table(made, 5).evaluate(THETA, made.W, made.noise), strict=True):
        assert_allclose(part, same, rtol=1e-10, atol=1e-10)
    again = a_table(made, 5).information(THETA, made.W, made.noise, basis)
    assert_allclose(information, again, rtol=1e-6, atol=1e-6)


def test_torch_gives_the_same_numbers(rng, device):
    made = world(rng, N=20, missing=0.2, correlated=True)
    basis = np.eye(3)[:, :, None] * np.eye(3)[:, None]
    tables = a_table(made, 5), a_table(made, 5, execution=Execution(device))
    fits = [table.evaluate(THETA, made.W, made.noise) for table in tables]
    for part, same in zip(*fits, strict=True):
        assert_allclose(part, same, rtol=1e-9, atol=1e-9)
    information = [table.information(THETA, made.W, made.noise, basis) for table in tables]
    assert_allclose(*information, rtol=1e-6, atol=1e-6)


def test_order_of_rows_and_units_of_columns_do_not_matter(rng):
    made = world(rng, N=25, missing=0.2)
    one = a_table(made, 4).evaluate(THETA, made.W, made.noise)
    rows = rng.permutation(25)
    shuffled = Observations.from_table(made.X[rows], made.Y[rows])
    two = VecchiaTable.from_sites(shuffled, KERNELS, 4).evaluate(THETA, made.W, made.noise)
    assert_allclose(one.value, two.value, rtol=1e-10)


def test_a_subset_has_some_of_the_blocks(rng):
    table = a_table(world(rng, N=25), 4)
    part = table.subset(10, rng)
    assert part.blocks.shape == (10, 5)
    assert {tuple(row) for row in part.blocks} <= {tuple(row) for row in table.blocks}
    assert part.n_readings == 30


def test_the_information_has_the_fisher_information_as_expectation(rng):
    """Average over 3000 draws from the model against ½ tr(cov⁻¹ ∂ₐcov cov⁻¹ ∂ᵦcov).

    An element of the average has a relative standard error of about 0.02, so 0.15 is seven
    standard errors. Without the factor ½ for the rows of the site, the difference is 0.5.
    """
    made = world(rng, N=6, D=2, Q=2, k=1, noise=0.3)
    kernels = (RBF(0.3), Matern(0.5, nu=1.5))
    theta = np.concatenate([kernel.theta for kernel in kernels])
    basis = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])

    def covariance(parameters):
        K, _ = KernelStack(kernels, made.X).evaluate(parameters[:2])
        W, noise = parameters[4:].reshape(made.W.shape), np.diag(parameters[2:4])
        cov = sum(np.kron(k, w @ w.T) for k, w in zip(K, W, strict=True))
        return cov + np.kron(np.eye(6), noise)

    at = np.concatenate([theta, np.diag(made.noise), made.W.ravel()])
    cov, steps = covariance(at), 1e-5 * np.eye(len(at))
    slopes = [(covariance(at + h) - covariance(at - h)) / 2e-5 for h in steps]
    scaled = np.linalg.solve(cov, slopes)
    fisher = 0.5 * np.einsum("aij,bji->ab", scaled, scaled)

    n = 3000
    Y = (rng.normal(size=(n, 12)) @ np.linalg.cholesky(cov).T).reshape(n * 6, 2)
    observations = Observations.from_table(np.tile(made.X, (n, 1)), Y)
    blocks = VecchiaTable.from_sites(made.observations, kernels, 5).blocks
    blocks = np.where(blocks >= 0, blocks + 6 * np.arange(n)[:, None, None], -1).reshape(-1, 6)
    table = VecchiaTable(observations, kernels, blocks)
    information = table.information(theta, made.W, made.noise, basis) / n
    scale = np.sqrt(np.outer(np.diag(fisher), np.diag(fisher)))
    assert np.abs((information - fisher) / scale).max() < 0.15


def test_the_information_is_semidefinite(rng):
    made = world(rng, N=20, missing=0.3, correlated=True)
    basis = np.eye(3)[:, :, None] * np.eye(3)[:, None]
    values = np.linalg.eigvalsh(a_table(made, 5).information(THETA, made.W, made.noise, basis))
    assert values[0] > -1e-10 * values[-1]


def test_a_column_of_zero_weights_has_the_curvature_of_the_coregionalisation(rng):
    """The information of such a column is zero, and the second derivative of log p is 2 ∂/∂B."""
    made = world(rng, N=15, missing=0.2, correlated=True)
    (Q, D, k), table = made.W.shape, a_table(made, 5)
    W = made.W.copy()
    W[1, :, 0] = 0.0
    basis = np.eye(D)[:, :, None] * np.eye(D)[:, None]
    at = len(THETA) + D + np.arange(Q * D * k).reshape(Q, D, k)[1, :, 0]
    information = table.information(THETA, W, made.noise, basis)
    assert_allclose(information[at], 0.0, atol=1e-12)

    def gradient(d, step):
        moved = W.copy()
        moved[1, d, 0] = step
        return table.evaluate(THETA, moved, made.noise).of_weights[1, :, 0]

    step = 1e-5
    second = np.array([(gradient(d, step) - gradient(d, -step)) / (2 * step) for d in range(D)])
    values, vectors = np.linalg.eigh(-second)
    expected = (vectors * np.maximum(values, 0)) @ vectors.T
    found = table.curvature(THETA, W, made.noise, basis)
    assert_allclose(found[np.ix_(at, at)], expected, rtol=1e-5, atol=1e-5 * abs(values).max())


def test_the_derivative_by_coregionalisation_implies_that_by_weights(rng):
    made = world(rng, N=12, missing=0.3, correlated=True)
    table = a_table(made, 4)
    ((blocks, kernels),) = table._chunks()
    K, _ = kernels.evaluate(THETA)
    fit = block_log_likelihood(blocks, made.W, made.noise, K)
    of_B = derivative_by_coregionalization(fit, K)
    assert_allclose(2 * of_B @ made.W, fit.of_weights, rtol=1e-9, atol=1e-9)


def test_an_indefinite_covariance_has_no_likelihood(rng):
    made = world(rng, N=6)
    fit = a_table(made, 3).evaluate(THETA, made.W, -10.0 * np.eye(3))
    assert fit.value == -np.inf


def test_derivatives_of_kernels_agree_with_scikit_learn(rng):
    x = rng.uniform(size=(5, 2))
    stack = KernelStack(KERNELS, x)
    found = stack.derivatives(THETA, stack.evaluate(THETA)[0])
    expected = [
        (q, derivative)
        for q, kernel in enumerate(KERNELS)
        for derivative in np.moveaxis(kernel(x, eval_gradient=True)[1], -1, 0)
    ]
    assert [q for q, _ in found] == [q for q, _ in expected]
    for (_, one), (_, two) in zip(found, expected, strict=True):
        assert_allclose(to_numpy(one), two, atol=1e-5)
