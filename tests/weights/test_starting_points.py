"""Starting points of the joint optimisation are models of the table."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from emgpr.observations import Observations
from emgpr.weights import LMCParameters, starting_points
from emgpr.weights.initial import output_correlation

BOUNDS = np.tile([1e-8, 1e2], (3, 1))


@pytest.fixture
def table(rng):
    Y = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 3))
    Y = (Y - Y.mean(0)) / Y.std(0)
    Y[::7, 1] = np.nan
    return Observations.from_table(rng.uniform(size=(60, 2)), Y)


def parameters(k=1, Q=3, free=None):
    kernels = tuple(RBF(scale) for scale in (0.2, 0.7, 0.4)[:Q])
    return LMCParameters(
        kernels, 0.1 * np.eye(3), np.eye(3)[:Q, :, None].repeat(k, 2), BOUNDS, free
    )


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("name", ["principal components", "one kernel"])
def test_signal_and_noise_add_up_to_the_correlation_of_the_outputs(table, k, name):
    point = starting_points(parameters(k), table, correlated=True, own_kernels=False)[name]
    signal = np.einsum("qdk,qek->de", point.W[..., :1], point.W[..., :1])
    assert_allclose(signal + point.noise, output_correlation(table), atol=0.01)
    assert np.linalg.eigvalsh(point.noise)[0] > 0
    if k == 2:  # further weights are small, but not zero, because zero has no gradient
        assert 0 < np.abs(point.W[..., 1]).max() < 0.2


def test_long_length_scales_belong_to_the_leading_components(table):
    points = starting_points(parameters(), table, correlated=True, own_kernels=False)
    kernels = points["principal components"].kernels
    assert [kernel.length_scale for kernel in kernels] == [0.7, 0.4, 0.2]
    assert {kernel.length_scale for kernel in points["one kernel"].kernels} == {0.4}
    assert points["two steps"].kernels == parameters().kernels


def test_kernels_of_the_user_stay_where_they_are(table):
    points = starting_points(parameters(), table, correlated=True, own_kernels=True)
    assert points.keys() == {"two steps", "principal components"}
    assert points["principal components"].kernels == parameters().kernels


def test_independent_noise_has_no_correlations(table):
    for point in starting_points(parameters(), table, correlated=False, own_kernels=False).values():
        assert not (point.noise - np.diag(np.diagonal(point.noise))).any()


def test_weights_that_are_fixed_keep_their_values(table):
    free = np.ones((3, 3, 2), bool)
    free[:, :, 1] = np.eye(3, dtype=bool)
    start = parameters(2, free=free)
    point = starting_points(start, table, correlated=True, own_kernels=False)["one kernel"]
    assert_allclose(point.W[..., 1], start.W[..., 1])
    assert np.abs(point.W[..., 0] - start.W[..., 0]).max() > 0.1


def test_constant_outputs_have_no_weights_and_keep_their_noise(table):
    constant = Observations(table.x, table.y * [[1.0], [0.0], [1.0]], table.observed)
    free = np.ones((3, 3, 1), bool)
    free[:, 1] = False
    start = parameters(free=free)
    for name, point in starting_points(start, constant, correlated=True, own_kernels=False).items():
        if name != "two steps":
            assert not point.W[:, 1].any()
            assert_allclose(point.noise[1], [0.0, 0.1, 0.0])


def test_one_output_has_one_starting_point(rng):
    table = Observations.of_one_output(rng.uniform(size=(9, 2)), rng.normal(size=9))
    start = LMCParameters((RBF(),), np.eye(1), np.ones((1, 1, 1)), BOUNDS[:1])
    assert starting_points(start, table, correlated=False, own_kernels=False).keys() == {
        "two steps"
    }
