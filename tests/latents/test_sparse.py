"""Inducing-point learners, against formulas written out in full and the exact likelihood."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from emgpr.latents import DTC, FITC, PITC, VFE
from emgpr.latents.inducing import inducing_points, neighbour_blocks
from emgpr.latents.inducing_sums import RELATIVE_JITTER
from emgpr.observations import Observations
from tests.finite_differences import assert_is_the_gradient

N, M = 70, 18
LEARNERS = [DTC(M), FITC(M), VFE(M), PITC(M, block_size=20)]
KERNELS = [
    RBF(0.3),
    ConstantKernel(1.7) * Matern([0.4, 0.8], nu=1.5) + RBF(0.05, "fixed"),
    DotProduct(0.5) + Matern(0.3, nu=0.5),  # not stationary, and not implemented here
]
NOISE = 0.08

each_learner = pytest.mark.parametrize("learner", LEARNERS, ids=lambda own: type(own).__name__)
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)


@pytest.fixture
def table(rng):
    """Two outputs, measured at the same sites."""
    x = rng.uniform(size=(N, 2))
    y = np.stack([np.sin(6 * x[:, 0]), np.cos(5 * x[:, 1])]) + 0.3 * rng.normal(size=(2, N))
    return Observations(x, y, np.ones((2, N), bool))


def params(kernel, noise=NOISE):
    return np.append(kernel.theta, np.log(noise))[None]


def value(learner, table, kernel, noise=NOISE, device="cpu"):
    """The function that the learner maximises, of the second output."""
    objective = learner.objective(learner.select_sites(table), kernel, np.array([1]), device)
    return -objective(params(kernel, noise), np.zeros(1, int))[0][0]


def log_density(y, cov):
    return multivariate_normal(np.zeros(len(y)), cov).logpdf(y)


def exact(table, kernel, noise=NOISE):
    return log_density(table.y[1], kernel(table.x) + noise * np.eye(table.n_sites))


@each_kernel
@each_learner
def test_the_objective_is_the_formula_written_out_in_full(table, learner, kernel):
    x, y = table.x, table.y[1]
    points = inducing_points(x, M)
    inner = kernel(points)
    inner += RELATIVE_JITTER * np.mean(np.diag(inner)) * np.eye(M)
    K = kernel(x)
    Q = kernel(x, points) @ np.linalg.solve(inner, kernel(points, x))
    own = np.eye(N, dtype=bool)
    if isinstance(learner, PITC):
        for block in neighbour_blocks(x, 20):
            own[np.ix_(block, block)] = True
    residual = np.where(own, K - Q, 0.0) if isinstance(learner, FITC | PITC) else 0.0
    expected = log_density(y, Q + residual + NOISE * np.eye(N))
    if isinstance(learner, VFE):
        expected -= np.trace(K - Q) / (2 * NOISE)
    assert_allclose(value(learner, table, kernel), expected, rtol=1e-8)


@each_kernel
@each_learner
def test_gradients_equal_finite_differences(table, learner, kernel):
    objective = learner.objective(table, kernel, np.array([1]))
    row, first = params(kernel), np.zeros(1, int)
    _, gradient = objective(row, first)
    assert_is_the_gradient(
        gradient[0], lambda p: objective(p[None], first)[0][0], row[0], rtol=1e-5
    )


@pytest.mark.parametrize("learner", [DTC(), FITC(), VFE(), PITC()], ids=repr)
def test_a_point_at_every_site_gives_the_exact_likelihood(table, learner):
    for kernel in KERNELS:
        assert_allclose(value(learner, table, kernel), exact(table, kernel), rtol=1e-5)


@each_kernel
def test_vfe_is_a_lower_bound_that_more_points_raise(table, kernel):
    bounds = [value(VFE(m), table, kernel) for m in (5, 20, 45, N)]
    assert np.all(np.diff(bounds) > 0)
    assert bounds[-1] <= exact(table, kernel) + 1e-4


@pytest.mark.parametrize(
    ("learner", "noise"), [(DTC(5), 2.0), (FITC(5), 0.01), (PITC(5, block_size=20), 0.01)], ids=repr
)
def test_the_others_are_no_bounds(table, learner, noise):
    kernel = ConstantKernel(4.0) * RBF(0.2)
    assert value(learner, table, kernel, noise) > exact(table, kernel, noise) + 1


@pytest.mark.parametrize("learner", [FITC(M), VFE(M)], ids=repr)
def test_the_size_of_the_blocks_does_not_matter(table, learner, monkeypatch):
    whole = value(learner, table, KERNELS[1])
    monkeypatch.setattr("emgpr.latents.sparse.SITES_PER_BLOCK", 7)
    assert_allclose(value(learner, table, KERNELS[1]), whole)


@pytest.mark.parametrize("learner", [FITC(M), PITC(M, block_size=20)], ids=repr)
def test_a_device_gives_the_same(table, learner, device):
    kernel = KERNELS[1]
    there = value(learner, table, kernel, device=device)
    assert_allclose(there, value(learner, table, kernel))


def test_a_kernel_that_cannot_be_factorised_has_no_likelihood(table):
    """The search then turns back, instead of failing."""
    objective = VFE(M).objective(table, RBF(), np.array([1]))
    values, gradients = objective(np.array([[np.nan, 0.0]]), np.zeros(1, int))
    assert values[0] == np.inf
    assert not gradients.any()
