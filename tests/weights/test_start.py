"""Where step 2 starts: the no-transfer model, or as near to it as Q and k allow."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from emgpr.covariance import log_likelihood
from emgpr.kernels import matrices
from emgpr.latents import Latent
from emgpr.observations import Observations
from emgpr.weights import apart, arrange, silenced, with_own_parts

SCALES = (0.1, 1.0, 0.12, 1.1)


@pytest.fixture
def tasks():
    return [Latent(RBF(s), 0.01 * (d + 1), 0.0) for d, s in enumerate(SCALES)]


@pytest.fixture
def seen(rng):
    """Task 2 is task 0 upside down; tasks 1 and 3 go together."""
    first, second = rng.normal(size=(2, 30))
    Y = np.column_stack([first, second, -first, second]) + 0.1 * rng.normal(size=(30, 4))
    Y[:5, 3] = np.nan
    return Observations.from_table(rng.uniform(size=(30, 2)), Y / np.nanstd(Y, axis=0))


def test_with_a_latent_for_each_task_it_is_the_papers_delta(tasks, seen):
    start = arrange(tasks, seen, 4, 1)
    assert_array_equal(start.W[..., 0], np.eye(4))
    assert_allclose([kernel.length_scale for kernel in start.kernels], SCALES)
    assert_array_equal(start.noise, np.diag([0.01, 0.02, 0.03, 0.04]))


@pytest.mark.parametrize("further", [0, 2])
def test_no_transfer_is_every_task_with_its_own_process_and_noise(tasks, seen, further):
    """Latents beyond the tasks have no part in it; step 2 starts there if each has one."""
    alone = apart([*tasks, *[Latent(RBF(9.0), 1.0, 0.0)] * further], 4)
    start = arrange(tasks, seen, 4, 1)
    assert_allclose([kernel.length_scale for kernel in alone.kernels], SCALES)
    assert_array_equal(alone.W, start.W)
    assert_array_equal(alone.noise, start.noise)
    assert_array_equal(alone.noise_bounds, start.noise_bounds)


def test_a_task_that_never_varies_hears_nothing_and_its_noise_is_held(tasks, seen):
    start = arrange(tasks, seen, 4, 1)
    silent = np.array([False, True, False, False])
    free = np.ones(start.W.shape, bool)
    free[2] = False
    for given, expected in ((None, np.ones_like(free)), (free, free)):
        quiet = silenced(replace(start, free=given), silent)
        assert_array_equal(quiet.W[:, ~silent], start.W[:, ~silent])
        assert not quiet.W[:, silent].any()
        assert_array_equal(quiet.free, expected & ~silent[:, None])
        assert_array_equal(quiet.noise, start.noise)
        assert_array_equal(quiet.noise_bounds[silent], [[0.02, 0.02]])
        assert_array_equal(quiet.noise_bounds[~silent], start.noise_bounds[~silent])
    assert silenced(start, np.zeros(4, bool)) is start


def test_with_fewer_latents_tasks_with_like_kernels_share_one(tasks, seen):
    start = arrange(tasks, seen, 2, 1)
    assert_array_equal(
        start.W[..., 0] != 0, [[True, False, True, False], [False, True, False, True]]
    )
    shared = [kernel.length_scale for kernel in start.kernels]
    assert_allclose(shared, [np.sqrt(0.1 * 0.12), np.sqrt(1.0 * 1.1)])


def test_it_is_their_kernels_not_their_order_by_which_tasks_share(tasks, seen):
    start = arrange([tasks[d] for d in (0, 2, 1, 3)], seen, 2, 1)
    assert_array_equal(
        start.W[..., 0] != 0, [[True, True, False, False], [False, False, True, True]]
    )
    assert_allclose(start.kernels[0].length_scale, np.sqrt(0.1 * 0.12))


def test_tasks_that_share_a_latent_hear_it_as_they_covary(tasks, seen):
    W = arrange(tasks, seen, 2, 1).W[..., 0]
    assert W[0, 0] * W[0, 2] < -0.9  # upside down
    assert W[1, 1] * W[1, 3] > 0.9
    full_rank = arrange(tasks, seen, 1, 4).W[0]
    both = np.column_stack([seen.y[0], seen.y[1]])
    r = (both[:, 0] * both[:, 1]).sum() / np.linalg.norm(both, axis=0).prod()
    assert_allclose((full_rank @ full_rank.T)[0, 1], r, atol=0.05)
    assert_allclose(np.diag(full_rank @ full_rank.T), 1.0, atol=0.05)


@pytest.mark.parametrize("n_latents", [1, 2, 3, 4, 6, 13])
@pytest.mark.parametrize("rank", [1, 2, 5])
def test_no_column_of_weights_is_zero_and_every_one_can_move(tasks, seen, n_latents, rank):
    start = arrange(tasks, seen, n_latents, rank)
    assert start.W.shape == (n_latents, 4, rank)
    assert len(start.kernels) == n_latents
    assert np.all(np.abs(start.W).max(axis=1) > 0)
    K = matrices(start.kernels, seen.x)
    slope = log_likelihood(seen, start.W, start.noise, K).of_weights
    assert np.all(np.abs(slope).max(axis=1) > 1e-6)


def test_further_latents_come_at_other_length_scales(tasks, seen):
    scales = [kernel.length_scale for kernel in arrange(tasks, seen, 12, 1).kernels]
    assert len(np.unique(np.round(scales, 12))) == 12
    assert_allclose(scales[4:8], np.array(SCALES) / 3)
    assert_allclose(scales[8:], np.array(SCALES) * 3)


def test_ranks_beyond_the_first_are_heard_faintly(tasks, seen):
    W = arrange(tasks, seen, 4, 2).W
    assert_array_equal(W[..., 0], np.eye(4))
    assert_allclose(np.abs(W[..., 1]).max(axis=1), 0.1)


@pytest.mark.parametrize("n_latents", [1, 2, 3, 5])
def test_kernels_of_different_make_can_share(seen, n_latents):
    kernels = [RBF(0.1), ConstantKernel(2.0) * Matern(0.3), RBF([0.1, 0.2]), RBF(0.2, "fixed")]
    start = arrange([Latent(k, 0.1, 0.0) for k in kernels], seen, n_latents, 1)
    assert len(start.kernels) == n_latents
    assert np.isfinite(matrices(start.kernels, seen.x)).all()


def test_tasks_never_seen_together_are_taken_as_unrelated(tasks):
    Y = np.full((8, 4), np.nan)
    for d in range(4):
        Y[2 * d : 2 * d + 2, d] = [-1.0, 1.0]
    apart = Observations.from_table(np.arange(8.0)[:, None], Y)
    W = arrange(tasks, apart, 1, 4).W[0]
    assert_allclose(W @ W.T, np.eye(4), atol=1e-12)


@pytest.mark.parametrize(("n_latents", "rank"), [(1, 1), (2, 1), (1, 2)])
def test_every_task_hears_something_even_unrelated_ones(tasks, n_latents, rank):
    """Among unrelated tasks the principal component is one of them; the rest must not be deaf."""
    Y = np.kron(np.eye(4), [[1.0], [-1.0], [0.5]])
    Y[Y == 0] = np.nan
    apart = Observations.from_table(np.arange(12.0)[:, None], Y)
    W = arrange(tasks, apart, n_latents, rank).W
    assert np.all(np.abs(W).max(axis=(0, 2)) > 0)


def test_parts_of_their_own_add_a_diagonal_of_which_only_the_diagonal_is_learned(tasks, seen):
    plain = arrange(tasks, seen, 2, 1)
    start = with_own_parts(plain)
    assert start.W.shape == (2, 4, 5)
    B, B_plain = (W @ np.swapaxes(W, -1, -2) for W in (start.W, plain.W))
    apart = B - B_plain
    assert_allclose(apart, [np.diag(np.diag(a)) for a in apart], atol=1e-15)
    assert np.all(np.einsum("qdd->qd", apart) > 0)
    slope = start.learned(np.ones((3, 2, 4, 5)))
    assert_array_equal(slope[..., :1], 1.0)
    assert_array_equal(slope[..., 1:], np.broadcast_to(np.eye(4), (3, 2, 4, 4)))
