"""What learners climb: against formulas written out in full, the likelihood, and differences."""

import numpy as np
import pytest
from finite_differences import assert_is_the_gradient
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern

from emgpr.latents import DTC, FITC, PITC, VFE, Exact, PoE, Variogram
from emgpr.latents.inducing import blocks, inducing_points
from emgpr.latents.sparse import NUGGET
from emgpr.observations import Observations

N, M = 70, 18
SPARSE = [DTC(M), FITC(M), VFE(M), PITC(M, block_size=20)]
LEARNERS = [Exact(), PoE(batch_size=24, n_batches=2), *SPARSE]
KERNELS = [
    RBF(0.3),
    ConstantKernel(1.7) * Matern([0.4, 0.8], nu=1.5) + RBF(0.05, "fixed"),
    DotProduct(0.5) + Matern(0.3, nu=0.5),  # neither of one variance nor known to us
]
WHOSE = np.array([1])
NOISE = 0.08


@pytest.fixture
def table(rng):
    """Two tasks, read at the same sites."""
    x = rng.uniform(size=(N, 2))
    y = np.stack([np.sin(6 * x[:, 0]), np.cos(5 * x[:, 1])]) + 0.3 * rng.normal(size=(2, N))
    return Observations(x, y, np.ones((2, N), bool))


def at(kernel, noise=NOISE):
    return np.append(kernel.theta, np.log(noise))[None]


def value(learner, table, kernel, noise=NOISE, **settings):
    """The logarithm that the learner makes as large as it can, of the second task."""
    loss = learner.loss(learner.taken(table), kernel, WHOSE, **settings)
    return -loss(at(kernel, noise), np.zeros(1, int))[0][0]


def log_density(y, cov):
    return multivariate_normal(np.zeros(len(y)), cov).logpdf(y)


def exactly(table, kernel, noise=NOISE):
    return log_density(table.y[1], kernel(table.x) + noise * np.eye(table.n_sites))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("learner", SPARSE, ids=lambda own: type(own).__name__)
def test_inducing_points_are_as_written_out_in_full(table, learner, kernel):
    x, y = table.x, table.y[1]
    points = inducing_points(x, M)
    inner = kernel(points)
    inner += NUGGET * np.mean(np.diag(inner)) * np.eye(M)
    K = kernel(x)
    Q = kernel(x, points) @ np.linalg.solve(inner, kernel(points, x))
    own = np.eye(N, dtype=bool)
    if isinstance(learner, PITC):
        for block in blocks(x, 20):
            own[np.ix_(block, block)] = True
    rest = np.where(own, K - Q, 0.0) if isinstance(learner, FITC | PITC) else 0.0
    expected = log_density(y, Q + rest + NOISE * np.eye(N))
    if isinstance(learner, VFE):
        expected -= np.trace(K - Q) / (2 * NOISE)
    assert_allclose(value(learner, table, kernel), expected, rtol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("learner", [DTC(), FITC(), VFE(), PITC(), PoE()], ids=repr)
def test_points_at_every_site_and_one_batch_are_exact(table, learner, kernel):
    assert_allclose(value(learner, table, kernel), exactly(table, kernel), rtol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_variational_one_is_a_bound_which_more_points_raise(table, kernel):
    bounds = [value(VFE(m), table, kernel) for m in (5, 20, 45, N)]
    assert np.all(np.diff(bounds) > 0)
    assert bounds[-1] <= exactly(table, kernel) + 1e-4


@pytest.mark.parametrize(
    ("learner", "noise"), [(DTC(5), 2.0), (FITC(5), 0.01), (PITC(5, block_size=20), 0.01)], ids=repr
)
def test_the_others_are_none_and_can_be_above_the_likelihood(table, learner, noise):
    kernel = ConstantKernel(4.0) * RBF(0.2)
    assert value(learner, table, kernel, noise) > exactly(table, kernel, noise) + 1


def test_a_product_of_experts_is_the_sum_of_its_batches(table):
    learner, kernel = PoE(batch_size=24, n_batches=2), KERNELS[0]
    taken = learner.taken(table)
    assert taken.n_sites == 48 or taken.n_sites == 47  # of 70 in three
    parts = np.array_split(np.arange(taken.n_sites), 2)
    expected = sum(exactly(taken.at(part), kernel) for part in parts)
    assert_allclose(value(learner, table, kernel), expected)


@pytest.mark.parametrize("weak_prior", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda own: type(own).__name__)
def test_gradients_are_those_of_differences(table, learner, kernel, weak_prior):
    loss = learner.loss(learner.taken(table), kernel, WHOSE, weak_prior=weak_prior)
    row, first = at(kernel), np.zeros(1, int)
    _, gradient = loss(row, first)
    assert_is_the_gradient(gradient[0], lambda p: loss(p[None], first)[0][0], row[0], rtol=1e-5)


@pytest.mark.parametrize("learner", SPARSE, ids=lambda own: type(own).__name__)
def test_sites_go_by_in_runs(table, learner, monkeypatch):
    """How many at a time does not matter, but to PITC, whose runs are its blocks."""
    whole = value(learner, table, KERNELS[1])
    monkeypatch.setattr("emgpr.latents.sparse.RUN", 7)
    assert_allclose(value(learner, table, KERNELS[1]), whole)


@pytest.mark.parametrize("learner", [FITC(M), PITC(M, block_size=20), PoE(24, 2)], ids=repr)
def test_on_a_device_it_is_the_same(table, learner, device):
    for kernel in KERNELS[:2]:
        there = value(learner, table, kernel, device=device)
        assert_allclose(there, value(learner, table, kernel))


def test_points_are_different_sites_spread_over_all(rng):
    x = np.repeat(rng.uniform(size=(200, 2)) * [1.0, 1e6], 3, axis=0)
    points = inducing_points(x, 20)
    assert points.shape == (20, 2)
    assert {tuple(point) for point in points} <= {tuple(site) for site in x}
    unit = points / [1.0, 1e6]
    quarters = (unit > 0.5) @ [1, 2]
    assert set(quarters.tolist()) == {0, 1, 2, 3}
    gaps = np.linalg.norm(unit[:, None] - unit, axis=-1) + np.eye(20)
    assert gaps.min() > 0.05  # at random the nearest two are 0.02 apart


def test_blocks_hold_every_site_once_and_neighbours(rng):
    x = rng.uniform(size=(500, 2))
    made = blocks(x, 30)
    assert sorted(np.concatenate(made)) == list(range(500))
    assert max(map(len, made)) <= 30
    assert np.mean([np.ptp(x[block], axis=0).max() for block in made]) < 0.5


@pytest.mark.parametrize(
    ("learner", "settings", "wrong"),
    [
        (PITC, {"block_size": 0}, "block_size=0"),
        (PoE, {"batch_size": -5}, "batch_size=-5"),
        (PoE, {"n_batches": 0}, "n_batches=0"),
        (VFE, {"n_inducing": 0}, "n_inducing=0"),
        (FITC, {"n_inducing": True}, "n_inducing=True"),
        (Variogram, {"n_sites": 1}, "n_sites=1; expected a whole number of at least 2"),
    ],
)
def test_settings_that_are_no_number_of_something_are_refused(learner, settings, wrong):
    with pytest.raises(ValueError, match=f"{learner.__name__}: {wrong}"):
        learner(**settings)
