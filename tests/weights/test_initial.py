"""Where step 2 starts: the model without transfer, or one as near to it as Q and k allow."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

from emgpr.covariance import log_likelihood
from emgpr.kernels import kernel_matrices
from emgpr.latents import Latent
from emgpr.observations import Observations
from emgpr.weights import (
    decouple_constant_outputs,
    independent_parameters,
    initial_parameters,
    with_output_variances,
)

SCALES = (0.1, 1.0, 0.12, 1.1)


@pytest.fixture
def latents():
    bounds = [(0.001 * (d + 1), 2.0) for d in range(4)]
    return [
        Latent(RBF(s), 0.01 * (d + 1), 0.0, noise_bounds=bounds[d]) for d, s in enumerate(SCALES)
    ]


@pytest.fixture
def table(rng):
    """Output 2 is the negative of output 0; outputs 1 and 3 are nearly equal."""
    first, second = rng.normal(size=(2, 30))
    Y = np.column_stack([first, second, -first, second]) + 0.1 * rng.normal(size=(30, 4))
    Y[:5, 3] = np.nan
    return Observations.from_table(rng.uniform(size=(30, 2)), Y / np.nanstd(Y, axis=0))


def test_with_a_latent_for_each_output_the_weights_are_the_identity(latents, table):
    start = initial_parameters(latents, table, 4, 1)
    assert_array_equal(start.W[..., 0], np.eye(4))
    assert_allclose([kernel.length_scale for kernel in start.kernels], SCALES)
    assert_array_equal(start.noise, np.diag([0.01, 0.02, 0.03, 0.04]))
    assert_allclose(start.noise_bounds, [[0.001 * d, 2.0] for d in (1, 2, 3, 4)])
    assert start.free is None


@pytest.mark.parametrize("further", [0, 2])
def test_without_transfer_every_output_has_its_own_process(latents, table, further):
    """Latent processes beyond the outputs are left out."""
    alone = independent_parameters([*latents, *[Latent(RBF(9.0), 1.0, 0.0)] * further], 4)
    start = initial_parameters(latents, table, 4, 1)
    assert_allclose([kernel.length_scale for kernel in alone.kernels], SCALES)
    assert_array_equal(alone.W, start.W)
    assert_array_equal(alone.noise, start.noise)
    assert_array_equal(alone.noise_bounds, start.noise_bounds)


def test_a_constant_output_has_no_weights_and_its_noise_is_fixed(latents, table):
    start = initial_parameters(latents, table, 4, 1)
    constant = np.array([False, True, False, False])
    free = np.ones(start.W.shape, bool)
    free[2] = False
    for given, expected in ((None, np.ones_like(free)), (free, free)):
        decoupled = decouple_constant_outputs(replace(start, free=given), constant)
        assert_array_equal(decoupled.W[:, ~constant], start.W[:, ~constant])
        assert not decoupled.W[:, constant].any()
        assert_array_equal(decoupled.free, expected & ~constant[:, None])
        assert_array_equal(decoupled.noise, start.noise)
        assert_array_equal(decoupled.noise_bounds[constant], [[0.02, 0.02]])
        assert_array_equal(decoupled.noise_bounds[~constant], start.noise_bounds[~constant])
    assert decouple_constant_outputs(start, np.zeros(4, bool)) is start


def test_with_fewer_latents_outputs_with_similar_kernels_share_one(latents, table):
    start = initial_parameters(latents, table, 2, 1)
    assert_array_equal(start.W[..., 0] != 0, [[True, False] * 2, [False, True] * 2])
    shared = [kernel.length_scale for kernel in start.kernels]
    assert_allclose(shared, [np.sqrt(0.1 * 0.12), np.sqrt(1.0 * 1.1)])


def test_kernels_and_not_the_order_decide_which_outputs_share(latents, table):
    start = initial_parameters([latents[d] for d in (0, 2, 1, 3)], table, 2, 1)
    assert_array_equal(start.W[..., 0] != 0, [[True] * 2 + [False] * 2, [False] * 2 + [True] * 2])
    assert_allclose(start.kernels[0].length_scale, np.sqrt(0.1 * 0.12))


def test_outputs_that_share_a_latent_have_weights_as_they_are_correlated(latents, table):
    W = initial_parameters(latents, table, 2, 1).W[..., 0]
    assert W[0, 0] * W[0, 2] < -0.9  # opposite signs
    assert W[1, 1] * W[1, 3] > 0.9
    full_rank = initial_parameters(latents, table, 1, 4).W[0]
    B = full_rank @ full_rank.T
    for d, e in ((0, 1), (1, 3)):
        both = table.observed[d] & table.observed[e]
        y, z = table.y[d][both], table.y[e][both]
        assert_allclose(B[d, e], y @ z / np.sqrt(y @ y * (z @ z)), atol=1e-9)
    assert_allclose(np.diag(B), 1.0, atol=1e-9)


@pytest.mark.parametrize(("n_latents", "rank"), [(1, 1), (1, 5), (2, 2), (3, 1), (4, 2), (13, 2)])
def test_every_column_of_weights_can_be_optimised(latents, table, n_latents, rank):
    """None is zero, and none has a gradient of zero."""
    start = initial_parameters(latents, table, n_latents, rank)
    assert start.W.shape == (n_latents, 4, rank)
    assert len(start.kernels) == n_latents
    assert np.all(np.abs(start.W).max(axis=1) > 0)
    K = kernel_matrices(start.kernels, table.x)
    gradient = log_likelihood(table, start.W, start.noise, K).of_weights
    assert np.all(np.abs(gradient).max(axis=1) > 1e-6)


def test_further_latents_have_other_length_scales_and_small_weights(latents, table):
    start = initial_parameters(latents, table, 14, 1)
    scales = np.array([kernel.length_scale for kernel in start.kernels])
    assert_allclose(scales[4:8], np.array(SCALES) / 3)
    assert_allclose(scales[8:12], np.array(SCALES) * 3)
    assert_allclose(scales[12:], np.array(SCALES[:2]) / 9)
    further = start.W[4:, :, 0]
    assert_array_equal(further, 0.1 * np.eye(4)[np.arange(10) % 4])


def test_length_scales_are_rescaled_and_other_parameters_are_not(table):
    kernels = [
        ConstantKernel(2.0) * Matern([0.3, 0.6], nu=1.5),
        RBF(0.2, "fixed") * ConstantKernel(3.0),
    ]
    latents = [Latent(kernel, 0.1, 0.0) for kernel in kernels]
    pair = Observations(table.x, table.y[:2], table.observed[:2])
    first, second = initial_parameters(latents, pair, 4, 1).kernels[2:]
    assert_allclose(np.exp(first.theta), [2.0, 0.1, 0.2])
    assert_allclose(np.exp(second.theta), [3.0])
    assert second.k1.length_scale == 0.2


def test_ranks_beyond_the_first_have_small_weights(latents, table):
    W = initial_parameters(latents, table, 4, 3).W
    assert_array_equal(W[..., 0], np.eye(4))
    assert_array_equal(W[..., 1], 0.1 * np.eye(4)[[1, 2, 3, 0]])
    assert_array_equal(W[..., 2], 0.1 * np.eye(4)[[2, 3, 0, 1]])


@pytest.mark.parametrize("n_latents", [1, 2, 3])
def test_kernels_of_different_kinds_can_be_shared(table, n_latents):
    """They cannot be compared: the outputs take turns, and the commonest form is taken."""
    kernels = [RBF(0.1), ConstantKernel(2.0) * Matern(0.3), RBF([0.1, 0.2]), RBF(0.4)]
    start = initial_parameters([Latent(k, 0.1, 0.0) for k in kernels], table, n_latents, 1)
    groups = np.arange(4) % n_latents
    for q in range(n_latents):
        assert_array_equal(start.W[q, :, 0] != 0, groups == q)
    assert np.isfinite(kernel_matrices(start.kernels, table.x)).all()
    if n_latents in (1, 3):  # outputs 0 and 3 share
        assert_allclose(start.kernels[0].length_scale, 0.2)


def test_kernels_without_parameters_are_shared_in_turn(table):
    latents = [Latent(RBF(s, "fixed"), 0.1, 0.0) for s in SCALES]
    W = initial_parameters(latents, table, 2, 1).W[..., 0]
    assert_array_equal(W != 0, [[True, False] * 2, [False, True] * 2])


def test_kernels_that_the_user_gave_to_each_latent_are_kept(latents, table):
    """Latent q has the outputs q mod Q; those beyond the outputs have small weights."""
    fewer = initial_parameters(latents, table, 3, 1, own_kernels=True)
    assert_array_equal(fewer.W[..., 0] != 0, [[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])
    more = [*latents, Latent(Matern(7.0), 9.0, 0.0)]
    start = initial_parameters(more, table, 5, 1, own_kernels=True)
    assert_array_equal(start.W[:4, :, 0], np.eye(4))
    assert start.kernels[4] == Matern(7.0)
    assert_array_equal(start.W[4, :, 0], [0.1, 0.0, 0.0, 0.0])
    assert len(start.noise) == 4


@pytest.mark.parametrize(("n", "correlated"), [(2, False), (3, True)])
def test_correlations_need_three_sites_with_both_outputs(latents, n, correlated):
    Y = np.full((12, 4), np.nan)
    for d in range(4):
        Y[3 * d : 3 * d + 3, d] = [-1.0, 1.0, 0.5]
    Y[:n, 1] = Y[:n, 0]
    table = Observations.from_table(np.arange(12.0)[:, None], Y)
    W = initial_parameters(latents, table, 1, 4).W[0]
    expected = np.eye(4)
    expected[0, 1] = expected[1, 0] = float(correlated)
    assert_allclose(W @ W.T, expected, atol=0.011)  # a column without a component has 0.1


@pytest.mark.parametrize(("n_latents", "rank"), [(1, 1), (2, 1), (1, 2)])
def test_every_output_has_a_weight_even_among_uncorrelated_ones(latents, n_latents, rank):
    """The principal component of uncorrelated outputs is one of them; the others get 0.1."""
    Y = np.kron(np.eye(4), [[1.0], [-1.0], [0.5]])
    Y[Y == 0] = np.nan
    table = Observations.from_table(np.arange(12.0)[:, None], Y)
    W = np.abs(initial_parameters(latents, table, n_latents, rank).W)
    largest = W.max(axis=(0, 2))
    assert np.all((largest == 0.1) | np.isclose(largest, 1.0))


def test_most_outputs_have_a_positive_weight_on_a_latent_that_they_share(rng):
    """Whatever sign the eigenvectors of their correlation have, in every column."""
    for _ in range(5):
        Y = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 4)) + 0.3 * rng.normal(size=(30, 4))
        table = Observations.from_table(rng.uniform(size=(30, 2)), Y / Y.std(axis=0))
        (W,) = initial_parameters([Latent(RBF(0.3), 0.1, 0.0)] * 4, table, 1, 3).W
        assert np.all(W.sum(axis=0) > 0)


def test_output_variances_are_further_columns_with_a_free_diagonal(latents, table):
    plain = initial_parameters(latents, table, 2, 1)
    start = with_output_variances(plain)
    assert start.W.shape == (2, 4, 5)
    assert_array_equal(start.W[..., :1], plain.W)
    assert_allclose(start.W[..., 1:], np.broadcast_to(np.sqrt(0.1) * np.eye(4), (2, 4, 4)))
    masked = start.mask_gradient(np.ones((3, 2, 4, 5)))
    assert_array_equal(masked[..., :1], 1.0)
    assert_array_equal(masked[..., 1:], np.broadcast_to(np.eye(4), (3, 2, 4, 4)))
