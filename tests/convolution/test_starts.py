"""Starting points: length-scales cover their range, weights those of principal components."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from emgpr.convolution import ConvolutionVector
from emgpr.convolution.starts import LONGEST_START, SIGNAL_SHARE, starting_points
from emgpr.latents import Latent, typical_distances
from emgpr.observations import Observations
from emgpr.weights import output_correlation

LATENTS = [Latent(RBF(scale), noise, 0.0) for scale, noise in ((0.1, 0.2), (0.3, 0.5), (0.2, 0.1))]


@pytest.fixture
def table(rng):
    common = rng.normal(size=(40, 1))
    Y = common + 0.3 * rng.normal(size=(40, 3))
    return Observations.from_table(rng.uniform(size=(40, 2)), Y / Y.std(axis=0))


def test_every_length_scale_is_in_each_interval_once(rng, table):
    n, vector = 6, ConvolutionVector(3, 2, 2, True)
    points = starting_points(table, LATENTS, vector, n, rng)
    spacing, extent = typical_distances(table.x)
    edges = np.linspace(np.log(spacing), np.log(LONGEST_START * extent), n + 1)
    for column in (*range(2), *range(*vector.parts[2].indices(99))):
        drawn = points[1:, column]  # the first point is that of the outputs alone
        assert len(np.unique(np.digitize(drawn, edges))) == n - 1
        assert ((drawn >= edges[0]) & (drawn <= edges[-1])).all()


def test_the_first_point_has_the_parameters_of_the_outputs_alone(rng, table):
    vector = ConvolutionVector(3, 2, 2, True)
    first = vector.unpack(starting_points(table, LATENTS, vector, 3, rng)[0])
    assert_allclose(first.covariance.own_length_scales, [0.1, 0.3, 0.2])
    assert_allclose(first.covariance.length_scales, [0.1, 0.3])
    assert_allclose(first.noise, [0.2, 0.5, 0.1])


def test_with_as_many_processes_as_outputs_the_weights_have_their_correlation(rng, table):
    vector = ConvolutionVector(3, 3, 2, False)
    for point in starting_points(table, LATENTS, vector, 3, rng):
        W = vector.unpack(point).covariance.weights
        expected = SIGNAL_SHARE * output_correlation(table)
        assert_allclose(W.T @ W, expected, atol=0.05)


def test_more_processes_than_outputs_and_constant_outputs(rng, table):
    y = table.table.copy()
    y[:, 1] = 0.0
    constant = Observations.from_table(table.x, y)
    vector = ConvolutionVector(3, 5, 2, True)
    points = starting_points(constant, LATENTS, vector, 2, rng)
    assert np.isfinite(points).all()
    for point in points:
        parameters = vector.unpack(point)
        assert not parameters.covariance.weights[:, 1].any()
        assert parameters.covariance.own_weights[1] == 0
        assert parameters.noise[1] == pytest.approx(0.5)
