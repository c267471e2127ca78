"""The vector of parameters: it keeps them, and its derivatives are those of the covariance."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from emgpr.convolution import ConvolutionVector
from tests.convolution.convolved import some_parameters
from tests.finite_differences import derivative

SHAPES = [{"Q": 2, "own": False}, {"Q": 1, "own": True}, {"Q": 2, "own": True, "P": 3}]


def vector_for(Q, own, P=2):
    return ConvolutionVector(3, Q, P, own)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_vector_represents_the_parameters(rng, shape):
    parameters, vector = some_parameters(rng, **shape), vector_for(**shape)
    x = vector.pack(parameters)
    again = vector.unpack(x)
    assert len(x) == sum(vector.sizes)
    assert_allclose(again.noise, parameters.noise)
    for name in ("length_scales", "widths", "weights", "own_length_scales", "own_weights"):
        assert_allclose(getattr(again.covariance, name), getattr(parameters.covariance, name))


@pytest.mark.parametrize("shape", SHAPES)
def test_derivatives_are_those_of_the_terms(rng, shape):
    parameters, vector = some_parameters(rng, **shape), vector_for(**shape)
    x = vector.pack(parameters)
    dA, dT = vector.derivatives(parameters.covariance)
    couples = parameters.covariance.couples
    for r, d, e in zip(*np.nonzero(couples), strict=True):
        for name, found in (("A", dA), ("T", dT)):
            expected = derivative(
                lambda z, at=(r, d, e), name=name: getattr(vector.unpack(z).covariance, name)[at], x
            )
            assert_allclose(found[:, r, d, e], expected, atol=1e-8)
    assert not dA[:, ~couples].any()


def test_a_width_of_zero_has_a_place_in_the_vector(rng):
    parameters, vector = some_parameters(rng), vector_for(2, False)
    least = replace(parameters, covariance=parameters.covariance.with_least_widths())
    assert np.isfinite(vector.pack(least)).all()
    assert_allclose(vector.unpack(vector.pack(least)).covariance.A, least.covariance.A)


def test_shares_of_the_variance(rng):
    parameters = some_parameters(rng, own=True)
    covariance, noise = parameters.covariance, parameters.noise
    shares = parameters.shares
    assert_allclose(shares.sum(axis=1), 1.0)
    total = covariance.at_each(np.zeros((1, 2)))[0].diagonal() + noise
    assert_allclose(shares[:, -1], noise / total)
    assert_allclose(shares[:, 2], covariance.own_weights**2 / total)
