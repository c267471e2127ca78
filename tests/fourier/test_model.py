"""The region in which features are valid, and the variance that they leave out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, Matern

from emgpr.fourier.model import FourierModel, check_box, pad
from emgpr.fourier.resolution import FeatureChoice, Resolution
from emgpr.weights import LMCParameters

DATA = np.array([[0.0, 2.0], [1.0, 3.0]])


def test_the_box_is_that_of_the_data_or_as_given():
    assert_array_equal(check_box("auto", DATA), DATA)
    assert_array_equal(check_box(([0, 0], [9, 9]), DATA), [[0, 0], [9, 9]])


@pytest.mark.parametrize(
    ("box", "message"),
    [
        (([0, 0, 0], [1, 1, 1]), r"box has shape \(2, 3\); expected \(2, 2\)"),
        (([0, 1], [1, 1]), "Input 1 ranges from 1 to 1; expected a range of positive length"),
        (([0, 0], [1, np.inf]), "Input 1 ranges from 0 to inf; expected a range"),
    ],
)
def test_a_box_without_extent_is_refused(box, message):
    with pytest.raises(ValueError, match=message):
        check_box(box, DATA)


def test_four_inputs_are_refused():
    with pytest.raises(ValueError, match=r"4 input columns; expected at most 3"):
        check_box("auto", np.array([[0.0] * 4, [1.0] * 4]))


@pytest.fixture
def model(rng):
    """Two outputs, and so few features that they leave out variance."""
    kernels = Matern(0.3, nu=1.5), RBF(0.4)
    noise, W = np.array([[0.2, 0.05], [0.05, 0.3]]), rng.normal(size=(2, 2, 2))
    few = FeatureChoice(kernels, np.ones(2), Resolution(0.01, 0.01, 31, 31))
    features = few.for_region(*pad(np.array([[0.0, 0.0], [1.0, 1.0]])))
    parameters = LMCParameters(kernels, noise, W, np.tile([1e-8, 1e2], (2, 1)))
    return FourierModel(parameters, features, np.array([[0.0, 0.0], [1.0, 1.0]]), ("east", "north"))


def test_locations_far_outside_the_box_are_refused_and_those_nearby_are_not(model):
    model.check_region(np.array([[-0.05, 1.05]]))
    with pytest.raises(
        ValueError,
        match=r"1 of 2 locations .* row 1 .*, where column 'north' is 7; .* from 0 to 1\.",
    ):
        model.check_region(np.array([[0.5, 0.5], [0.5, 7.0]]))


def test_the_value_that_is_refused_is_that_of_the_row_that_is_named(model):
    with pytest.raises(ValueError, match=r"2 of 3 .* row 1 .*, where column 'north' is 7;"):
        model.check_region(np.array([[0.5, 0.5], [0.5, 7.0], [9.0, 0.5]]))


def test_truncated_variance_is_what_the_features_lack_at_a_location(model, rng):
    """Features of all frequencies would have the variance of the kernel and its periodic copies."""
    parameters, features = model.parameters, model.features
    Phi = features.evaluate(rng.uniform(size=(1, 2)))
    copies = np.stack(np.meshgrid(*[np.arange(-4, 5)] * 2), axis=-1).reshape(-1, 2)
    missing = []
    for kernel, stride, s in zip(
        parameters.kernels, features.strides, features.variances(parameters.kernels), strict=True
    ):
        total = kernel(np.zeros((1, 2)), copies * np.array(features.grid.period) / stride).sum()
        missing.append(total - (Phi**2 @ np.tile(s, 2))[0])
    B = np.einsum("qdk,qek->qde", parameters.W, parameters.W)
    expected = np.einsum("qde,q->de", B, missing)
    assert_allclose(model.truncated_covariance, expected, atol=1e-4)
    variances = np.einsum("qdd->d", B) + np.diagonal(parameters.noise)
    assert_allclose(model.truncated_shares, np.diagonal(expected) / variances, atol=1e-4)
    assert model.truncated_shares.max() > 0.05
