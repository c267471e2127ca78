"""The covariance of convolved processes: against numerical integrals, and as the LMC."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF

from emgpr.convolution import ConvolvedCovariance
from emgpr.prediction import CovarianceFunction, LMCModel, ReadingLocations
from tests.convolution.convolved import some_covariance


def readings(rng, D=3, n=20, P=2):
    return ReadingLocations(rng.normal(size=(n, P)), rng.integers(D, size=n))


def density(x, variance):
    return np.exp(-0.5 * x**2 / variance) / np.sqrt(2 * np.pi * variance)


def smoothed_covariance(lag, widths, scale):
    """Covariance of two smoothed processes at a lag, by sums over a fine grid of differences."""
    step = 0.01
    t = np.arange(-1500, 1501) * step
    kernel = np.exp(-0.5 * (t / scale) ** 2)
    for width in widths:
        kernel = np.convolve(kernel, density(t, width**2) * step, mode="same")
    return np.interp(lag, t, kernel)


def test_it_is_the_covariance_of_smoothed_processes():
    widths, scale = np.array([0.3, 0.8]), 0.6
    covariance = ConvolvedCovariance(np.array([scale]), widths, np.ones((1, 2)), n_inputs=1)
    lag = np.array([0.0, 0.5, 2.0])
    variances = [smoothed_covariance(0.0, (width, width), scale) for width in widths]
    for d in range(2):
        for e in range(2):
            expected = smoothed_covariance(lag, (widths[d], widths[e]), scale)
            expected = expected / np.sqrt(variances[d] * variances[e])
            a = ReadingLocations(np.zeros((1, 1)), np.array([d]))
            b = ReadingLocations(lag[:, None], np.full(3, e))
            assert_allclose(covariance.between(a, b)[0], expected, rtol=1e-6)


def test_in_several_inputs_it_is_a_product_over_the_inputs(rng):
    covariance = some_covariance(rng, Q=1, P=2)
    one = ConvolvedCovariance(covariance.length_scales, covariance.widths, np.ones((1, 3)), 1)
    a, b = readings(rng), readings(rng)
    expected = np.outer(covariance.weights[0][a.output], covariance.weights[0][b.output])
    for p in range(2):
        first, second = (ReadingLocations(part.x[:, [p]], part.output) for part in (a, b))
        expected *= one.between(first, second)
    assert_allclose(covariance.between(a, b), expected, rtol=1e-12)


@pytest.mark.parametrize("P", [1, 3])
def test_with_equal_widths_it_is_the_linear_model_of_coregionalisation(rng, P):
    v, scales, W = 0.2, np.array([0.3, 1.1]), rng.normal(size=(2, 3))
    covariance = ConvolvedCovariance(scales, np.full(3, np.sqrt(v)), W, P)
    kernels = [RBF(np.sqrt(2 * v + scale**2)) for scale in scales]
    a, b = readings(rng, P=P), readings(rng, P=P)
    expected = sum(
        np.outer(w[a.output], w[b.output]) * kernel(a.x, b.x)
        for w, kernel in zip(W, kernels, strict=True)
    )
    assert_allclose(covariance.between(a, b), expected, rtol=0, atol=1e-12)
    model = LMCModel(tuple(kernels), W[None, :, :, None], np.eye(3))
    assert_allclose(covariance.at_each(a.x), model.prior_covariance(a.x)[0], rtol=0, atol=1e-12)


def test_own_processes_are_added_to_their_outputs_only(rng):
    covariance = some_covariance(rng, own=True)
    none = np.empty(0)
    without = replace(covariance, own_length_scales=none, own_weights=none)
    a, b = readings(rng), readings(rng)
    added = covariance.between(a, b) - without.between(a, b)
    same = a.output[:, None] == b.output
    assert_allclose(added[~same], 0.0, atol=1e-15)
    d = int(a.output[0])
    kernel = covariance.own_weights[d] ** 2 * RBF(covariance.own_length_scales[d])(a.x, b.x)
    assert_allclose(added[0, b.output == d], kernel[0, b.output == d], atol=1e-15)


@pytest.mark.parametrize("own", [False, True])
def test_it_is_a_covariance(rng, own):
    covariance = some_covariance(rng, own=own)
    assert isinstance(covariance, CovarianceFunction)
    a = readings(rng, n=60)
    cov = covariance.between(a, a)
    assert_allclose(cov, cov.T)
    assert np.linalg.eigvalsh(cov).min() > -1e-12
    at_each = covariance.at_each(a.x[:2])
    there = ReadingLocations.all_outputs(a.x[:1], 3)
    assert_allclose(at_each[0], covariance.between(there, there), rtol=1e-12)
    assert_allclose(at_each[0], at_each[1])


@pytest.mark.parametrize("own", [False, True])
def test_only_differences_of_widths_matter(rng, own):
    covariance, a = some_covariance(rng, own=own), readings(rng)
    least = covariance.with_least_widths()
    assert least.widths.min() == 0
    assert_allclose(least.between(a, a), covariance.between(a, a), rtol=1e-12)
    again = least.with_least_widths()
    assert_allclose(again.widths, least.widths)


@pytest.mark.parametrize("own", [False, True])
def test_outputs_are_selected_in_any_order(rng, own):
    covariance, which = some_covariance(rng, own=own), np.array([2, 0])
    a = readings(rng, D=2)
    there = ReadingLocations(a.x, which[a.output])
    selected = covariance.select_outputs(which)
    assert_allclose(selected.between(a, a), covariance.between(there, there), rtol=1e-12)
