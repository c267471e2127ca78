"""Gradients by central differences."""

import numpy as np
from numpy.testing import assert_allclose


def derivative(function, at, step=1e-5):
    """Gradient of a scalar function of an array, in the shape of the array."""
    gradient = np.empty_like(at, dtype=float)
    for index in np.ndindex(at.shape):
        nudge = np.zeros_like(at, dtype=float)
        nudge[index] = step
        gradient[index] = (function(at + nudge) - function(at - nudge)) / (2 * step)
    return gradient


def assert_is_the_gradient(gradient, function, at, rtol=1e-6):
    """Assert that every component is within `rtol` of the largest."""
    expected = derivative(function, at)
    assert np.abs(expected).max() > 0, "a constant function tests nothing"
    assert_allclose(gradient, expected, rtol=0, atol=rtol * np.abs(expected).max())
